"""Kafka's own command-line tools, and Kafka Streams."""
