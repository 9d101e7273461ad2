"""The nodes of the cluster store as Kafka 3.9 lays them out: paths, JSON, notifications, and a loop that watches them."""
