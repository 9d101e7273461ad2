"""The store of a cluster's nodes: ZooKeeper, and what a lone broker before KRaft has left of its own.

``cluster_store`` is the interface, which ``zookeeper_session`` implements, and a double of ZooKeeper in the tests; ``session`` is
what a broker's parts hold of it. ``znode_tree``, ``journal`` and ``state_files`` are the store of a lone broker.
"""
