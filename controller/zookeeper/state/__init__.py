"""The controller's copy of the cluster state: brokers, topics and partition states, read from and written to ZooKeeper."""
