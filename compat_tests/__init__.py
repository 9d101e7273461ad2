"""A black-box suite of stock Kafka clients: it runs against any broker that speaks Kafka's protocol."""
