"""``ottla perf produce | consume``: throughput, and percentiles of latency by nearest rank."""

from __future__ import annotations

import math
import os
import time
from array import array
from collections.abc import Sequence
from typing import Any

import kafka.errors
from kafka import TopicPartition

from ....base.wording import counted
from ..client import ClusterConnection
from ..nearest import no_topic
from ..output import print_json, progress
from ..running import ToolError, explain
from .consume import check_topics
from .target_topic import check_target

_PERCENTILES = (50, 95, 99, 99.9)
_MB = 1024 * 1024
_SHOW_EVERY = 1000


def produce(
    connection: ClusterConnection,
    topic: str,
    *,
    num_records: int,
    record_size: int,
    throughput: float | None,
    is_numbered: bool,
    acks: str,
    compression: str,
    as_json: bool,
) -> None:
    """Send, wait for every answer, and print the figures. Raises ToolError when a record was not written."""
    check_target(connection, topic)
    producer = connection.producer(
        acks=acks if acks == "all" else int(acks),
        enable_idempotence=acks == "all",
        compression_type=None if compression == "none" else compression,
    )
    # Random bytes don't compress; half of the value being zeros is nearer to what people send.
    value = b"" if is_numbered else os.urandom((record_size + 1) // 2) + bytes(record_size // 2)
    latencies = array("d")
    failures: list[BaseException] = []
    with progress(f"producing to {topic}", num_records) as show:
        _wait_for_metadata(connection, producer, topic)  # first, for the wait for it is no latency of a record
        start = time.perf_counter()
        for number in range(num_records):
            if throughput is not None:
                delay = start + number / throughput - time.perf_counter()
                if delay > 0:
                    time.sleep(delay)
            sent = time.perf_counter()
            future = producer.send(topic, value=b"%-*d" % (record_size, number) if is_numbered else value)
            future.add_callback(lambda _, sent=sent: latencies.append((time.perf_counter() - sent) * 1000))
            future.add_errback(failures.append)
            if number % _SHOW_EVERY == 0:
                show(number)
                if failures:
                    break
        producer.flush()
        seconds = time.perf_counter() - start
    producer.close(timeout=10)
    if failures:
        raise ToolError(f"not written: {counted(len(failures), 'record')}: {explain(failures[0])}")
    _report("sent", num_records, num_records * record_size, seconds, latencies, "latency", as_json)


def _wait_for_metadata(connection: ClusterConnection, producer: Any, topic: str) -> None:
    """Raises ToolError for a topic that does not exist, and that brokers do not create for this user."""
    try:
        producer.partitions_for(topic)
    except kafka.errors.KafkaTimeoutError:
        check_topics(connection, [topic])
        raise


def consume(
    connection: ClusterConnection, topic: str, *, num_records: int | None, timeout_ms: int, as_json: bool
) -> None:
    """Read from the beginning to where the topic ends now, and print the figures. Raises ToolError.

    Of ``num_records`` not one more is read; kafka-consumer-perf-test (ConsumerPerformance) counts the whole last poll.
    """
    consumer = connection.consumer(group_id=None, enable_auto_commit=False, allow_auto_create_topics=False)
    try:
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            check_topics(connection, [topic])
            raise no_topic(topic, consumer.topics())
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        there = sum(ends[where] - starts[where] for where in partitions)
        if not there:
            raise ToolError(f"{topic} is empty; 'ottla perf produce {topic}' fills it")
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        _read(consumer, ends, min(num_records or there, there), timeout_ms, as_json, topic)
    finally:
        consumer.close(autocommit=False)


def _read(
    consumer: Any, ends: dict[TopicPartition, int], wanted: int, timeout_ms: int, as_json: bool, topic: str
) -> None:
    latencies = array("d")
    records = size = 0
    most = consumer.config["max_poll_records"]
    with progress(f"consuming {topic}", wanted) as show:
        start = last = time.perf_counter()
        while records < wanted and any(consumer.position(where) < end for where, end in ends.items()):
            before = time.perf_counter()
            polled = consumer.poll(timeout_ms=500, max_records=min(wanted - records, most))
            now = time.perf_counter()
            if not polled:
                if (now - last) * 1000 >= timeout_ms:
                    raise ToolError(
                        f"nothing came for {timeout_ms} ms; {records} of {counted(wanted, 'record')} were read"
                    )
                continue
            last = now
            latencies.append((now - before) * 1000)
            for batch in polled.values():
                records += len(batch)
                size += sum(len(record.value or b"") + len(record.key or b"") for record in batch)
            show(records)
        seconds = last - start
    _report("read", records, size, seconds, latencies, "poll", as_json)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile of sorted values; 0 of none."""
    if not ordered:
        return 0.0
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _report(
    verb: str, records: int, size: int, seconds: float, latencies: Sequence[float], what: str, as_json: bool
) -> None:
    ordered = sorted(latencies)
    rate, mb_rate = records / seconds, size / _MB / seconds
    average = sum(ordered) / len(ordered) if ordered else 0.0
    points = {f"p{percent:g}": round(percentile(ordered, percent), 3) for percent in _PERCENTILES}
    if as_json:
        print_json(
            {
                "records": records,
                "bytes": size,
                "seconds": round(seconds, 3),
                "records_per_second": round(rate, 1),
                "mb_per_second": round(mb_rate, 3),
                f"{what}_ms": {"avg": round(average, 3), **points, "max": round(ordered[-1] if ordered else 0.0, 3)},
            }
        )
        return
    print(f"{counted(records, 'record')} {verb} in {seconds:.2f} s: {rate:.0f} records/s, {mb_rate:.2f} MB/s")
    shown = ", ".join(f"{name} {value:.1f}" for name, value in points.items())
    print(f"{what} ms: avg {average:.1f}, {shown}, max {ordered[-1] if ordered else 0.0:.1f}")
