"""Long benchmarks: a broker with 5,000 partitions, one with many segments, one that crashes with 10.5 GiB in it.

They run when ``--rows`` names them: ``--rows 'many|large'``. Each starts brokers of its own, one at a time. A start is
from exec until Metadata names a leader for every partition.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from .brokers import Kind, RunningBroker
from .rows import Figure, Lifecycle, at_most
from .usage import cpu_seconds, open_files, read_mib, resident_mib

_TOPICS, _PARTITIONS_EACH = 100, 50
_PARTITIONS = _TOPICS * _PARTITIONS_EACH
_SEGMENTS = 20_000
_SEGMENT_TOPIC_PARTITIONS = 50
_LARGE_BYTES = 21 << 29  # ten full segments and half of one
_LARGE_RECORD_BYTES = 64 << 10
_LIMIT_S = 600


def admin_of(broker: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})


def wait_for_leaders(admin: AdminClient, partitions: int) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        topics = admin.list_topics(timeout=60).topics.values()
        if sum(p.leader >= 0 for topic in topics for p in topic.partitions.values()) >= partitions:
            return
        time.sleep(0.05)
    raise RuntimeError(f"after {_LIMIT_S} s not all of {partitions} partitions have a leader")


def _create(broker: RunningBroker, topics: list[NewTopic], partitions: int) -> float:
    """Seconds until each partition has a leader."""
    admin = admin_of(broker)
    began = time.monotonic()
    for future in admin.create_topics(topics, request_timeout=_LIMIT_S, operation_timeout=_LIMIT_S).values():
        future.result(_LIMIT_S)
    wait_for_leaders(admin, partitions)
    return time.monotonic() - began


def _started(broker: RunningBroker, partitions: int) -> float:
    began = time.monotonic()
    wait_for_leaders(admin_of(broker), partitions)
    return broker.startup_s + time.monotonic() - began


def _producer(broker: RunningBroker, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
            **settings,
        }
    )


def _flushed(producer: Producer) -> None:
    left = producer.flush(_LIMIT_S)
    if left:
        raise RuntimeError(f"{left} records could not be written")


def _idle_ms_per_s(broker: RunningBroker, seconds: float) -> float:
    before = cpu_seconds(broker.pid)
    time.sleep(seconds)
    return (cpu_seconds(broker.pid) - before) * 1000 / seconds


def _many_partitions(kind: Kind, folder: Path) -> Iterator[Figure]:
    row = f"{_PARTITIONS:,} partitions"
    names = [f"many-{number}" for number in range(_TOPICS)]
    with RunningBroker(kind, folder) as broker:
        empty_mib = resident_mib(broker.pid)
        topics = [NewTopic(name, _PARTITIONS_EACH, 1) for name in names]
        yield Figure(f"{row}, created", "s", _create(broker, topics, _PARTITIONS), at_most(1))
        producer = _producer(broker)
        began = time.monotonic()
        for name in names:
            for partition in range(_PARTITIONS_EACH):
                producer.produce(name, b"x" * 100, partition=partition)
        _flushed(producer)
        yield Figure(f"{row}, a record to each", "s", time.monotonic() - began, at_most(1))
        yield Figure(f"{row}, open files", "descriptors", open_files(broker.pid))
        admin = admin_of(broker)
        times = []
        for _ in range(9):
            began = time.monotonic()
            admin.list_topics(timeout=60)
            times.append((time.monotonic() - began) * 1000)
        yield Figure(f"{row}, Metadata of all", "ms", statistics.median(times), at_most(1.5))
        time.sleep(5)
        yield Figure(f"{row}, idle CPU", "ms/s", _idle_ms_per_s(broker, 60), at_most(1))
        memory = resident_mib(broker.pid)
        yield Figure(f"{row}, memory", "MiB", memory, at_most(0.5))
        yield Figure(f"{row}, memory each", "KiB", (memory - empty_mib) * 1024 / _PARTITIONS)
        began = time.monotonic()
        broker.stop()
        yield Figure(f"{row}, clean stop", "s", time.monotonic() - began)
        broker.start()
        yield Figure(f"{row}, start after a clean stop", "s", _started(broker, _PARTITIONS), at_most(0.5))
        yield Figure(f"{row}, memory after a start", "MiB", resident_mib(broker.pid), at_most(0.5))
        broker.kill()
        broker.start()
        yield Figure(f"{row}, start after kill -9", "s", _started(broker, _PARTITIONS), at_most(0.5))


def _many_segments(kind: Kind, folder: Path) -> Iterator[Figure]:
    """Small index files, which are full after a few batches, make many small segments."""
    row = f"{_SEGMENTS:,} segments"
    config = {"segment.index.bytes": "32", "index.interval.bytes": "0"}
    with RunningBroker(kind, folder) as broker:
        topic = NewTopic("segments", _SEGMENT_TOPIC_PARTITIONS, 1, config=config)
        _create(broker, [topic], _SEGMENT_TOPIC_PARTITIONS)
        producer = _producer(broker, **{"batch.num.messages": 1})
        began = time.monotonic()
        while _segments(folder) < _SEGMENTS:
            if time.monotonic() - began > _LIMIT_S:
                raise RuntimeError(f"only {_segments(folder)} segments after {_LIMIT_S} s")
            for number in range(_SEGMENTS):
                producer.produce("segments", b"x" * 100, partition=number % _SEGMENT_TOPIC_PARTITIONS)
            _flushed(producer)
        yield Figure(f"{row}, open files", "descriptors", open_files(broker.pid))
        broker.stop()
        broker.start()
        yield Figure(f"{row}, start after a clean stop", "s", _started(broker, _SEGMENT_TOPIC_PARTITIONS), at_most(0.5))
        yield Figure(f"{row}, memory after a start", "MiB", resident_mib(broker.pid), at_most(0.5))
        broker.kill()
        broker.start()
        yield Figure(f"{row}, start after kill -9", "s", _started(broker, _SEGMENT_TOPIC_PARTITIONS), at_most(0.5))


def _segments(folder: Path) -> int:
    return sum(1 for _ in (folder / "data").glob("segments-*/*.log"))


def _large(kind: Kind, folder: Path) -> Iterator[Figure]:
    """One partition; after a crash at most its last segment has to be scanned."""
    row = f"{_LARGE_BYTES / (1 << 30):g} GiB"
    records = _LARGE_BYTES // _LARGE_RECORD_BYTES
    with RunningBroker(kind, folder) as broker:
        _create(broker, [NewTopic("large", 1, 1)], 1)
        producer = _producer(broker, **{"queue.buffering.max.kbytes": 65_536, "batch.size": 1_000_000})
        value = bytes(range(256)) * (_LARGE_RECORD_BYTES // 256)
        began = time.monotonic()
        for _ in range(records):
            while True:
                try:
                    producer.produce("large", value)
                    break
                except BufferError:
                    producer.poll(0.01)
        _flushed(producer)
        yield Figure(f"{row}, written", "MB/s", _LARGE_BYTES / 1e6 / (time.monotonic() - began))
        time.sleep(65)  # the recovery point is written once a minute
        broker.kill()
        broker.start()
        yield Figure(f"{row}, start after kill -9", "s", _started(broker, 1), at_most(1))
        yield Figure(f"{row}, read by that start", "MiB", read_mib(broker.pid))


MANY_AND_LARGE = [
    Lifecycle("many partitions", _many_partitions, on_demand=True),
    Lifecycle("many segments", _many_segments, on_demand=True),
    Lifecycle("large partition", _large, on_demand=True),
]
