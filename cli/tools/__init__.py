"""What the subcommands do, on kafka-python: they work with every broker that speaks Kafka's protocol."""
