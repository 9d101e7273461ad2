"""The script of ``kafka-4.3.1-operations.json``: each operation of a controller, at the features of a new cluster."""

from __future__ import annotations

from .capture_kafka import Capture
from .script_access import acls, scram, tokens
from .script_brokers import brokers, leaving_brokers
from .script_partitions import directories, elections, eligible_leaders, in_sync_replicas, reassignments
from .script_settings import broker_configs, features, group_configs, producer_ids, quotas, topic_configs
from .script_topics import created_partitions, created_topics, deleted_topics, placed_topics

ABOUT = "Operations of a controller of Apache Kafka 4.3.1 with the features of a new cluster; made by capture_kafka.py."
PROPERTIES: dict[str, str] = {}
FORMAT = ("-r", "4.3")
REGISTERS = True


def script(capture: Capture) -> None:
    for part in (
        brokers,
        created_topics,
        created_partitions,
        placed_topics,
        in_sync_replicas,
        elections,
        reassignments,
        directories,
        eligible_leaders,
        topic_configs,
        broker_configs,
        group_configs,
        quotas,
        acls,
        scram,
        tokens,
        producer_ids,
        leaving_brokers,
        deleted_topics,
        features,
    ):
        part(capture)
