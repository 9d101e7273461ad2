"""The cluster store: ZooKeeper, and the on-disk store of a standalone broker from before KRaft.

``cluster_store`` is the interface, which ``zookeeper_session`` implements, and a double of ZooKeeper in the tests; ``session`` is
what a broker's parts hold of it. ``znode_tree``, ``journal`` and ``state_files`` are the store of a lone broker.
"""
