"""Records that are deleted while a query runs: those it has read already, and those it has not come to yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests import brokers
from ottla.compat_tests.clients.kafka_python import Client
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, KafkaFormat, Rows, fill, span, spark_fails

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("retention under a query")]


class HeldRows(Rows):
    """Rows whose first batch is taken and then held, so that the query stands still until ``go_on`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = threading.Event()
        self.go_on = threading.Event()

    def take(self, batch: DataFrame, number: int) -> None:
        super().take(batch, number)
        self.holds.set()
        assert self.go_on.wait(PATIENCE_S)


def test_records_that_were_read(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    rows = Rows()
    query = rows.start(kafka.read_stream(subscribe=topic), kafka.new_checkpoint())
    try:
        for end in (100, 200, 300):
            fill(stock, topic, 100)
            rows.wait_for(query, span(topic, end))
            # All of it, so that the log is empty, and then a part.
            assert stock.admin.delete_records(topic, 0, end if end < 300 else 250) > 0
        fill(stock, topic, 100)
        rows.wait_for(query, span(topic, 400))
    finally:
        query.stop()


@pytest.mark.parametrize("goes_on", [False, True])
def test_records_that_were_not(
    kafka: KafkaFormat, stock: ClientSession, make_topic: Callable[..., str], goes_on: bool
) -> None:
    topic = make_topic(2)
    fill(stock, topic, 60)
    rows = HeldRows()
    query = rows.start(
        kafka.read_stream(subscribe=topic, failOnDataLoss=str(not goes_on).lower()), kafka.new_checkpoint()
    )
    try:
        assert rows.holds.wait(PATIENCE_S)
        # In the other partition, of which no consumer can have fetched anything in advance.
        fill(stock, topic, 0, 200)
        assert stock.admin.delete_records(topic, 1, 150) == 150
        rows.go_on.set()
        if goes_on:
            left = [(topic, 1, offset) for offset in range(150, 210)]
            rows.wait_for(query, span(topic, 60) + left[:50])
            fill(stock, topic, 0, 10)
            rows.wait_for(query, span(topic, 60) + left)
        else:
            with spark_fails("data may have been lost"):
                query.awaitTermination(PATIENCE_S)
            assert rows.all() == span(topic, 60)
    finally:
        rows.go_on.set()
        query.stop()


@pytest.fixture
def tidy_broker(
    request: pytest.FixtureRequest, own_brokers: Callable[..., AbstractContextManager[brokers.Restartable]]
) -> Iterator[brokers.Restartable]:
    """A broker that looks for old segments all the time, where others do so every five minutes."""
    often = {"log.retention.check.interval.ms": "200"}
    if request.config.getoption("--broker") == "kafka":
        often["log.initial.task.delay.ms"] = "100"
    with own_brokers(**often) as broker:
        yield broker


@pytest.mark.restart
def test_retention_time(spark: SparkSession, tidy_broker: brokers.Restartable, tmp_path: Path) -> None:
    kafka = KafkaFormat(spark, tidy_broker.bootstrap, tmp_path)
    stock = ClientSession("kafka-python", Client(tidy_broker.bootstrap))
    stock.admin.create_topic("old", 1, configs={"retention.ms": "-1", "segment.ms": "1000"})
    rows = Rows()
    query = rows.start(kafka.read_stream(subscribe="old"), kafka.new_checkpoint())
    began = int(time.time() * 1000) - 3_600_000
    try:
        producer = stock.producer()
        for number in range(10):
            producer.send("old", b"an hour old", partition=0, timestamp_ms=began + 2000 * number)
            producer.flush()
        rows.wait_for(query, span("old", 10))
        stock.admin.incremental_alter_configs("old", [("set", "retention.ms", "60000")])
        eventually(lambda: stock.admin.list_offset("old", 0, -2) == 10)
        fill(stock, "old", 20)
        rows.wait_for(query, span("old", 30))
    finally:
        query.stop()
        stock.close()
