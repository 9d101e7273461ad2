"""The read model of a remote cluster: any Kafka, read by a client's requests."""
