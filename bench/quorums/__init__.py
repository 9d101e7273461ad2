"""``python -m bench.quorums``: failover, start and growth of KRaft clusters, Ottla's and Apache Kafka's."""
