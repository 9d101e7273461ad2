"""The controller's copy of the cluster: brokers, topics and partition states, read from the store and written to it."""
