"""The implementations of the subcommands, on kafka-python, for every broker that speaks Kafka's protocol."""
