"""The controller of ZooKeeper mode: its elections and terms, its decisions, and the requests that carry them to brokers."""
