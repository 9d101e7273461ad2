"""Tests of Kafka's own command-line tools, Kafka Streams and Kafka Connect."""
