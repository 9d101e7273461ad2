"""The broker dies or is restarted under running queries: they go on, with every acknowledged record once and in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests import brokers
from ottla.compat_tests.clients.kafka_python import Client
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, KafkaFormat, Rows, fill, span, value_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.client("spark"),
    pytest.mark.capability("broker killed under a query"),
    pytest.mark.restart,
]


@pytest.fixture
def stock(broker_process: brokers.Restartable) -> Iterator[ClientSession]:
    """The client that writes and checks records, on the broker that will be killed."""
    session = ClientSession("kafka-python", Client(broker_process.bootstrap))
    yield session
    session.close()


def test_streams_survive_a_kill_and_a_restart(
    spark: SparkSession, broker_process: brokers.Restartable, stock: ClientSession, tmp_path: Path
) -> None:
    kafka = KafkaFormat(spark, broker_process.bootstrap, tmp_path)
    stock.admin.create_topic("source", 2)
    stock.admin.create_topic("copy", 2)
    rows = Rows()
    mirror = kafka.write_stream(kafka.read_stream(subscribe="source").select("partition", "key", "value"), topic="copy")
    queries = [
        rows.start(kafka.read_stream(subscribe="source"), kafka.new_checkpoint()),
        mirror.option("checkpointLocation", kafka.new_checkpoint()).trigger(processingTime="0 seconds").start(),
    ]
    try:
        written = 0
        for shut_down in (broker_process.kill, broker_process.stop):
            # Acknowledged, and at once the broker is gone: the queries are in the middle of it or have not begun.
            fill(stock, "source", 2000, 2000, first=written)
            shut_down()
            broker_process.start()
            fill(stock, "source", 500, 500, first=written + 2000)
            written += 2500
            rows.wait_for(queries[0], span("source", written, written))
        for partition in (0, 1):
            copied = [
                message.value for message in stock.read("copy", written, partition=partition, timeout_s=PATIENCE_S)
            ]
            assert copied == [value_of(partition, number) for number in range(written)]
        assert all(query.isActive for query in queries)
    finally:
        for query in queries:
            query.stop()
