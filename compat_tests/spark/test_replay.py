"""``ottla spark replay``: records of a topic or an archive written once more, as they were, and each once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, KafkaFormat, fill, offsets, value_of
from ottla.compat_tests.spark.killing import kill_all
from ottla.compat_tests.wire_client import Operator
from ottla.spark.archive import Archive
from ottla.spark.archive import run as archive
from ottla.spark.query import JobError
from ottla.spark.replay import Replay, run

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("replay job")]
MakeTopic = Callable[..., str]
HOUR_MS = 3_600_000
BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1000)
KEPT = {"retention.ms": "-1"}
COMMITTED = {"kafka.isolation.level": "read_committed"}


def content(stock: ClientSession, topic: str, count: int, partition: int = 0) -> list[tuple[Any, ...]]:
    """Key, value, timestamp and headers of committed records, which are so many and no more."""
    found = stock.read(topic, count, partition=partition, read_committed=True)
    assert len(found) == count
    return [(each.key, each.value, each.timestamp_ms, each.headers) for each in found]


def committed(kafka: KafkaFormat, topic: str, partitions: int) -> list[tuple[int, bytes]]:
    """Partition and value of every committed record, sorted; of one without a value, none. No transaction may be left open."""
    Operator(kafka.bootstrap).wait_until_ended(topic, partitions)
    rows = kafka.read(subscribe=topic, **COMMITTED).collect()
    return sorted((row.partition, bytes(row.value or b"")) for row in rows)


def test_a_time_range_as_it_was(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    source, target = make_topic(2, **KEPT), make_topic(2, **KEPT)
    producer = stock.producer()
    sent: list[list[tuple[Any, ...]]] = [[], []]
    for number in range(20):
        record = (b"k%d" % number, None if number % 5 == 0 else b"v%d" % number, BEGIN_MS + number * HOUR_MS // 4)
        headers = (("h", b"1"), ("h", b"")) if number % 2 else ()
        key, value, timestamp_ms = record
        producer.send(source, value, key=key, partition=number % 2, timestamp_ms=timestamp_ms, headers=headers)
        sent[number % 2].append((*record, headers))
    producer.flush()
    job = Replay(kafka.bootstrap, target, (source,), since=BEGIN.replace(hour=11), until=BEGIN.replace(hour=13))
    job = replace(job, keep_partitions=True)
    assert run(kafka.spark, job) == 8
    for partition in (0, 1):
        assert content(stock, target, 4, partition) == sent[partition][2:6]
    assert run(kafka.spark, job) == 0
    assert run(kafka.spark, replace(job, name="once more", rate=1000.0)) == 8
    assert len(committed(kafka, target, 2)) == 16


def test_offsets_and_an_expression(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    source, target = make_topic(2), make_topic(1)
    fill(stock, source, 20, 20)
    job = Replay(
        kafka.bootstrap,
        target,
        (source,),
        starting_offsets={source: {"0": 5}},
        ending_offsets={source: {"0": 15, "1": 2}},
        where="CAST(CAST(key AS STRING) AS INT) % 2 = 0",
    )
    assert run(kafka.spark, job) == 6
    expected = [value_of(0, number) for number in (6, 8, 10, 12, 14)] + [value_of(1, 0)]
    assert committed(kafka, target, 1) == sorted((0, value) for value in expected)


def test_an_archive(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path) -> None:
    source, other, target = make_topic(2), make_topic(1), make_topic(3)
    fill(stock, source, 30, 30)
    fill(stock, other, 5)
    lake = str(tmp_path / "lake")
    for _ in range(2):
        archive(kafka.spark, Archive(kafka.bootstrap, lake, topics=(source, other), max_offsets_per_trigger=20))
    job = Replay(kafka.bootstrap, target, (source,), archive=lake, ending_offsets={source: {"1": 10}})
    job = replace(job, keep_partitions=True)
    assert run(kafka.spark, job) == 40
    for partition, count in ((0, 30), (1, 10)):
        values = [value for _, value, _, _ in content(stock, target, count, partition)]
        assert values == [value_of(partition, number) for number in range(count)]
    assert run(kafka.spark, job) == 0


def test_what_it_refuses(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path) -> None:
    source, target = make_topic(2), make_topic(1)
    fill(stock, source, 2, 2)
    job = Replay(kafka.bootstrap, target, (source,), keep_partitions=True)
    with pytest.raises(JobError, match=f"{target} has 1 partition, which is too few"):
        run(kafka.spark, job)
    with pytest.raises(JobError, match=f"has no topic {target}-unknown"):
        run(kafka.spark, replace(job, to_topic=f"{target}-unknown"))
    with pytest.raises(JobError, match="is not an archive"):
        run(kafka.spark, replace(job, archive=str(tmp_path)))
    with pytest.raises(JobError, match="NOT_A_COLUMN"):
        run(kafka.spark, replace(job, keep_partitions=False, where="not_a_column = 1".upper()))


def start(kafka: KafkaFormat, source: str, target: str, *more: str) -> subprocess.Popen[str]:
    """The command in a session of its own, so that its JVM and workers can be killed with it."""
    command = [sys.executable, "-m", "ottla", "spark", "replay", "--bootstrap-server", kafka.bootstrap]
    command += ["--topics", source, "--to-topic", target, "--master", "local[2]", *more]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@pytest.mark.timeout(900)  # Spark is started twice
def test_killed_in_the_middle(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    source, target = make_topic(2), make_topic(2)
    fill(stock, source, 2000, 2000)
    job = start(kafka, source, target, "--rate", "400")
    try:
        consumer = stock.consumer()
        eventually(lambda: consumer.watermarks(target, 0)[1] > 400, PATIENCE_S)
    finally:
        kill_all(job)
        job.communicate()
    ends = [consumer.watermarks(target, partition)[1] for partition in (0, 1)]
    again = start(kafka, source, target)
    output, _ = again.communicate(timeout=2 * PATIENCE_S)
    replayed = committed(kafka, target, 2)
    rest = kafka.read(subscribe=target, startingOffsets=offsets({target: dict(enumerate(ends))}), **COMMITTED).count()
    assert 0 < rest < 4000
    assert (again.returncode, output) == (0, f"replayed {rest:,} records to {target}\n")
    assert sorted(value for _, value in replayed) == sorted(
        value_of(partition, number) for partition in (0, 1) for number in range(2000)
    )
