"""``ottla spark load``: files to a topic, to the partitions where the Java client sends the same keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat
from ottla.spark.load import Load, run
from ottla.spark.query import JobError

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("load job")]
MakeTopic = Callable[..., str]

JAVA_HASHES = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "abc": 479470107}
"""What Utils.murmur2 of Kafka's clients gives, as their own tests have it."""


def load(kafka: KafkaFormat, topic: str, source: Path | str, file_format: str) -> Load:
    """A job with a checkpoint of its own."""
    return Load(kafka.bootstrap, str(source), topic, kafka.new_checkpoint(), file_format)


def by_key(kafka: KafkaFormat, topic: str) -> dict[str | None, tuple[int, str]]:
    """Key to partition and value, of records that are there once."""
    rows = kafka.read(subscribe=topic).selectExpr("CAST(key AS STRING)", "partition", "CAST(value AS STRING)").collect()
    found = {row.key: (row.partition, row.value) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("timestamp", [None, "at"])
def test_csv_goes_where_java_would_send_it(
    timestamp: str | None, kafka: KafkaFormat, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(7, **{"retention.ms": "-1"})
    lines = [f'{key},"0{number}",1700000000000' for number, key in enumerate(JAVA_HASHES)]
    (tmp_path / "orders.csv").write_text("\n".join(["id,count,at", *lines, ""]))
    job = load(kafka, topic, tmp_path / "orders.csv", "csv")
    job = replace(job, key=("id",), value="count", timestamp=timestamp, schema="id STRING, count STRING, at BIGINT")
    assert run(kafka.spark, job) == len(JAVA_HASHES)
    assert by_key(kafka, topic) == {
        key: ((java & 0x7FFFFFFF) % 7, f"0{number}") for number, (key, java) in enumerate(JAVA_HASHES.items())
    }


def test_json_lines_with_headers_and_timestamps(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(1, **{"retention.ms": "-1"})
    rows = [
        {"user": "a", "no": 1, "at": "2026-03-01T10:00:00Z", "trace": "t1", "tags": ["x"], "total": None},
        {"user": "a", "no": 2, "at": "2026-03-01T10:00:01.5Z", "trace": None, "tags": [], "total": 2.5},
    ]
    (tmp_path / "in.json").write_text("\n".join(map(json.dumps, rows)))
    job = load(kafka, topic, tmp_path, "json")
    assert run(kafka.spark, replace(job, key=("user", "no"), headers=("trace",), timestamp="at")) == 2
    first, second = stock.read(topic, 2)
    assert [json.loads(each.key or b"") for each in (first, second)] == [{"user": "a", "no": 1}, {"user": "a", "no": 2}]
    assert [json.loads(each.value or b"") for each in (first, second)] == [
        {"tags": ["x"], "total": None},
        {"tags": [], "total": 2.5},
    ]
    assert (first.headers, second.headers) == ((("trace", b"t1"),), ())
    assert (first.timestamp_ms, second.timestamp_ms) == (1_772_359_200_000, 1_772_359_201_500)


def test_a_second_run_takes_new_files_only(kafka: KafkaFormat, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(2)
    folder = tmp_path / "in"
    job = replace(load(kafka, topic, folder, "parquet"), key=("id",))
    for first in (0, 10):
        rows = kafka.spark.range(first, first + 10).selectExpr(
            "CAST(id AS STRING) AS id", "id AS number", "'x' AS `a.b`"
        )
        rows.write.mode("append").parquet(str(folder))
        assert run(kafka.spark, job) == 10
    assert run(kafka.spark, job) == 0
    found = by_key(kafka, topic)
    assert {key: json.loads(value) for key, (_, value) in found.items()} == {
        str(number): {"number": number, "a.b": "x"} for number in range(20)
    }


def test_what_it_refuses(kafka: KafkaFormat, topic: str, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("id,count\n1,2\n")
    (tmp_path / "bad.csv").write_text("id,count\n1,2\n3\n")
    good = load(kafka, topic, tmp_path / "good.csv", "csv")
    with pytest.raises(JobError, match=r"good.csv has no column number: it has id, count"):
        run(kafka.spark, replace(good, value="number"))
    with pytest.raises(JobError, match=f"has no topic {topic}-unknown"):
        run(kafka.spark, replace(good, topic=f"{topic}-unknown"))
    with pytest.raises(JobError, match=r"(?i)path does not exist"):
        run(kafka.spark, replace(good, source=str(tmp_path / "none.csv")))
    with pytest.raises(JobError, match=r"error while reading file \S+/bad.csv"):
        run(kafka.spark, replace(load(kafka, topic, tmp_path / "bad.csv", "csv")))
