"""Triggers without micro-batches: tasks that run on and on, and pass on a record as soon as a fetch brings it.

Such a task holds a core for each partition for as long as the query runs, so the topics have one. Both give each record at
least once.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, KafkaFormat

MakeTopic = Callable[..., str]
pytestmark = [pytest.mark.client("spark")]


def values(stock: ClientSession, topic: str, count: int) -> list[bytes | None]:
    """The first values of a topic, as many at least, when they have come."""
    return [message.value for message in stock.read(topic, count, timeout_s=PATIENCE_S)]


def passes_on(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, trigger: dict[str, str], mode: str
) -> None:
    """A query that writes a topic's values in capitals into another one: while it runs, and after a restart."""
    source, target = make_topic(), make_topic()
    long_poll = {"kafka.fetch.max.wait.ms": "500"}
    rows = kafka.read_stream(subscribe=source, **long_poll).selectExpr("key", "upper(CAST(value AS STRING)) AS value")
    writer = kafka.write_stream(rows, topic=target).outputMode(mode).trigger(**trigger)
    writer = writer.option("checkpointLocation", kafka.new_checkpoint())
    query = writer.start()
    try:
        stock.produce(source, [b"one", b"two"])
        assert values(stock, target, 2) == [b"ONE", b"TWO"]
        stock.produce(source, [b"three"])
        assert values(stock, target, 3) == [b"ONE", b"TWO", b"THREE"]
    finally:
        query.stop()
    stock.produce(source, [b"meanwhile"])
    query = writer.start()
    try:
        # What came after the last checkpoint comes again.
        found = values(stock, target, 4)
        while b"MEANWHILE" not in found:
            found = values(stock, target, len(found) + 1)
        assert set(found) == {b"ONE", b"TWO", b"THREE", b"MEANWHILE"}
    finally:
        query.stop()


@pytest.mark.capability("continuous mode")
def test_continuous(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    passes_on(kafka, stock, make_topic, {"continuous": "1 second"}, "append")


@pytest.mark.since_spark("4.1")
@pytest.mark.capability("real-time mode")
def test_real_time(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    passes_on(kafka, stock, make_topic, {"realTime": "5 seconds"}, "update")
