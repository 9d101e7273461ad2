"""``ottla spark archive --compact``: few large files, and each record once for every reader, wherever it was broken off."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat, fill, positions, span, value_of
from ottla.spark import archive as archive_job
from ottla.spark.archive import Archive, run
from ottla.spark.compaction import Compacted, compact
from ottla.spark.files import Files
from ottla.spark.query import JobError
from ottla.spark.sink_log import SinkLog, archive_files

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("archive job")]
MakeTopic = Callable[..., str]
DAY_MS = 86_400_000
BEGIN_MS = int(time.time() * 1000)
"""Days are counted from here, so that midnight may pass. Day -1 is not over before all tests are."""
FUTURE = {"message.timestamp.after.max.ms": str(2 * DAY_MS)}
TARGET = 1_000_000


def fill_days(stock: ClientSession, topic: str, count: int, *days_ago: int, first: int = 0) -> None:
    """Write ``count`` numbered records for each day to both partitions, in turns."""
    producer = stock.producer(linger_ms=5)
    for number in range(first, first + count):
        for ago in days_ago:
            for partition in (0, 1):
                value = value_of(partition, number)
                producer.send(topic, value, partition=partition, timestamp_ms=BEGIN_MS - ago * DAY_MS)
    producer.flush()


def day(ago: int) -> str:
    """The name of a day's folder."""
    return f"date={datetime.fromtimestamp((BEGIN_MS - ago * DAY_MS) / 1000, UTC).date()}"


def as_others_see_it(lake: str) -> list[tuple[int, int]]:
    """Partition and offset of all that lies in the folders, sorted, as a reader that knows nothing of Spark's lists has it."""
    import pyarrow.dataset

    table = pyarrow.dataset.dataset(lake, partitioning="hive").to_table(columns=["partition", "offset"])
    return sorted(zip(*(table[name].to_pylist() for name in ("partition", "offset")), strict=True))


def both(*ends: int) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, end in enumerate(ends) for offset in range(end)]


