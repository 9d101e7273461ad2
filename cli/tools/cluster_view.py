"""Shared lookups of the tools about a cluster: topics, their settings, offsets and sizes of their partitions.

A cluster is looked at when something is wrong with it, so a broker that does not answer is no failure here: what only it
knows is left out.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import kafka.errors
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec

from .client import Admin
from .nearest import no_topic, topic_names
from .running import ToolError, UsageError, refusal

_LEADER_MS = 5_000
_MIN_ISR = "min.insync.replicas"

Key = tuple[str, int]
"""A topic's name and a partition's number."""


class Health(enum.StrEnum):
    """How a partition is; the later, the worse."""

    OK = "ok"
    UNDER_REPLICATED = "under-replicated"
    UNDER_MIN_ISR = "under-min-isr"
    OFFLINE = "offline"


@dataclasses.dataclass(frozen=True)
class TopicPartitionInfo:
    """One partition as a Metadata response describes it."""

    number: int
    leader: int | None
    """None while there is none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    """The replicas whose broker is down, or has them in a log directory that failed. Brokers before Kafka 1.0 don't say."""

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def preferred(self) -> int:
        """The replica that leads unless something is wrong: the first one."""
        return self.replicas[0]

    def spare(self, min_isr: int | None) -> int:
        """How many replicas in sync there are beyond those that ``acks=all`` asks for; below 0: it is refused.

        Never more are asked for than there are replicas (KAFKA-15583).
        """
        return len(self.isr) - min(min_isr or 1, len(self.replicas))

    def is_under_min_isr(self, min_isr: int | None) -> bool:
        """Whether ``acks=all`` is refused; so it is without a leader, however many are in sync."""
        return self.leader is None or self.spare(min_isr) < 0

    def health(self, min_isr: int | None) -> Health:
        """``min_isr`` is the topic's ``min.insync.replicas``, None where that is not known."""
        if self.leader is None:
            return Health.OFFLINE
        if self.is_under_min_isr(min_isr):
            return Health.UNDER_MIN_ISR
        return Health.UNDER_REPLICATED if self.is_under_replicated else Health.OK


@dataclasses.dataclass(frozen=True)
class DescribedTopic:
    """One topic as Metadata tells it."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]

    @property
    def under_replicated(self) -> int:
        return sum(partition.is_under_replicated for partition in self.partitions)


def find_topics(admin: Admin, names: Sequence[str] | None) -> list[DescribedTopic]:
    """Topics by name; None: all. Raises ToolError when one does not exist."""
    found = admin.describe_topics(None if names is None else list(dict.fromkeys(names)))
    for topic in found:
        if topic["error_code"] == kafka.errors.UnknownTopicOrPartitionError.errno:
            raise no_topic(topic["name"], topic_names(admin))
        if topic["error_code"]:
            raise ToolError(f"{topic['name']}: {refusal(topic['error_code'], None)}")
    return sorted((_topic(topic) for topic in found), key=lambda topic: topic.name)


def no_partition(topic: str, number: int, count: int) -> ToolError:
    """What to raise where a topic has fewer partitions."""
    return ToolError(f"{topic} has no partition {number}, only 0 to {count - 1} (UNKNOWN_TOPIC_OR_PARTITION)")


def _topic(topic: dict[str, Any]) -> DescribedTopic:
    partitions = (
        TopicPartitionInfo(
            p["partition_index"],
            p["leader_id"] if p["leader_id"] >= 0 else None,
            tuple(p["replica_nodes"]),
            tuple(p["isr_nodes"]),
            tuple(p.get("offline_replicas") or ()),
        )
        for p in topic["partitions"]
    )
    return DescribedTopic(
        topic["name"],
        _id_text(topic.get("topic_id")),
        bool(topic["is_internal"]),
        tuple(sorted(partitions, key=lambda partition: partition.number)),
    )


def _id_text(topic_id: object) -> str:
    """As Kafka's own tools show it: base64 for URLs, without padding; empty where the broker has no ids."""
    number = uuid.UUID(str(topic_id)) if topic_id else uuid.UUID(int=0)
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=") if number.int else ""


