"""The store of a cluster's nodes: ZooKeeper, or one of the broker's own with the same semantics.

``cluster_store`` is the interface, which ``zookeeper_session`` and, for a broker without ZooKeeper, ``embedded_session``
implement; ``session`` is what a broker's parts hold of either.
"""
