"""``ottla spark audit``: a topic against its archive, and numbers against those that were produced."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat, fill
from ottla.compat_tests.wire_client import Operator
from ottla.spark.archive import Archive
from ottla.spark.archive import run as archive
from ottla.spark.audit import Audit, Compared, compare, records
from ottla.spark.files import File, Files
from ottla.spark.numbers import BLOCK, Numbers, PartitionNumbers, ProducerNumbers, count_numbers
from ottla.spark.query import JobError
from ottla.spark.sink_log import SinkFileStatus, SinkLog

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("audit job")]
MakeTopic = Callable[..., str]


def write_numbers(kafka: KafkaFormat, topic: str, partition: int, *numbers: Sequence[int]) -> None:
    """Write values to one partition, in this order."""
    values = [(str(number), partition) for part in numbers for number in part]
    kafka.write(kafka.spark.createDataFrame(values, "value STRING, partition INT").coalesce(1), topic=topic)


def numbers_of(kafka: KafkaFormat, topic: str, expected: int | None = None) -> Numbers:
    """The audit of a topic whose values are numbers."""
    audit = Audit(kafka.bootstrap, topics=(topic,), number="value", expected=expected)
    return count_numbers(records(kafka.spark, audit), audit)


def test_numbers_of_a_clean_topic(kafka: KafkaFormat, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    values = kafka.spark.range(2 * BLOCK + 10).coalesce(1).selectExpr("CAST(id AS STRING) AS value")
    kafka.write(values, topic=topic)
    found = numbers_of(kafka, topic)
    assert found.is_clean
    assert found.producers == [ProducerNumbers(topic, "", 2 * BLOCK + 10, 0, 0)]
    assert sum(each.records for each in found.partitions) == 2 * BLOCK + 10


def test_what_is_wrong_with_numbers(kafka: KafkaFormat, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    # Lost are 3, a stretch over the end of a block, a whole block and more, and the end; a batch is there twice.
    write_numbers(kafka, topic, 0, [0, 1, 5, 4, 2], range(6, 10), range(6, 10), range(10, BLOCK - 2))
    write_numbers(kafka, topic, 1, range(BLOCK + 3, BLOCK + 10), [BLOCK + 3, -1, 9_999_999], [4 * BLOCK])
    found = numbers_of(kafka, topic, 4 * BLOCK + 3)
    assert found.partitions == [
        PartitionNumbers(topic, 0, 9 + 4 + BLOCK - 12, doubled=4, reordered=2, other=0),
        PartitionNumbers(topic, 1, 11, doubled=1, reordered=0, other=2),
    ]
    gaps = ((3, 3), (BLOCK - 2, BLOCK + 2), (BLOCK + 10, 4 * BLOCK - 1), (4 * BLOCK + 1, 4 * BLOCK + 2))
    lost = sum(last - first + 1 for first, last in gaps)
    doubled = ((6, 9), (BLOCK + 3, BLOCK + 3))
    assert found.producers == [ProducerNumbers(topic, "", 4 * BLOCK + 3, lost, 5, gaps, doubled)]
    assert not found.is_clean


def test_a_topic_without_any_record(kafka: KafkaFormat, topic: str) -> None:
    assert numbers_of(kafka, topic) == Numbers([], [])
    assert numbers_of(kafka, topic, 7) == Numbers([], [ProducerNumbers(topic, "", 7, 7, 0, ((0, 6),))])


def test_doubled_across_partitions(kafka: KafkaFormat, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    write_numbers(kafka, topic, 0, range(5))
    write_numbers(kafka, topic, 1, range(3, 8))
    found = numbers_of(kafka, topic)
    assert [each.doubled for each in found.partitions] == [0, 0]
    assert found.producers == [ProducerNumbers(topic, "", 8, 0, 2, (), ((3, 4),))]
    assert not found.is_clean


def test_numbers_of_several_producers_in_json(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    producer = stock.producer()
    for number, who in ((0, "a"), (0, "b"), (2, "a"), (1, "b"), (1, "a"), (2, "b"), (2, "b")):
        producer.send(topic, json.dumps({"n": number}).encode(), key=who.encode(), partition=0)
    producer.send(topic, b"{nothing", key=b"b", partition=0)
    producer.flush()
    audit = Audit(kafka.bootstrap, topics=(topic,), number="get_json_object(value, '$.n')", producer="key")
    found = count_numbers(records(kafka.spark, audit), audit)
    assert found.partitions == [PartitionNumbers(topic, 0, 8, doubled=1, reordered=1, other=1)]
    assert found.producers == [
        ProducerNumbers(topic, "a", 3, 0, 0),
        ProducerNumbers(topic, "b", 3, 0, 1, (), ((2, 2),)),
    ]


def test_a_topic_and_its_archive(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, empty = make_topic(2), make_topic(1)
    fill(stock, topic, 100)
    transaction = stock.producer(transactional_id=topic)
    transaction.begin()
    transaction.send(topic, b"in a transaction", partition=0)
    transaction.flush()
    transaction.commit()
    Operator(kafka.bootstrap).wait_until_ended(topic)
    fill(stock, topic, 50, 30)
    lake = str(tmp_path / "lake")
    archive(kafka.spark, Archive(kafka.bootstrap, lake, topics=(topic, empty)))
    job = Audit(kafka.bootstrap, topics=(topic, empty), archive=lake)
    # Offset 101 is the transaction's end.
    assert {(each.topic, each.partition): each for each in compare(kafka.spark, job)} == {
        (topic, 0): Compared(topic, 0, 0, 152, records=151, archived=151),
        (topic, 1): Compared(topic, 1, 0, 30, 30, 30),
        (empty, 0): Compared(empty, 0, 0, 0, 0, 0),
    }
    stock.admin.delete_records(topic, 0, 120)
    assert compare(kafka.spark, replace(job, topics=(topic,)))[0] == Compared(topic, 0, 120, 152, 32, 32)
    fill(stock, topic, 3)
    assert compare(kafka.spark, replace(job, topics=(topic,)))[0] == Compared(
        topic, 0, 120, 155, 35, 32, lost=3, lost_offsets=((152, 154),)
    )


def listed_of(log: SinkLog, topic: str) -> list[SinkFileStatus]:
    """The archive's files of a topic."""
    return [file for file in log.listed() if f"topic={topic}/" in file.path]


