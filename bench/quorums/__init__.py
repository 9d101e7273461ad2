"""``python -m bench.quorums``: clusters of KRaft, Ottla's and Apache Kafka's: how fast they fail over, start, and grow."""
