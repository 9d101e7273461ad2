"""Apache Spark through its own Kafka connector: what a broker owes to Structured Streaming and to batch jobs."""
