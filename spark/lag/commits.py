"""The last commits of each group in each partition, from ``__consumer_offsets``.

All commits of a group for a partition are in one partition of that topic, so one task gets them in their order: it decodes
them with the broker's own schemas, and keeps a window for each group and partition. Spark's own Kafka source omits internal
topics, so tasks read with confluent-kafka.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...wire.coordinator_records import decode_coordinator_key, decode_coordinator_value
from ...wire.messages.consumer_offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ..bootstrap_servers import confluent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFFSETS_TOPIC = "__consumer_offsets"
EARLIEST = -2
_TIMEOUT_S = 60.0
Span = tuple[int, int, int]
"""A partition, and the offsets to read: from the first, to before the second."""


class GroupTopicPartition(NamedTuple):
    """A group and a partition."""

    group: str
    topic: str
    partition: int


@dataclass
class CommitWindow:
    """The last commits of a group in one partition."""

    commits: deque[tuple[int, int]]
    """Pairs of offset and timestamp in ms, oldest first."""
    is_cleared: bool = False
    """Whether older commits were deleted."""


def read_windows(
    spark: SparkSession,
    bootstrap_servers: str,
    groups: str,
    size: int,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
) -> dict[GroupTopicPartition, CommitWindow]:
    """The last ``size`` commits of groups whose whole name matches, in these spans of the topic, by its partitions.

    The ends are those of read_committed. Errors of the client are raised, wrapped by Spark.
    """
    spans = [(partition, starts.get(partition, EARLIEST), end) for partition, end in ends.items()]
    new = [(partition, start, end) for partition, start, end in spans if max(start, 0) < end]
    if not new:
        return {}
    context = spark.sparkContext
    tasks = context.parallelize(new, min(len(new), context.defaultParallelism))
    return dict(tasks.mapPartitions(lambda some: _windows(bootstrap_servers, groups, size, list(some))).collect())


def _windows(
    bootstrap_servers: str, groups: str, size: int, spans: Sequence[Span]
) -> Iterator[tuple[GroupTopicPartition, CommitWindow]]:
    """The work of a task."""
    pattern = re.compile(groups)
    found: dict[GroupTopicPartition, CommitWindow] = {}
    for key, value in _records(bootstrap_servers, spans):
        note(found, key, value, pattern, size)
    return iter(found.items())


def _records(bootstrap_servers: str, spans: Sequence[Span]) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Key and value of all records in these spans of the topic."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    consumer = Consumer(
        {
            **confluent(bootstrap_servers),
            "group.id": "ottla-lag",  # required by the client; no group is joined
            "enable.auto.commit": False,
            # Offsets of aborted transactions do not count.
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(OFFSETS_TOPIC, partition, start) for partition, start, _ in spans])
        left = {partition: end for partition, _, end in spans}
        while left:
            message = consumer.poll(_TIMEOUT_S)
            if message is None:
                raise RuntimeError(f"{OFFSETS_TOPIC}: the brokers do not answer")
            error, partition = message.error(), message.partition()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if error is not None or message.offset() >= left.get(partition, 0):
                left.pop(partition, None)
            else:
                yield message.key(), message.value()
    finally:
        consumer.close()


def note(
    found: dict[GroupTopicPartition, CommitWindow],
    key: bytes | None,
    value: bytes | None,
    groups: re.Pattern[str],
    size: int,
) -> None:
    """Add one record of the topic to the windows; other kinds of records are ignored. Raises ProtocolError."""
    decoded = None if key is None else decode_coordinator_key(key)
    if not isinstance(decoded, LegacyOffsetCommitKey | OffsetCommitKey) or not groups.fullmatch(decoded.group):
        return
    place = GroupTopicPartition(decoded.group, decoded.topic, decoded.partition)
    if value is None:
        found[place] = CommitWindow(deque(maxlen=size), is_cleared=True)
        return
    commit = decode_coordinator_value(decoded, value)
    assert isinstance(commit, LegacyOffsetCommitValue | OffsetCommitValue)
    window = found.setdefault(place, CommitWindow(deque(maxlen=size)))
    window.commits.append((commit.offset, commit.commit_timestamp))
