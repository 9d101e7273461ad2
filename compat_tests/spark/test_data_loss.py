"""Records and topics that are gone before they were read: Spark must be told, or go on with what there is.

``failOnDataLoss`` is Spark's switch between the two; the broker's part is to tell the log's true ends and topic ids.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.spark.kafka_format import (
    PATIENCE_S,
    KafkaFormat,
    Rows,
    fill,
    offsets,
    positions,
    span,
    spark_fails,
)

pytestmark = [pytest.mark.client("spark"), pytest.mark.capability("data loss")]
GO_ON = {"failOnDataLoss": "false"}
PATIENT = {"fetchOffset.numRetries": "60"}
"""A second apart: the topic may be away for longer than the three seconds that Spark gives it."""


def recreate(stock: ClientSession, topic: str, partitions: int = 1) -> None:
    """Delete a topic and create it again; deletion may go on in the background for a while."""
    stock.admin.delete_topic(topic)

    def created() -> bool:
        try:
            stock.admin.create_topic(topic, partitions)
        except model.ClientFailure:
            return False
        return True

    eventually(created)


def test_batch_from_deleted_offsets(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 200)
    assert stock.admin.delete_records(topic, 0, 150) == 150
    assert positions(kafka.read(subscribe=topic)) == span(topic, 200, start=150)
    old = {"subscribe": topic, "startingOffsets": offsets({topic: {0: 100}})}
    assert positions(kafka.read(**old, **GO_ON)) == span(topic, 200, start=150)
    with spark_fails("data may have been lost"):
        kafka.read(**old, failOnDataLoss="true").count()


def test_old_timestamps_lead_to_the_log_start(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 200)
    stock.admin.delete_records(topic, 0, 150)
    assert positions(kafka.read(subscribe=topic, startingTimestamp="1")) == span(topic, 200, start=150)


def test_stream_behind_the_log_start(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 100)
    checkpoint = kafka.new_checkpoint()
    rows = Rows()
    rows.run(kafka.read_stream(subscribe=topic), checkpoint)
    fill(stock, topic, 100)
    stock.admin.delete_records(topic, 0, 150)
    with spark_fails("data may have been lost"):
        rows.run(kafka.read_stream(subscribe=topic), checkpoint)
    rows.run(kafka.read_stream(subscribe=topic, **GO_ON), checkpoint)
    assert rows.all() == span(topic, 100) + span(topic, 200, start=150)


def test_everything_deleted(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 100)
    stock.admin.delete_records(topic, 0, 100)
    assert kafka.read(subscribe=topic).count() == 0
    fill(stock, topic, 1)
    assert positions(kafka.read(subscribe=topic)) == [(topic, 0, 100)]


def test_topic_gone_at_restart(kafka: KafkaFormat, stock: ClientSession, fresh_name: Callable[[str], str]) -> None:
    topic = fresh_name("gone")
    stock.admin.create_topic(topic, 1)
    fill(stock, topic, 10)
    checkpoint = kafka.new_checkpoint()
    rows = Rows()
    rows.run(kafka.read_stream(subscribe=topic), checkpoint)
    stock.admin.delete_topic(topic)
    with spark_fails("UnknownTopicOrPartition"):
        rows.run(kafka.read_stream(subscribe=topic, **{"fetchOffset.numRetries": "1"}), checkpoint)


def test_topic_recreated_before_a_restart(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 100)
    checkpoint = kafka.new_checkpoint()
    rows = Rows()
    rows.run(kafka.read_stream(subscribe=topic), checkpoint)
    recreate(stock, topic)
    fill(stock, topic, 30)
    with spark_fails("data may have been lost"):
        rows.run(kafka.read_stream(subscribe=topic), checkpoint)
    rows.batches.clear()
    rows.run(kafka.read_stream(subscribe=topic, **GO_ON), checkpoint)
    fill(stock, topic, 20)
    rows.run(kafka.read_stream(subscribe=topic, **GO_ON), checkpoint)
    # Which of the first 30 Spark takes is Spark's own affair; what comes later it must have, and nothing of the old topic.
    assert set(span(topic, 50, start=30)) <= set(rows.all()) <= set(span(topic, 50))
    assert len(rows.all()) == len(set(rows.all()))


def test_topic_recreated_under_a_running_query(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 50)
    rows = Rows()
    query = rows.start(kafka.read_stream(subscribe=topic, **GO_ON, **PATIENT), kafka.new_checkpoint())
    try:
        rows.wait_for(query, span(topic, 50))
        rows.batches.clear()
        recreate(stock, topic)
        fill(stock, topic, 200)

        def last_has_come() -> bool:
            failure = query.exception()
            if failure is not None:
                raise failure
            return (topic, 0, 199) in rows.all()

        eventually(last_has_come, PATIENCE_S)
        assert set(rows.all()) <= set(span(topic, 200))
    finally:
        query.stop()
