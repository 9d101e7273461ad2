"""``python -m bench.failover``: three brokers under load that are killed, stopped and restarted, Ottla's and Apache Kafka's."""
