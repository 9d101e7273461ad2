"""``DataFrame.write.format("kafka")``: what another client then finds in the topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.spark.kafka_format import KafkaFormat, records, spark_fails

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("batch write")]
MakeTopic = Callable[..., str]


def test_keys_values_headers_and_partitions(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    schema = "key binary, value binary, partition int, headers array<struct<key: string, value: binary>>"
    rows = kafka.spark.createDataFrame(
        [
            (b"k", b"v", 2, [("h", b"1"), ("h", b"2"), ("empty", b"")]),
            (None, b"no key", 0, None),
            (b"tombstone", None, 1, []),
        ],
        schema,
    )
    kafka.write(rows.coalesce(1), topic=topic, includeHeaders="true")
    found = {message.partition: message for message in records(stock, topic, 1, 1, 1)}
    assert (found[2].key, found[2].value) == (b"k", b"v")
    assert found[2].headers == (("h", b"1"), ("h", b"2"), ("empty", b""))
    assert (found[0].key, found[0].value, found[0].headers) == (None, b"no key", ())
    assert (found[1].key, found[1].value, found[1].headers) == (b"tombstone", None, ())


def test_equal_keys_share_a_partition_in_order(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(4)
    rows = kafka.spark.range(2000).selectExpr("CAST(id % 10 AS STRING) AS key", "CAST(id AS STRING) AS value")
    kafka.write(rows.coalesce(1), topic=topic)
    consumer = stock.consumer()
    ends = [consumer.watermarks(topic, partition)[1] for partition in range(4)]
    by_key: dict[bytes | None, list[int]] = {}
    homes: dict[bytes | None, set[int]] = {}
    for message in records(stock, topic, *ends):
        assert message.value is not None
        by_key.setdefault(message.key, []).append(int(message.value))
        homes.setdefault(message.key, set()).add(message.partition)
    assert by_key == {str(key).encode(): list(range(key, 2000, 10)) for key in range(10)}
    assert all(len(partitions) == 1 for partitions in homes.values())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codec(kafka: KafkaFormat, stock: ClientSession, topic: str, codec: str) -> None:
    rows = kafka.spark.range(3000).selectExpr("CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 9) AS value")
    kafka.write(rows.coalesce(1), topic=topic, **{"kafka.compression.type": codec})
    values = [message.value for message in records(stock, topic, 3000)]
    assert values == [(str(number) * 9).encode() for number in range(3000)]


def test_rows_name_their_topics(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    even, odd = make_topic(), make_topic()
    rows = kafka.spark.range(100).selectExpr(
        f"IF(id % 2 = 0, '{even}', '{odd}') AS topic", "CAST(id AS STRING) AS value"
    )
    kafka.write(rows)
    assert {int(message.value or b"") for message in records(stock, even, 50)} == set(range(0, 100, 2))
    assert {int(message.value or b"") for message in records(stock, odd, 50)} == set(range(1, 100, 2))


@pytest.mark.parametrize("acks", ["1", "0"])
def test_without_idempotence(kafka: KafkaFormat, stock: ClientSession, topic: str, acks: str) -> None:
    rows = kafka.spark.range(500).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    kafka.write(rows, topic=topic, **{"kafka.acks": acks, "kafka.enable.idempotence": "false"})
    consumer = stock.consumer()
    eventually(lambda: consumer.watermarks(topic, 0)[1] == 500)
    assert [int(message.value or b"") for message in records(stock, topic, 500)] == list(range(500))


def test_a_topic_is_created_on_the_first_write(
    kafka: KafkaFormat, stock: ClientSession, fresh_name: Callable[[str], str]
) -> None:
    topic = fresh_name("auto-created")
    kafka.write(kafka.spark.range(10).selectExpr("CAST(id AS STRING) AS value"), topic=topic)
    partitions = len(stock.admin.describe_topic(topic).leaders)
    consumer = stock.consumer()
    assert sum(consumer.watermarks(topic, partition)[1] for partition in range(partitions)) == 10
    stock.admin.delete_topic(topic)


def test_a_record_that_the_topic_refuses(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(**{"max.message.bytes": "2000"})
    rows = kafka.spark.createDataFrame([(b"x" * 5000,)], "value binary")
    with spark_fails("RecordTooLarge"):
        kafka.write(rows, topic=topic)
    assert records(stock, topic, 0) == []


def test_a_copy_is_equal_to_the_original(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    original, copy = make_topic(2), make_topic(2)
    rows = kafka.spark.range(1000).selectExpr(
        "CAST(id % 2 AS INT) AS partition", "CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value"
    )
    kafka.write(rows, topic=original)
    kafka.write(kafka.read(subscribe=original).selectExpr("partition", "key", "value", "timestamp"), topic=copy)
    both = [
        sorted((message.partition, message.key, message.value) for message in records(stock, name, 500, 500))
        for name in (original, copy)
    ]
    assert both[0] == both[1]