def test_days_that_are_over_become_one_file(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(2, **FUTURE)
    fill_days(stock, topic, 30, -1, 2, 3)
    lake = str(tmp_path / "the lake")
    job = Archive(kafka.bootstrap, lake, topics=(topic,), max_offsets_per_trigger=60, compact_bytes=TARGET)
    done: list[Compacted] = []
    assert run(kafka.spark, job, report=done.append) == 180
    assert [(each.folder, each.after) for each in done] == [(f"topic={topic}/{day(ago)}", 1) for ago in (3, 2)]
    assert all(each.before >= 3 for each in done)
    folders = {path.name: list(path.glob("*.parquet")) for path in (Path(lake) / f"topic={topic}").iterdir()}
    assert [len(folders[day(ago)]) for ago in (3, 2)] == [1, 1]
    assert len(folders[day(-1)]) >= 3
    assert positions(kafka.spark.read.parquet(lake)) == span(topic, 90, 90)
    assert as_others_see_it(lake) == both(90, 90)
    (whole,) = folders[day(3)]
    rows = kafka.spark.read.parquet(str(whole)).collect()
    assert [(row.partition, row.offset) for row in rows] == sorted((row.partition, row.offset) for row in rows)
    assert {bytes(row.value) for row in rows} == {value_of(partition, n) for partition in (0, 1) for n in range(30)}
    assert sorted(archive_files(lake)) == sorted(str(path) for paths in folders.values() for path in paths)

    fill_days(stock, topic, 10, 3, first=30)
    done.clear()
    assert run(kafka.spark, job, report=done.append) == 20
    assert [each.folder for each in done] == [f"topic={topic}/{day(3)}"]
    assert positions(kafka.spark.read.parquet(lake)) == span(topic, 100, 100)
    assert as_others_see_it(lake) == both(100, 100)
    assert run(kafka.spark, replace(job, compact_bytes=None)) == 0


def test_large_files_are_about_as_large_as_wanted(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(2, **FUTURE)
    fill_days(stock, topic, 600, 1)
    lake = str(tmp_path / "lake")
    run(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic,), max_offsets_per_trigger=100))
    sizes = [Path(file).stat().st_size for file in archive_files(lake)]
    compact(kafka.spark, lake, 3 * max(sizes))
    assert len(archive_files(lake)) == -(-sum(sizes) // (3 * max(sizes))) < len(sizes) // 2
    assert positions(kafka.spark.read.parquet(lake)) == span(topic, 600, 600)
    assert as_others_see_it(lake) == both(600, 600)


class Killed(BaseException):
    """The job ends here, and nothing that it would still do is done."""


MOMENTS = ("before the move", "before the switch", "in the switch", "after the switch", "between two deletions")
"""When the compaction of a folder is broken off; the switch is the change of Spark's list."""


def kill(patch: pytest.MonkeyPatch, moment: str) -> None:
    """Let the next compaction be killed at this moment."""

    here = threading.get_ident()
    rename = os.replace

    def killed(*_: Any) -> Any:
        raise Killed

    def killed_here(source: Any, target: Any) -> None:
        if threading.get_ident() == here:
            raise Killed
        rename(source, target)  # for the broker, which is a thread of this process

    def switched(log: SinkLog, *arguments: Any) -> None:
        switch(log, *arguments)
        left = [None] * MOMENTS[3:].index(moment)

        def deleted(files: Files, path: str) -> None:
            if not left:
                raise Killed
            left.pop()
            delete(files, path)

        patch.setattr(Files, "delete", deleted)

    switch, delete = SinkLog.replace, Files.delete
    match moment:
        case "before the move":
            patch.setattr(Files, "move", killed)
        case "before the switch":
            patch.setattr(SinkLog, "replace", killed)
        case "in the switch":
            patch.setattr(os, "replace", killed_here)
        case _:
            patch.setattr(SinkLog, "replace", switched)


def test_broken_off_anywhere(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(2, **FUTURE)
    fill_days(stock, topic, 12, *range(1, len(MOMENTS) + 1))
    total = 12 * len(MOMENTS)
    lake = str(tmp_path / "lake")
    run(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic,), max_offsets_per_trigger=40))
    for moment in MOMENTS:
        with monkeypatch.context() as patch:
            kill(patch, moment)
            with pytest.raises(Killed):
                compact(kafka.spark, lake, TARGET)
        assert positions(kafka.spark.read.parquet(lake)) == span(topic, total, total), moment
        assert set(as_others_see_it(lake)) == set(both(total, total)), moment
    fill_days(stock, topic, 10, -1, first=12)
    run(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic,), compact_bytes=TARGET))
    assert positions(kafka.spark.read.parquet(lake)) == span(topic, total + 10, total + 10)
    assert as_others_see_it(lake) == both(total + 10, total + 10)
    folders = (Path(lake) / f"topic={topic}").iterdir()
    assert {len(list(folder.glob("*.parquet"))) for folder in folders if folder.name != day(-1)} == {1}
    assert not (Path(lake) / "_compaction").exists()


@pytest.mark.parametrize("method", ["replace", "_replace"])
def test_a_list_is_replaced(method: str, kafka: KafkaFormat, tmp_path: Path) -> None:
    """``_replace`` is the way through Hadoop's interface, for other file systems than local ones."""
    path = tmp_path / "9.compact"
    path.write_text("old")
    path.chmod(0o644)
    files = Files(kafka.spark)
    getattr(files, method)(files.absolute(str(path)), "v1\nnew")
    assert files.read(str(path)) == "v1\nnew"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [other.name for other in tmp_path.iterdir() if other.name.endswith(".tmp")] == []


def test_what_it_refuses(kafka: KafkaFormat, stock: ClientSession, topic: str, tmp_path: Path) -> None:
    fill(stock, topic, 10)
    lake = tmp_path / "lake"
    job = Archive(kafka.bootstrap, str(lake), topics=(topic,), compact_bytes=TARGET)
    run(kafka.spark, job)
    with (lake / archive_job.LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(JobError, match="another archive job is writing to"):
            run(kafka.spark, job)
    moved = lake.rename(tmp_path / "moved")
    with pytest.raises(JobError, match="it was moved"):
        compact(kafka.spark, str(moved), TARGET)
    assert as_others_see_it(str(moved)) == both(10)
