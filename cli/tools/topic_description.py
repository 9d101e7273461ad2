"""``ottla topics describe``: a header line per topic and a line per partition, as in kafka-topics.

On a terminal the partitions are a table, elsewhere each is a line of ``Name: value`` fields with tabs between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from .client import ClusterConnection
from .cluster_view import (
    DescribedTopic,
    Key,
    OnLeader,
    TopicPartitionInfo,
    TopicSettings,
    find_topics,
    on_leaders,
    topic_settings,
)
from .output import OutputColumn, as_object, is_terminal, print_json, print_rows, text

COLUMNS = (
    OutputColumn("partition", is_number=True),
    OutputColumn("leader", is_number=True),
    OutputColumn("replicas"),
    OutputColumn("isr"),
    OutputColumn("offline"),
    OutputColumn("start_offset", is_number=True),
    OutputColumn("end_offset", is_number=True),
    OutputColumn("size", is_size=True),
    OutputColumn("health"),
)
_OFFLINE = 4
"""The column that a table has no room for: health tells most of it."""

_HEADS = ("Partition", "Leader", "Replicas", "Isr", "Offline", "StartOffset", "EndOffset", "Size", "Health")


@dataclasses.dataclass(frozen=True)
class Filters:
    """Which partitions to show: those that one of these is true of, or all if none is asked for."""

    under_replicated: bool = False
    offline: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    def __bool__(self) -> bool:
        return self.under_replicated or self.offline or self.under_min_isr or self.at_min_isr

    def lets_through(self, partition: TopicPartitionInfo, min_isr: int | None) -> bool:
        """Whether to show it. ``min_isr`` is the topic's."""
        if not self:
            return True
        return (
            (self.under_replicated and partition.is_under_replicated)
            or (self.offline and partition.leader is None)
            or (self.under_min_isr and partition.is_under_min_isr(min_isr))
            or (self.at_min_isr and partition.spare(min_isr) == 0)
        )


def describe(connection: ClusterConnection, names: Sequence[str] | None, filters: Filters, *, as_json: bool) -> None:
    """Print topics. The filters leave out partitions, and topics of which no partition is left."""
    with closing(connection.admin()) as admin:
        topics = find_topics(admin, names)
        settings = topic_settings(admin, topics)
        told = on_leaders(admin, topics)
    described = []
    for topic in topics:
        min_isr = settings[topic.name].min_isr
        shown = [partition for partition in topic.partitions if filters.lets_through(partition, min_isr)]
        if shown or not filters:
            described.append((topic, [_row(topic, partition, min_isr, told) for partition in shown]))
    if as_json:
        print_json([_object(topic, settings[topic.name], rows) for topic, rows in described])
        return
    for topic, rows in described:
        _print_topic(topic, settings[topic.name].overrides, rows)


def _row(
    topic: DescribedTopic, partition: TopicPartitionInfo, min_isr: int | None, told: Mapping[Key, OnLeader]
) -> tuple[Any, ...]:
    start, end, size = told.get((topic.name, partition.number), (None, None, None))
    return (
        partition.number,
        partition.leader,
        list(partition.replicas),
        list(partition.isr),
        list(partition.offline),
        start,
        end,
        size,
        partition.health(min_isr).value,
    )


def _object(topic: DescribedTopic, settings: TopicSettings, rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "configs": settings.overrides,
        "min_insync_replicas": settings.min_isr,
        "partitions": [as_object(COLUMNS, row) for row in rows],
    }


def _print_topic(topic: DescribedTopic, configs: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> None:
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
        print_rows(COLUMNS[:_OFFLINE] + COLUMNS[_OFFLINE + 1 :], [row[:_OFFLINE] + row[_OFFLINE + 1 :] for row in rows])
        print()
        return
    print("\t".join(f"{name}: {value}" for name, value in head.items()))
    for row in rows:
        fields = "\t".join(f"{name}: {text(value)}" for name, value in zip(_HEADS, row, strict=True))
        print(f"\tTopic: {topic.name}\t{fields}")
