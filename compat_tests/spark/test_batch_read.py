"""``spark.read.format("kafka")``: every way to name offsets, and every kind of record."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.raw.requests import batch, produce
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import KafkaFormat, fill, offsets, positions, span, spark_fails, value_of
from ottla.compat_tests.wire_client import Operator, connect

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("batch read")]
MakeTopic = Callable[..., str]


def test_reads_a_topic_from_earliest_to_latest(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(4)
    fill(stock, topic, 250, 100, 0, 1)
    rows = kafka.read(subscribe=topic).collect()
    assert sorted((row.partition, row.offset, row.key, row.value) for row in rows) == [
        (partition, number, str(number).encode(), value_of(partition, number))
        for partition, count in enumerate((250, 100, 0, 1))
        for number in range(count)
    ]
    assert {(row.topic, row.timestampType) for row in rows} == {(topic, model.CREATE_TIME)}


def test_nulls_headers_and_timestamps(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    now = int(time.time() * 1000)
    producer = stock.producer()
    producer.send(topic, None, key=b"tombstone", timestamp_ms=now)
    producer.send(topic, b"", key=b"", timestamp_ms=now + 1, headers=[("a", b"1"), ("a", b"2"), ("é", b"")])
    producer.send(topic, b"\xff\x00", timestamp_ms=now + 2, headers=[("bytes", b"\xff\x00")])
    producer.flush()
    frame = kafka.read(subscribe=topic, includeHeaders="true").orderBy("offset")
    rows = frame.selectExpr("key", "value", "headers", "unix_millis(timestamp) AS at").collect()
    assert [(row.key, row.value) for row in rows] == [(b"tombstone", None), (b"", b""), (None, b"\xff\x00")]
    assert [row["at"] for row in rows] == [now, now + 1, now + 2]
    assert [row.headers and [tuple(header) for header in row.headers] for row in rows] == [
        None,
        [("a", b"1"), ("a", b"2"), ("é", b"")],
        [("bytes", b"\xff\x00")],
    ]


def test_log_append_time(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(**{"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    stock.produce(topic, [b"a", b"b"])
    rows = kafka.read(subscribe=topic).selectExpr("timestampType", "unix_millis(timestamp) AS at").collect()
    assert [row.timestampType for row in rows] == [model.LOG_APPEND_TIME] * 2
    assert all(before <= row["at"] <= time.time() * 1000 for row in rows)


def test_offsets_by_partition(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    fill(stock, topic, 50, 50, 50)
    rows = kafka.read(
        subscribe=topic,
        startingOffsets=offsets({topic: {0: 10, 1: -2, 2: 50}}),
        endingOffsets=offsets({topic: {0: 20, 1: -1, 2: -1}}),
    )
    assert positions(rows) == [(topic, 0, n) for n in range(10, 20)] + [(topic, 1, n) for n in range(50)]


def test_assigned_partitions_only(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    fill(stock, topic, 5, 5, 5)
    rows = kafka.read(assign=f'{{"{topic}": [0, 2]}}')
    assert positions(rows) == [(topic, partition, n) for partition in (0, 2) for n in range(5)]


def test_topics_by_pattern(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, fresh_name: Callable[[str], str]
) -> None:
    one, other, another = make_topic(2), make_topic(1), make_topic(1)
    fill(stock, one, 3, 4)
    fill(stock, other, 5)
    fill(stock, another, 6)
    rows = kafka.read(subscribePattern=f"{one}|{other}")
    assert positions(rows) == sorted(span(one, 3, 4) + span(other, 5))
    assert positions(kafka.read(subscribePattern=fresh_name("nothing"))) == []


def timed_batch(stock: ClientSession, topic: str, partition: int, start_ms: int) -> None:
    """One hundred records, ten milliseconds apart, in as few batches as the client makes of them."""
    producer = stock.producer(linger_ms=200)
    for number in range(100):
        producer.send(topic, b"x", partition=partition, timestamp_ms=start_ms + 10 * number)
    producer.flush()


def test_starts_and_ends_at_timestamps_inside_a_batch(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    start = int(time.time() * 1000) - 60_000
    timed_batch(stock, topic, 0, start)
    timed_batch(stock, topic, 1, start + 5)
    rows = kafka.read(subscribe=topic, startingTimestamp=str(start + 301), endingTimestamp=str(start + 400))
    assert positions(rows) == [(topic, 0, n) for n in range(31, 40)] + [(topic, 1, n) for n in range(30, 40)]
    by_partition = kafka.read(
        subscribe=topic,
        startingOffsetsByTimestamp=offsets({topic: {0: start, 1: start + 986}}),
        endingOffsetsByTimestamp=offsets({topic: {0: start + 1, 1: start + 99_999}}),
    )
    assert positions(by_partition) == [(topic, 0, 0), (topic, 1, 99)]


def test_a_timestamp_after_the_last_record(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 10)
    late = str(int(time.time() * 1000) + 3_600_000)
    with spark_fails("No offset matched"):
        kafka.read(subscribe=topic, startingTimestamp=late, **{"fetchOffset.numRetries": "1"}).count()
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert kafka.read(subscribe=topic, startingTimestamp=late, **strategy).count() == 0


def test_more_spark_partitions_than_kafka_has(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 1000)
    rows = kafka.read(
        subscribe=topic,
        minPartitions="8",
        startingOffsets=offsets({topic: {0: 0}}),
        endingOffsets=offsets({topic: {0: 1000}}),
    )
    assert rows.rdd.getNumPartitions() == 8
    assert positions(rows) == span(topic, 1000)


def test_small_polls_and_small_fetches(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(stock, topic, 2000, 2000)
    limits = {"kafka.max.poll.records": "10", "kafka.max.partition.fetch.bytes": "500", "kafka.fetch.max.bytes": "700"}
    rows = kafka.read(subscribe=topic, **limits)
    assert positions(rows) == span(topic, 2000, 2000)


def test_read_committed_gives_what_no_transaction_wrote(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 500)
    rows = kafka.read(subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    assert positions(rows) == span(topic, 500)


def test_read_committed_leaves_out_what_was_aborted(
    kafka: KafkaFormat, stock: ClientSession, topic: str, fresh_name: Callable[[str], str]
) -> None:
    producer = stock.producer(transactional_id=fresh_name("txn"))
    for value, end in ((b"kept", producer.commit), (b"aborted", producer.abort), (b"kept too", producer.commit)):
        producer.begin()
        producer.send(topic, value)
        producer.flush()
        end()
    Operator(kafka.bootstrap).wait_until_ended(topic)
    committed = kafka.read(subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    assert [row.value for row in committed.orderBy("offset").collect()] == [b"kept", b"kept too"]
    assert [row.value for row in kafka.read(subscribe=topic).orderBy("offset").collect()] == [
        b"kept",
        b"aborted",
        b"kept too",
    ]


def test_every_codec(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    for number, codec in enumerate(codecs):
        fill(stock, topic, 300, first=300 * number, compression=codec)
    rows = kafka.read(subscribe=topic).orderBy("offset").collect()
    assert [row.value for row in rows] == [value_of(0, number) for number in range(300 * len(codecs))]


def test_a_record_larger_than_every_fetch_limit(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic
) -> None:
    topic = make_topic(**{"max.message.bytes": "5000000"})
    big = bytes(range(256)) * 12_000
    stock.produce(topic, [b"before", big, b"after"])
    limits = {"kafka.max.partition.fetch.bytes": "1000", "kafka.fetch.max.bytes": "1000"}
    rows = kafka.read(subscribe=topic, **limits).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == [b"before", big, b"after"]


def test_a_batch_larger_than_every_fetch_limit(kafka: KafkaFormat, bootstrap: str, topic: str) -> None:
    values = [b"%04d" % number + bytes(500) for number in range(2000)]
    with connect(Operator(bootstrap).leader(topic)) as connection:
        for part in (values[:1], values[1:1999], values[1999:]):
            assert produce(connection, topic, batch(*part)).error_code == 0
    limits = {"kafka.max.partition.fetch.bytes": "1000", "kafka.fetch.max.bytes": "1000"}
    rows = kafka.read(subscribe=topic, **limits).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == values
    inside = {"startingOffsets": offsets({topic: {0: 1000}}), "endingOffsets": offsets({topic: {0: 1100}})}
    rows = kafka.read(subscribe=topic, **limits, **inside).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == values[1000:1100]


def test_an_empty_topic(kafka: KafkaFormat, topic: str) -> None:
    assert kafka.read(subscribe=topic).count() == 0


def test_an_unknown_topic(kafka: KafkaFormat, fresh_name: Callable[[str], str]) -> None:
    with spark_fails("UnknownTopicOrPartition"):
        kafka.read(subscribe=fresh_name("not-made"), **{"fetchOffset.numRetries": "1"}).count()
