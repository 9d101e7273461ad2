"""Structured Streaming: rates, checkpoints and restarts, growing topics, the streaming sink."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import (
    PATIENCE_S,
    KafkaFormat,
    Rows,
    fill,
    offsets,
    records,
    span,
    spark_fails,
    value_of,
)

MakeTopic = Callable[..., str]
reading = pytest.mark.capability("streaming read")
writing = pytest.mark.capability("streaming write")
pytestmark = [pytest.mark.client("spark")]


@reading
def test_available_now_with_a_rate_limit(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(stock, topic, 500, 500)
    rows = Rows()
    rows.run(kafka.read_stream(subscribe=topic, maxOffsetsPerTrigger="300"), kafka.new_checkpoint())
    assert [len(rows.batches[number]) for number in sorted(rows.batches)] == [300, 300, 300, 100]
    assert rows.all() == span(topic, 500, 500)


@reading
def test_a_restart_goes_on_where_the_checkpoint_is(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    checkpoint = kafka.new_checkpoint()
    rows = Rows()
    for round_number in range(3):
        fill(stock, topic, 100, 50)
        rows.run(kafka.read_stream(subscribe=topic), checkpoint)
        assert rows.all() == span(topic, 100 * (round_number + 1), 50 * (round_number + 1))
    rows.run(kafka.read_stream(subscribe=topic), checkpoint)
    assert sum(map(len, rows.batches.values())) == 450


@reading
def test_a_batch_that_failed_is_repeated_with_the_same_records(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    fill(stock, topic, 200, 200)
    checkpoint = kafka.new_checkpoint()
    rows = Rows()
    rows.fail_in = 1
    with spark_fails("the sink fails, as told"):
        rows.run(kafka.read_stream(subscribe=topic, maxOffsetsPerTrigger="100"), checkpoint)
    assert sorted(rows.batches) == [0, 1]
    failed = rows.batches[1]
    fill(stock, topic, 100, 100)
    rows.fail_in = None
    rows.run(kafka.read_stream(subscribe=topic, maxOffsetsPerTrigger="100"), checkpoint)
    assert rows.batches[1] == failed
    assert rows.all() == span(topic, 300, 300)


@reading
def test_a_running_query_sees_records_and_partitions_as_they_come(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    rows = Rows()
    query = rows.start(kafka.read_stream(subscribe=topic), kafka.new_checkpoint())
    try:
        fill(stock, topic, 10)
        rows.wait_for(query, span(topic, 10))
        stock.admin.create_partitions(topic, 3)
        fill(stock, topic, 10, 20, 30)
        rows.wait_for(query, span(topic, 20, 20, 30))
    finally:
        query.stop()


@reading
def test_a_new_topic_that_the_pattern_matches(
    kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic, fresh_name: Callable[[str], str]
) -> None:
    prefix = fresh_name("wave")
    first, second = f"{prefix}-1", f"{prefix}-2"
    rows = Rows()
    stock.admin.create_topic(first, 1)
    fill(stock, first, 10)
    query = rows.start(kafka.read_stream(subscribePattern=f"{prefix}-.*"), kafka.new_checkpoint())
    try:
        rows.wait_for(query, span(first, 10))
        stock.admin.create_topic(second, 1)
        fill(stock, second, 10)
        rows.wait_for(query, span(first, 10) + span(second, 10))
    finally:
        query.stop()
        stock.admin.delete_topic(first)
        stock.admin.delete_topic(second)


@reading
def test_starting_points(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(stock, topic, 30, 30)
    some, latest = Rows(), Rows()
    some.run(
        kafka.read_stream(subscribe=topic, startingOffsets=offsets({topic: {0: 25, 1: -1}})), kafka.new_checkpoint()
    )
    assert some.all() == [(topic, 0, n) for n in range(25, 30)]
    checkpoint = kafka.new_checkpoint()
    latest.run(kafka.read_stream(subscribe=topic, startingOffsets="latest"), checkpoint)
    assert latest.all() == []
    fill(stock, topic, 0, 5)
    latest.run(kafka.read_stream(subscribe=topic, startingOffsets="latest"), checkpoint)
    assert latest.all() == [(topic, 1, n) for n in range(30, 35)]


@reading
def test_starts_at_a_timestamp_inside_a_compressed_batch(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    start = int(time.time() * 1000) - 60_000
    producer = stock.producer(linger_ms=200, compression="zstd")
    for number in range(100):
        producer.send(topic, b"x", partition=0, timestamp_ms=start + 10 * number)
    producer.flush()
    rows = Rows()
    rows.run(kafka.read_stream(subscribe=topic, startingTimestamp=str(start + 421)), kafka.new_checkpoint())
    assert rows.all() == span(topic, 100, start=43)


@reading
def test_more_tasks_than_partitions(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 1000)
    rows = Rows()
    rows.run(kafka.read_stream(subscribe=topic, minPartitions="4"), kafka.new_checkpoint())
    assert rows.all() == span(topic, 1000)


@reading
def test_windowed_counts_by_record_time(kafka: KafkaFormat, stock: ClientSession, topic: str) -> None:
    fill(stock, topic, 600)
    counts = (
        kafka.read_stream(subscribe=topic, maxOffsetsPerTrigger="250")
        .withWatermark("timestamp", "1 minute")
        .groupBy("key")
        .count()
    )
    query = (
        counts.writeStream.format("memory")
        .queryName("counts")
        .outputMode("complete")
        .option("checkpointLocation", kafka.new_checkpoint())
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE_S)
    assert kafka.spark.sql("SELECT count(*) AS keys, sum(count) AS records FROM counts").first() == (600, 600)


@writing
def test_mirrors_one_topic_into_another(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    source, mirror = make_topic(2), make_topic(2)
    checkpoint = kafka.new_checkpoint()
    for round_number in range(2):
        fill(stock, source, 300, 300, first=300 * round_number)
        rows = kafka.read_stream(subscribe=source, maxOffsetsPerTrigger="250", includeHeaders="true")
        writer = kafka.write_stream(rows.select("partition", "key", "value", "headers"), topic=mirror)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE_S)
    values: dict[int, list[bytes | None]] = {0: [], 1: []}
    for message in records(stock, mirror, 600, 600):
        values[message.partition].append(message.value)
    # A micro-batch keeps the order of a partition: it has one task for it, and the producer is idempotent.
    assert values == {partition: [value_of(partition, n) for n in range(600)] for partition in (0, 1)}


@writing
def test_a_running_sink_passes_records_on(kafka: KafkaFormat, stock: ClientSession, make_topic: MakeTopic) -> None:
    source, target = make_topic(1), make_topic(1)
    rows = kafka.read_stream(subscribe=source).selectExpr("key", "upper(CAST(value AS STRING)) AS value")
    writer = kafka.write_stream(rows, topic=target).option("checkpointLocation", kafka.new_checkpoint())
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        stock.produce(source, [b"one", b"two"])
        assert [message.value for message in stock.read(target, 2, timeout_s=PATIENCE_S)] == [b"ONE", b"TWO"]
        stock.produce(source, [b"three"])
        assert [message.value for message in stock.read(target, 3, timeout_s=PATIENCE_S)] == [b"ONE", b"TWO", b"THREE"]
    finally:
        query.stop()
