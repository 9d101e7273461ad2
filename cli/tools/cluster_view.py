"""What several tools look up about a cluster: topics, the offsets of their partitions, and sizes on the leaders' disks."""

from __future__ import annotations

import base64
import dataclasses
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import kafka.errors
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from .client import Admin
from .running import ToolError, refusal

Key = tuple[str, int]
"""A topic's name and a partition's number."""


@dataclasses.dataclass(frozen=True)
class Partition:
    """One partition as Metadata tells it; ``leader`` is None while there is none."""

    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


@dataclasses.dataclass(frozen=True)
class Topic:
    """One topic as Metadata tells it."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[Partition, ...]

    @property
    def under_replicated(self) -> int:
        return sum(partition.is_under_replicated for partition in self.partitions)

    def with_leader(self) -> list[TopicPartition]:
        """The partitions that can be asked."""
        return [TopicPartition(self.name, p.number) for p in self.partitions if p.leader is not None]


def find_topics(admin: Admin, names: Sequence[str] | None) -> list[Topic]:
    """Topics by name; None: all. Raises ToolError when one does not exist."""
    found = admin.describe_topics(None if names is None else list(dict.fromkeys(names)))
    for topic in found:
        if topic["error_code"] == kafka.errors.UnknownTopicOrPartitionError.errno:
            raise ToolError(f"there is no topic {topic['name']}; 'ottla topics list' shows those that are there")
        if topic["error_code"]:
            raise ToolError(f"{topic['name']}: {refusal(topic['error_code'], None)}")
    return sorted((_topic(topic) for topic in found), key=lambda topic: topic.name)


def _topic(topic: dict[str, Any]) -> Topic:
    partitions = (
        Partition(
            p["partition_index"],
            p["leader_id"] if p["leader_id"] >= 0 else None,
            tuple(p["replica_nodes"]),
            tuple(p["isr_nodes"]),
        )
        for p in topic["partitions"]
    )
    return Topic(
        topic["name"],
        _id_text(topic.get("topic_id")),
        bool(topic["is_internal"]),
        tuple(sorted(partitions, key=lambda partition: partition.number)),
    )


def _id_text(topic_id: object) -> str:
    """As Kafka's own tools show it: base64 for URLs, without padding; empty where the broker has no ids."""
    number = uuid.UUID(str(topic_id)) if topic_id else uuid.UUID(int=0)
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=") if number.int else ""


def offset_ranges(admin: Admin, topics: Iterable[Topic]) -> dict[Key, tuple[int, int]]:
    """(start, end) of every partition that has a leader."""
    asked = [where for topic in topics for where in topic.with_leader()]
    if not asked:
        return {}
    starts = admin.list_partition_offsets(dict.fromkeys(asked, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
    return {(w.topic, w.partition): (starts[w].offset, ends[w].offset) for w in asked}


def leader_sizes(admin: Admin, topics: Sequence[Topic]) -> dict[Key, int]:
    """Bytes on the leader's disk; nothing for partitions whose leader does not tell."""
    wanted = {topic.name: [p.number for p in topic.partitions] for topic in topics}
    if not wanted:
        return {}
    leaders = {(topic.name, p.number): p.leader for topic in topics for p in topic.partitions}
    sizes = {}
    for broker in admin.describe_log_dirs(wanted):
        for folder in broker["log_dirs"]:
            for topic in folder["topics"]:
                for partition in topic["partitions"]:
                    key = (topic["name"], partition["partition_index"])
                    if leaders.get(key) == broker["broker"] and not partition["is_future_key"]:
                        sizes[key] = partition["partition_size"]
    return sizes
