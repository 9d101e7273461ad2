"""The controller in ZooKeeper mode: its elections and terms, its decisions, and its requests to the brokers."""