def chosen_partitions(admin: Admin, texts: Sequence[str]) -> list[tuple[DescribedTopic, TopicPartitionInfo]]:
    """The partitions that ``NAME`` and ``NAME:0,1`` stand for, each once. Raises ToolError."""
    chosen: dict[Key, tuple[DescribedTopic, TopicPartitionInfo]] = {}
    for text in texts:
        name, colon, numbers = text.partition(":")
        if colon and not all(number.strip().isdigit() for number in numbers.split(",")):
            raise UsageError(f"--topic takes NAME or NAME:0,1,…, not {text!r}")
        (topic,) = find_topics(admin, [name])
        there = {partition.number: partition for partition in topic.partitions}
        wanted = [int(number) for number in numbers.split(",")] if colon else list(there)
        for number in wanted:
            if number not in there:
                raise no_partition(name, number, len(there))
            chosen[name, number] = (topic, there[number])
    return list(chosen.values())


@dataclasses.dataclass(frozen=True)
class TopicSettings:
    """The settings of a topic."""

    overrides: Mapping[str, str]
    """Those that were set on the topic itself."""
    min_isr: int | None
    """The value in force, wherever it was set; None if the brokers don't say."""


def topic_settings(admin: Admin, topics: Iterable[DescribedTopic]) -> dict[str, TopicSettings]:
    """Settings by topic."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic.name) for topic in topics]
    if not resources:
        return {}
    described = admin.describe_configs(resources, config_filter="all")["topic"]
    return {name: _settings(entries) for name, entries in described.items()}


def _settings(entries: Mapping[str, Mapping[str, Any]]) -> TopicSettings:
    overrides = {n: entry["value"] for n, entry in entries.items() if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG"}
    min_isr = entries.get(_MIN_ISR)
    return TopicSettings(overrides, None if min_isr is None else int(min_isr["value"]))


def refusing_acks_all(admin: Admin, name: str) -> str | None:
    """Why ``acks=all`` is refused by a partition of a topic, where it is. Raises KafkaError, ToolError."""
    topics = find_topics(admin, [name])
    min_isr = topic_settings(admin, topics)[name].min_isr
    for partition in topics[0].partitions:
        where = f"{name}-{partition.number}"
        if partition.leader is None:
            return f"{where} has no leader, because brokers {','.join(map(str, partition.isr))} are down"
        if partition.is_under_min_isr(min_isr):
            return f"{where} has {len(partition.isr)} replicas in sync, fewer than min.insync.replicas={min_isr}"
    return None


class OnLeader(NamedTuple):
    """What the leader of a partition has: from which offset to before which, and bytes, None where it does not say."""

    start: int
    end: int
    size: int | None


def on_leaders(admin: Admin, topics: Sequence[DescribedTopic]) -> dict[Key, OnLeader]:
    """What the leaders have of their partitions; nothing of those whose leader does not answer."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for partition in topic.partitions:
            if partition.leader is not None:
                by_leader.setdefault(partition.leader, []).append(TopicPartition(topic.name, partition.number))
    found = {}
    for leader, led in by_leader.items():
        try:
            starts = admin.list_partition_offsets(dict.fromkeys(led, OffsetSpec.EARLIEST), timeout_ms=_LEADER_MS)
            ends = admin.list_partition_offsets(dict.fromkeys(led, OffsetSpec.LATEST), timeout_ms=_LEADER_MS)
            sizes = sizes_on(admin, leader, led)
        except kafka.errors.KafkaError:
            continue
        for where in led:
            key = (where.topic, where.partition)
            found[key] = OnLeader(starts[where].offset, ends[where].offset, sizes.get(key))
    return found


def sizes_on(admin: Admin, broker_id: int, partitions: Iterable[TopicPartition]) -> dict[Key, int]:
    """Bytes of partitions on one broker."""
    wanted: dict[str, list[int]] = {}
    for topic, number in partitions:
        wanted.setdefault(topic, []).append(number)
    (broker,) = admin.describe_log_dirs(wanted, brokers=[broker_id])
    return {
        (topic["name"], partition["partition_index"]): partition["partition_size"]
        for folder in broker["log_dirs"]
        for topic in folder["topics"]
        for partition in topic["partitions"]
        if not partition["is_future_key"]
    }
