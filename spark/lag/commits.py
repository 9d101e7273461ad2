"""The last commits of each group in each partition, out of ``__consumer_offsets``.

All commits of a group are in one partition of that topic, and so come to one task in their order: it decodes them with
the broker's own schemas, and keeps a window for each group and partition.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...wire.coordinator_records import decode_coordinator_key, decode_coordinator_value
from ...wire.messages.consumer_offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ..query import READER_DEFAULTS

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

OFFSETS_TOPIC = "__consumer_offsets"
EARLIEST = -2
_PLAN_WITH_CONSUMER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
_RESULT = (
    "group STRING, topic STRING, partition INT, is_cleared BOOLEAN, offsets ARRAY<LONG>, timestamps_ms ARRAY<LONG>"
)


class Place(NamedTuple):
    """A group's place in a partition."""

    group: str
    topic: str
    partition: int


@dataclass
class Window:
    """Commits as (offset, timestamp in ms), oldest first. ``is_cleared``: what was committed before them was deleted."""

    commits: deque[tuple[int, int]]
    is_cleared: bool = False


def read_windows(
    spark: SparkSession,
    bootstrap_servers: str,
    groups: str,
    size: int,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
) -> dict[Place, Window]:
    """The last ``size`` commits of groups whose whole name matches, between these offsets of the topic, by its partition."""
    records = (
        spark.read.format("kafka")
        .options(**READER_DEFAULTS)
        .option("kafka.bootstrap.servers", bootstrap_servers)
        # Offsets committed in transactions that were aborted are none.
        .option("kafka.isolation.level", "read_committed")
        .option("assign", json.dumps({OFFSETS_TOPIC: list(ends)}))
        .option("startingOffsets", _offsets({partition: starts.get(partition, EARLIEST) for partition in ends}))
        .option("endingOffsets", _offsets(ends))
        .option("failOnDataLoss", "false")
        .load()
    )
    windows = records.select("key", "value").mapInArrow(lambda batches: _windows(batches, groups, size), _RESULT)
    with _internal_topics_readable(spark):
        rows = windows.collect()
    return {
        Place(row.group, row.topic, row.partition): Window(
            deque(zip(row.offsets, row.timestamps_ms, strict=True), size), row.is_cleared
        )
        for row in rows
    }


@contextmanager
def _internal_topics_readable(spark: SparkSession) -> Iterator[None]:
    """Let Spark plan with a consumer: where it plans with an admin client, it leaves internal topics out."""
    before = spark.conf.get(_PLAN_WITH_CONSUMER)
    spark.conf.set(_PLAN_WITH_CONSUMER, "true")
    try:
        yield
    finally:
        spark.conf.set(_PLAN_WITH_CONSUMER, before)


def _offsets(by_partition: Mapping[int, int]) -> str:
    return json.dumps({OFFSETS_TOPIC: {str(partition): offset for partition, offset in by_partition.items()}})


def _windows(batches: Iterator[pyarrow.RecordBatch], groups: str, size: int) -> Iterator[pyarrow.RecordBatch]:
    """What a task does."""
    import pyarrow

    pattern = re.compile(groups)
    found: dict[Place, Window] = {}
    for batch in batches:
        for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
            note(found, key, value, pattern, size)
    yield pyarrow.RecordBatch.from_pydict(
        {
            "group": pyarrow.array([place.group for place in found], pyarrow.string()),
            "topic": pyarrow.array([place.topic for place in found], pyarrow.string()),
            "partition": pyarrow.array([place.partition for place in found], pyarrow.int32()),
            "is_cleared": pyarrow.array([window.is_cleared for window in found.values()], pyarrow.bool_()),
            "offsets": _longs([[offset for offset, _ in window.commits] for window in found.values()]),
            "timestamps_ms": _longs([[timestamp for _, timestamp in window.commits] for window in found.values()]),
        }
    )


def _longs(lists: list[list[int]]) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(lists, pyarrow.list_(pyarrow.int64()))


def note(
    found: dict[Place, Window], key: bytes | None, value: bytes | None, groups: re.Pattern[str], size: int
) -> None:
    """Take one record of the topic into the windows; records of other kinds are passed over. Raises ProtocolError."""
    decoded = None if key is None else decode_coordinator_key(key)
    if not isinstance(decoded, LegacyOffsetCommitKey | OffsetCommitKey) or not groups.fullmatch(decoded.group):
        return
    place = Place(decoded.group, decoded.topic, decoded.partition)
    if value is None:
        found[place] = Window(deque(maxlen=size), is_cleared=True)
        return
    commit = decode_coordinator_value(decoded, value)
    assert isinstance(commit, LegacyOffsetCommitValue | OffsetCommitValue)
    window = found.setdefault(place, Window(deque(maxlen=size)))
    window.commits.append((commit.offset, commit.commit_timestamp))
