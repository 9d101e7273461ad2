"""``ottla topics describe``: a head line for each topic and a line for each partition, as kafka-topics has them.

On a terminal the partitions are a table, elsewhere each is a line of ``Name: value`` fields with tabs between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType

from .client import Admin, Connection
from .cluster_view import Key, Partition, Topic, find_topics, leader_sizes, offset_ranges
from .output import Column, as_object, is_terminal, print_json, print_rows, text

COLUMNS = (
    Column("partition", is_number=True),
    Column("leader", is_number=True),
    Column("replicas"),
    Column("isr"),
    Column("start_offset", is_number=True),
    Column("end_offset", is_number=True),
    Column("size", is_size=True),
)


def describe(
    connection: Connection,
    names: Sequence[str] | None,
    *,
    under_replicated: bool,
    unavailable: bool,
    as_json: bool,
) -> None:
    """Print topics. The filters leave out partitions, and topics of which no partition is left."""
    with closing(connection.admin()) as admin:
        topics = find_topics(admin, names)
        configs = _configs(admin, topics)
        ranges = offset_ranges(admin, topics)
        sizes = leader_sizes(admin, topics)
    described = []
    for topic in topics:
        partitions = [p for p in topic.partitions if not under_replicated or p.is_under_replicated]
        partitions = [p for p in partitions if not unavailable or p.leader is None]
        if partitions or not (under_replicated or unavailable):
            described.append((topic, [_row(topic, partition, ranges, sizes) for partition in partitions]))
    if as_json:
        print_json([_object(topic, configs[topic.name], rows) for topic, rows in described])
        return
    for topic, rows in described:
        _print_topic(topic, configs[topic.name], rows)


def _configs(admin: Admin, topics: Sequence[Topic]) -> dict[str, dict[str, str]]:
    """What was set on each topic itself."""
    if not topics:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    described = admin.describe_configs(resources, config_filter="modified")["topic"]
    return {
        name: {
            key: entry["value"] for key, entry in entries.items() if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG"
        }
        for name, entries in described.items()
    }


def _row(
    topic: Topic, partition: Partition, ranges: Mapping[Key, tuple[int, int]], sizes: Mapping[Key, int]
) -> tuple[Any, ...]:
    key = (topic.name, partition.number)
    start, end = ranges.get(key, (None, None))
    return (
        partition.number,
        partition.leader,
        list(partition.replicas),
        list(partition.isr),
        start,
        end,
        sizes.get(key),
    )


def _object(topic: Topic, configs: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "configs": configs,
        "partitions": [as_object(COLUMNS, row) for row in rows],
    }


def _print_topic(topic: Topic, configs: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> None:
    replicas = max((len(partition.replicas) for partition in topic.partitions), default=0)
    head = {
        "Topic": topic.name,
        "TopicId": topic.topic_id,
        "PartitionCount": len(topic.partitions),
        "ReplicationFactor": replicas,
        "Configs": ",".join(f"{name}={value}" for name, value in configs.items()),
    }
    if is_terminal():
        print("  ".join(f"{name}: {value}" for name, value in head.items() if value != ""))
        print_rows(COLUMNS, rows)
        print()
        return
    print("\t".join(f"{name}: {value}" for name, value in head.items()))
    heads = ("Partition", "Leader", "Replicas", "Isr", "StartOffset", "EndOffset", "Size")
    for row in rows:
        fields = "\t".join(f"{name}: {text(value)}" for name, value in zip(heads, row, strict=True))
        print(f"\tTopic: {topic.name}\t{fields}")
