"""``ottla spark lag``: what groups have committed on a real broker, judged by Burrow's rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.spark.kafka_format import KafkaFormat, fill
from ottla.spark.lag.job import GroupLag, Lag, LagTracker, run

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("lag job")]
HOUR_MS = 3_600_000


def now_ms() -> int:
    return int(time.time() * 1000)


def commit(stock: ClientSession, group: str, topic: str, offset: int, partition: int = 0) -> None:
    """And let the clock go on, so that no two commits, and no commit and record, have the same time."""

    def is_done() -> bool:
        try:
            stock.admin.alter_group_offsets(group, {(topic, partition): model.Committed(offset)})
        except model.ClientFailure as failure:
            # The first group of all makes the coordinators' topic.
            if failure.code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
                raise
            return False
        return True

    eventually(is_done)
    tick()


def tick() -> None:
    before = now_ms()
    eventually(lambda: now_ms() > before + 1)


class Groups:
    """The job's looks at the groups of one test."""

    def __init__(self, kafka: KafkaFormat, name: str, window: int = 10) -> None:
        self._watch = LagTracker(kafka.spark, Lag(kafka.bootstrap, groups=f"{name}.*", window=window))

    def look(self, at_ms: int | None = None) -> dict[str, GroupLag]:
        """All of them, at this time or now."""
        return {group.group: group for group in self._watch.look(at_ms or now_ms())}

    def just_after(self, group: str) -> GroupLag:
        """One of them, right after its last commit, when it has not stopped yet."""
        last = self.look()[group].partitions[0].commits[-1].timestamp_ms
        return self.look(last + 1)[group]


@pytest.mark.parametrize(
    ("status", "produced", "committed", "lags"),
    [
        ("OK", [10, 10], [10, 20], [0, 0]),
        ("OK", [30, 0, 0], [5, 10, 20], [25, 20, 10]),
        ("WARNING", [10, 10, 10], [1, 2, 3], [9, 18, 27]),
        ("STALLED", [10, 0, 5], [3, 3, 3], [7, 7, 12]),
        ("REWIND", [10, 0, 0], [5, 8, 2], [5, 2, 8]),
    ],
)
def test_statuses(
    kafka: KafkaFormat,
    stock: ClientSession,
    topic: str,
    group_id: str,
    status: str,
    produced: Sequence[int],
    committed: Sequence[int],
    lags: Sequence[int],
) -> None:
    for count, offset in zip(produced, committed, strict=True):
        fill(stock, topic, count)
        tick()
        commit(stock, group_id, topic, offset)
    found = Groups(kafka, group_id).just_after(group_id)
    assert (found.status.name, found.lag) == (status, lags[-1])
    (partition,) = found.partitions
    assert [(each.offset, each.lag) for each in partition.commits] == list(zip(committed, lags, strict=True))
    assert (partition.offset, partition.end) == (committed[-1], sum(produced))


def test_a_group_that_stopped(
    kafka: KafkaFormat, stock: ClientSession, make_topic: Callable[..., str], group_id: str
) -> None:
    topic = make_topic(3)
    fill(stock, topic, 10, 10)
    tick()
    for offset in (1, 2, 3):
        commit(stock, group_id, topic, 10)
        commit(stock, group_id, topic, offset, partition=1)
    groups = Groups(kafka, group_id)
    later = groups.look(now_ms() + HOUR_MS)[group_id]
    # What it has read to the end is no trouble however long ago that was.
    assert [(each.place.partition, each.status.name) for each in later.partitions] == [(0, "OK"), (1, "STOPPED")]
    assert (later.status.name, later.lag) == ("STOPPED", 7)
    # It was at the end within the last two minutes, so records that come now do not mean that it stopped.
    fill(stock, topic, 5)
    assert groups.look()[group_id].partitions[0].status.name == "OK"
    assert groups.look(now_ms() + HOUR_MS)[group_id].partitions[0].status.name == "STOPPED"


def test_each_look_adds_what_is_new(
    kafka: KafkaFormat, stock: ClientSession, make_topic: Callable[..., str], group_id: str, tmp_path: Path
) -> None:
    topic = make_topic(1)
    fill(stock, topic, 20)
    groups = Groups(kafka, group_id, window=3)

    def offsets() -> dict[str, list[int]]:
        return {name: [each.offset for each in group.partitions[0].commits] for name, group in groups.look().items()}

    assert offsets() == {}
    first, second = f"{group_id}-1", f"{group_id}-2"
    for offset in (1, 2):
        commit(stock, first, topic, offset)
    assert offsets() == {first: [1, 2]}
    for offset in (3, 4):
        commit(stock, first, topic, offset)
    commit(stock, second, topic, 7)
    assert offsets() == {first: [2, 3, 4], second: [7]}
    stock.admin.delete_group(first)
    assert eventually(lambda: offsets() == {second: [7]})
    run(kafka.spark, Lag(kafka.bootstrap, groups=second, output=str(tmp_path / "lag")), lambda at, found: None)
    (row,) = kafka.spark.read.parquet(str(tmp_path / "lag")).collect()
    assert (row.group, row.topic, row.partition, row.offset, row.end, row.lag) == (second, topic, 0, 7, 20, 13)
    stock.admin.delete_topic(topic)
    assert eventually(lambda: offsets() == {})


def test_offsets_of_transactions(
    kafka: KafkaFormat, stock: ClientSession, topic: str, group_id: str, fresh_name: Callable[[str], str]
) -> None:
    fill(stock, topic, 10)
    consumer = stock.consumer(group_id=group_id)
    producer = stock.producer(transactional_id=fresh_name("lag"))
    for offset, is_committed in ((4, True), (9, False)):
        producer.begin()
        producer.send_offsets({(topic, 0): offset}, consumer.group())
        (producer.commit if is_committed else producer.abort)()
    groups = Groups(kafka, group_id)
    found = eventually(groups.look)[group_id]
    assert [each.offset for each in found.partitions[0].commits] == [4]
