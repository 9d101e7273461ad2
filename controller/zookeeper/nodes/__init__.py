"""The znodes of the cluster store, as in Kafka 3.9: paths, JSON, change notifications, and a watch loop."""
