"""Runs the lag job: evaluates the groups once, or repeatedly, each time reading only new commits."""

from __future__ import annotations

import datetime
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..kafka_admin import admin_client
from ..query import Partition, spark_failures
from ..reader import check_pattern
from .commits import OFFSETS_TOPIC, GroupTopicPartition, read_windows
from .rules import Commit, LagStatus, judge

if TYPE_CHECKING:
    from kafka import KafkaAdminClient
    from pyspark.sql import SparkSession

# Burrow considers the last ten ends of a partition, which it fetches every ten seconds.
LATELY_MS = 100_000
_COLUMNS = "date DATE, time TIMESTAMP, group STRING, topic STRING, partition INT, offset LONG, end LONG, lag LONG, status STRING"


@dataclass(frozen=True)
class Lag:
    """The groups whose lag to judge, and where to write it."""

    bootstrap_servers: str
    groups: str = ".*"
    """A pattern."""
    window: int = 10
    """The number of commits that a judgement looks at."""
    every_s: float | None = None
    """None for one look."""
    output: str | None = None
    """A folder or URI; None stores nothing."""

    def __post_init__(self) -> None:
        check_pattern("the pattern of groups", self.groups)


@dataclass(frozen=True)
class PartitionLag:
    """A group in one partition: its commits in the window, and the partition's end."""

    place: GroupTopicPartition
    status: LagStatus
    end: int
    commits: tuple[Commit, ...]

    @property
    def offset(self) -> int:
        """The offset of the last commit."""
        return self.commits[-1].offset

    @property
    def lag(self) -> int:
        """Records that are not read yet."""
        return max(self.end - self.offset, 0)


@dataclass(frozen=True)
class GroupLag:
    """A group in all partitions for which it has committed, in their order."""

    group: str
    partitions: tuple[PartitionLag, ...]

    @property
    def status(self) -> LagStatus:
        """The status of the worst partition."""
        return max(partition.status for partition in self.partitions)

    @property
    def lag(self) -> int:
        """The sum over all partitions."""
        return sum(partition.lag for partition in self.partitions)


def run(
    spark: SparkSession,
    lag: Lag,
    report: Callable[[int, list[GroupLag]], None],
    stop: threading.Event | None = None,
) -> None:
    """Look once, or every ``every_s`` seconds until ``stop`` is set; ``report`` is called with the time in ms and the groups.

    Raises JobError.
    """
    stop = stop or threading.Event()
    watch = LagTracker(spark, lag)
    with spark_failures():
        while True:
            now_ms = int(time.time() * 1000)
            groups = watch.look(now_ms)
            if lag.output is not None:
                _store(spark, lag.output, now_ms, groups)
            report(now_ms, groups)
            if lag.every_s is None or stop.wait(lag.every_s):
                return


class LagTracker:
    """The windows of commits. It remembers how far ``__consumer_offsets`` has been read."""

    def __init__(self, spark: SparkSession, lag: Lag) -> None:
        self._spark = spark
        self._lag = lag
        self._read_to: dict[int, int] = {}
        self._windows: dict[GroupTopicPartition, deque[tuple[int, int]]] = {}

    def look(self, now_ms: int) -> list[GroupLag]:
        """All groups with commits, by name. Raises JobError, and the errors of Spark."""
        with admin_client(self._lag.bootstrap_servers) as admin:
            self._read_commits(admin)
            known = _partitions(admin)
            windows = {place: list(window) for place, window in self._windows.items() if place[1:] in known}
            ends = EndOffsets(admin, windows, now_ms)
            found = [ends.judged(place, window) for place, window in sorted(windows.items())]
        groups = defaultdict(list)
        for partition in found:
            groups[partition.place.group].append(partition)
        return [GroupLag(name, tuple(partitions)) for name, partitions in groups.items()]

    def _read_commits(self, admin: KafkaAdminClient) -> None:
        """Read the commits since the last look."""
        from kafka import IsolationLevel, TopicPartition
        from kafka.admin import OffsetSpec

        partitions = [TopicPartition(*each) for each in _partitions(admin) if each[0] == OFFSETS_TOPIC]
        if not partitions:
            return  # this cluster has never had a group
        latest = admin.list_partition_offsets(
            dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=IsolationLevel.READ_COMMITTED
        )
        ends = {where.partition: at.offset for where, at in latest.items()}
        lag = self._lag
        new = read_windows(self._spark, lag.bootstrap_servers, lag.groups, lag.window, self._read_to, ends)
        self._read_to = ends
        for place, window in new.items():
            before = self._windows.setdefault(place, deque(maxlen=lag.window))
            if window.is_cleared:
                before.clear()
            before.extend(window.commits)
            if not before:
                del self._windows[place]


class EndOffsets:
    """The ends of partitions, now and at past times, requested for all groups together."""

    def __init__(
        self, admin: KafkaAdminClient, windows: Mapping[GroupTopicPartition, Iterable[tuple[int, int]]], now_ms: int
    ) -> None:
        self._now_ms = now_ms
        times: dict[Partition, set[int]] = defaultdict(set)
        for place, commits in windows.items():
            times[place.topic, place.partition] |= {timestamp_ms for _, timestamp_ms in commits}
        self._now = _offsets(admin, dict.fromkeys(times, -1))
        self._at: dict[tuple[Partition, int], int] = {}
        wanted = {where: sorted({*at, now_ms - LATELY_MS}) for where, at in times.items()}
        # A request can have only one time for a partition.
        while round_ := {where: at.pop() for where, at in wanted.items() if at}:
            for where, offset in _offsets(admin, round_).items():
                self._at[where, round_[where]] = self._now[where] if offset < 0 else offset

    def judged(self, place: GroupTopicPartition, window: list[tuple[int, int]]) -> PartitionLag:
        """The lag and status that follow from a window of commits."""
        where = place.topic, place.partition
        commits = tuple(Commit(offset, at, max(self._at[where, at] - offset, 0)) for offset, at in window)
        end = self._now[where]
        lag = max(end - commits[-1].offset, 0)
        was_at_end_lately = self._at[where, self._now_ms - LATELY_MS] <= commits[-1].offset
        status = judge(commits, lag, self._now_ms, was_at_end_lately=was_at_end_lately)
        return PartitionLag(place, status, end, commits)


def _partitions(admin: KafkaAdminClient) -> set[Partition]:
    """All partitions of the cluster."""
    return {
        (topic["name"], partition["partition_index"])
        for topic in admin.describe_topics()
        for partition in topic["partitions"]
    }


def _offsets(admin: KafkaAdminClient, wanted: Mapping[Partition, int]) -> dict[Partition, int]:
    """The first offset with this timestamp or a later one, -1 if there is none; for the time -1, the end."""
    from kafka import TopicPartition

    if not wanted:
        return {}
    found = admin.list_partition_offsets({TopicPartition(*where): at for where, at in wanted.items()})
    return {(where.topic, where.partition): at.offset for where, at in found.items()}


def _store(spark: SparkSession, output: str, now_ms: int, groups: list[GroupLag]) -> None:
    """Append a row for each group and partition, in folders by date."""
    at = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC)
    rows = [
        (at.date(), at, *each.place, each.offset, each.end, each.lag, each.status.name)
        for group in groups
        for each in group.partitions
    ]
    if rows:
        frame = spark.createDataFrame(rows, _COLUMNS).coalesce(1)
        frame.write.mode("append").partitionBy("date").parquet(output)
