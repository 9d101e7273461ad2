"""The plugin's fixtures under their own names, so that these tests also run without the entry point of an installed ottla."""

from __future__ import annotations

from ottla.testing.plugin import (
    kafka_faults,
    kafka_group,
    kafka_records,
    kafka_requests,
    kafka_topic,
    kafka_topics,
    ottla_broker,
    ottla_broker_factory,
    ottla_broker_options,
    ottla_cluster,
    ottla_cluster_options,
)

__all__ = [
    "kafka_faults",
    "kafka_group",
    "kafka_records",
    "kafka_requests",
    "kafka_topic",
    "kafka_topics",
    "ottla_broker",
    "ottla_broker_factory",
    "ottla_broker_options",
    "ottla_cluster",
    "ottla_cluster_options",
]
