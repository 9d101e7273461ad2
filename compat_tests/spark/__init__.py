"""Tests of Apache Spark's own Kafka connector: Structured Streaming and batch jobs."""