def status(files: Files, path: Path) -> File:
    """A file as a list has it."""
    (found,) = (file for file in files.below(str(path.parent)) if file.path == str(path))
    return found


def test_what_is_wrong_with_an_archive(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    lost, doubled, changed = make_topic(1), make_topic(1), make_topic(1)
    lake = str(tmp_path / "lake")
    for topic in (lost, doubled, changed):
        fill(stock, topic, 10)
    archive(kafka.spark, Archive(kafka.bootstrap, lake, topics=(lost, doubled, changed)))
    files = Files(kafka.spark)
    log = SinkLog(files, lake)
    log.replace(files, listed_of(log, lost), [])
    (twice,) = (Path(file.path) for file in listed_of(log, doubled))
    copy = Path(shutil.copy(twice, twice.with_name(f"again-{twice.name}")))
    log.replace(files, [], [status(files, copy)])
    (old,) = listed_of(log, changed)
    rows = kafka.spark.read.parquet(old.path)
    new = "CASE WHEN offset = 4 THEN CAST('x' AS BINARY) ELSE value END AS value"
    rows = rows.selectExpr("key", new, "headers", "partition", "offset + IF(offset > 8, 100, 0) AS offset", "timestamp")
    rows.coalesce(1).write.parquet(str(tmp_path / "changed"))
    (written,) = (tmp_path / "changed").glob("*.parquet")
    moved = files.move(str(written), str(Path(old.path).parent))
    log.replace(files, [old], [moved])

    job = Audit(kafka.bootstrap, topics=(lost, doubled, changed), archive=lake)
    found = {each.topic: each for each in compare(kafka.spark, job)}
    assert found == {
        lost: Compared(lost, 0, 0, 10, 10, 0, lost=10, lost_offsets=((0, 9),)),
        doubled: Compared(doubled, 0, 0, 10, 10, 20, doubled=10),
        # What is beyond the end of the topic is not in question.
        changed: Compared(changed, 0, 0, 10, 10, 9, lost=1, changed=1, lost_offsets=((9, 9),)),
    }
    assert not any(each.is_clean for each in found.values())


def test_what_it_refuses(kafka: KafkaFormat, topic: str, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="is not an archive: it has no _spark_metadata"):
        compare(kafka.spark, Audit(kafka.bootstrap, topics=(topic,), archive=str(tmp_path)))
    with pytest.raises(JobError, match=f"has no topic {topic}-unknown"):
        records(kafka.spark, Audit(kafka.bootstrap, topics=(f"{topic}-unknown",), number="value"))


@pytest.mark.timeout(900)  # Spark is started once more
def test_the_command(kafka: KafkaFormat, topic: str) -> None:
    write_numbers(kafka, topic, 0, range(5), range(7, 10), [7])
    command = [sys.executable, "-m", "ottla", "spark", "audit", "--bootstrap-server", kafka.bootstrap]
    done = subprocess.run(
        [*command, "--topics", topic, "--number", "value", "--expected", "11"], capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "TOPIC\tPARTITION\tRECORDS\tDOUBLED\tREORDERED\tOTHER",
        f"{topic}\t0\t9\t1\t0\t0",
        "TOPIC\tPRODUCER\tEXPECTED\tLOST\tDOUBLED",
        f"{topic}\t-\t11\t3\t1",
        f"{topic}: lost 5-6, 10",
        f"{topic}: doubled 7",
    ]
    assert done.returncode == 1
