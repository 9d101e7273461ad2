"""``ottla spark archive``: topics to Parquet, with nothing lost or doubled when it is killed in the middle."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, KafkaFormat, fill, positions, span, value_of
from ottla.compat_tests.spark.killing import kill_all
from ottla.spark.archive import Archive, run
from ottla.spark.query import JobControl, JobError, QueryProgress

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("archive job")]
MakeTopic = Callable[..., str]


def committed(stock: ClientSession, group_id: str, topic: str) -> dict[int, int]:
    """By partition."""
    return {number: at.offset for (name, number), at in stock.admin.group_offsets(group_id).items() if name == topic}


def test_columns_folders_and_batches(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    orders, payments = make_topic(2), make_topic(1)
    midnight = int(time.time() * 1000) // 86_400_000 * 86_400_000
    producer = stock.producer()
    producer.send(orders, b"yesterday", key=b"k", partition=0, timestamp_ms=midnight - 1, headers=[("h", b"1")])
    producer.send(orders, None, key=b"tombstone", partition=1, timestamp_ms=midnight)
    producer.flush()
    fill(stock, payments, 100)
    job = Archive(kafka.bootstrap, str(tmp_path / "lake"), topics=(orders, payments), max_offsets_per_trigger=60)
    progress: list[QueryProgress] = []
    assert run(kafka.spark, job, JobControl(lambda name, batch: progress.append(batch))) == 102
    assert sum(batch.records for batch in progress) == 102
    assert [batch.batch for batch in progress] == [0, 1]
    frame = kafka.spark.read.parquet(job.output)
    assert dict(frame.dtypes) == {
        "key": "binary",
        "value": "binary",
        "headers": "array<struct<key:string,value:binary>>",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "date": "date",
    }
    rows = frame.where(frame.topic == orders).orderBy("partition")
    first, second = rows.selectExpr("*", "CAST(date AS STRING) AS day", "unix_millis(timestamp) AS at").collect()
    assert (first.key, first.value, [tuple(header) for header in first.headers]) == (b"k", b"yesterday", [("h", b"1")])
    assert (second.key, second.value, second.headers) == (b"tombstone", None, None)
    assert (first["at"], second["at"]) == (midnight - 1, midnight)
    days = {path.name for path in (tmp_path / "lake" / f"topic={orders}").iterdir()}
    assert days == {f"date={first.day}", f"date={second.day}"}
    assert first.day < second.day


def test_a_second_run_adds_what_is_new(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, group_id: str, tmp_path: Path
) -> None:
    topic = make_topic(2)
    job = Archive(kafka.bootstrap, str(tmp_path / "lake"), pattern=f"{topic}.*", hourly=True, group=group_id)
    for total in (50, 100):
        fill(stock, topic, 50, 50, first=total - 50)
        assert run(kafka.spark, job) == 100
        assert positions(kafka.spark.read.parquet(job.output)) == span(topic, total, total)
        assert committed(stock, group_id, topic) == {0: total, 1: total}
    assert run(kafka.spark, job) == 0
    assert list((tmp_path / "lake" / f"topic={topic}").glob("date=*/hour=*/*.parquet"))


def test_what_it_refuses(kafka: KafkaFormat, stock: ClientSession, topic: str, tmp_path: Path) -> None:
    fill(stock, topic, 10)
    unknown = Archive(kafka.bootstrap, str(tmp_path / "other"), topics=(f"{topic}-unknown",))
    with pytest.raises(JobError, match="unknown topic"):
        run(kafka.spark, unknown)
    lake = str(tmp_path / "lake")
    run(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic,)))
    with pytest.raises(JobError, match="a checkpoint other than"):
        run(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic,), checkpoint=str(tmp_path / "new")))
    fill(stock, topic, 10)
    stock.admin.delete_records(topic, 0, 15)
    with pytest.raises(JobError, match="data may have been lost"):
        run(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic,)))
    assert run(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic,), fail_on_data_loss=False)) == 5
    assert positions(kafka.spark.read.parquet(lake)) == span(topic, 10) + span(topic, 20, start=15)


def start_archive(kafka: KafkaFormat, topic: str, lake: Path) -> subprocess.Popen[str]:
    """The command in a session of its own, so that its JVM can be killed with it."""
    command = [sys.executable, "-m", "ottla", "spark", "archive", "--bootstrap-server", kafka.bootstrap]
    command += ["--topics", topic, "--output", str(lake), "--max-offsets-per-trigger", "400", "--master", "local[2]"]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


@pytest.mark.timeout(900)  # Spark is started twice
def test_killed_in_the_middle(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(2)
    fill(stock, topic, 2000, 2000)
    lake = tmp_path / "lake"
    job = start_archive(kafka, topic, lake)
    try:
        assert job.stdout is not None
        assert job.stdout.readline() == "batch 0: 400 records\n"
    finally:
        kill_all(job)
    job.communicate()
    archived = kafka.spark.read.parquet(str(lake))
    assert 400 <= archived.count() < 4000
    assert archived.count() == archived.select("partition", "offset").distinct().count()

    again = start_archive(kafka, topic, lake)
    output, _ = again.communicate(timeout=2 * PATIENCE_S)
    assert again.returncode == 0
    assert output.splitlines()[-1].startswith("archived ")
    rows = kafka.spark.read.parquet(str(lake)).collect()
    assert sorted((row.partition, row.offset, row.value) for row in rows) == [
        (partition, number, value_of(partition, number)) for partition in (0, 1) for number in range(2000)
    ]
    assert committed(stock, "ottla-archive-lake", topic) == {0: 2000, 1: 2000}
