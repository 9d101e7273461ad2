"""Raw Produce requests to three brokers, acks=all, three replicas: few in flight, and beside idle partitions.

The load generator in C sends them to one partition. Beside idle partitions only one cluster is up at a time: the brokers of
another, idle as they are, would take their part of the cores.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from .cluster_kinds import MeasuredCluster, wait_for
from .load_generator import LoadGenerator, batch, produce_request, records_in
from .rows import Figure
from .usage import Span

_LEADER = 1
_LEAST = 300
_ALL = -1
_ONE = "one-record requests, acks=all, 3 replicas"
_BATCH_KIB = 16
_REQUESTS_ONE_BY_ONE = 4_000
_WARM_UP = 12_000
"""Requests, 20 in flight, after which a JVM has compiled most of what they need."""
_WARM_UP_IN_FLIGHT = 20
_PARTITIONS_EACH = 100
_TOPICS_AT_ONCE = 10
_SETTLE_S = 5
_topic_numbers = itertools.count(1)


_Load = Callable[[MeasuredCluster, float], Iterator[Figure]]


def _few_in_flight(row: str, records: int, in_flight: int, most: int) -> _Load:
    def run(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
        topic = f"raw-{next(_topic_numbers)}"
        cluster.create_topic(topic, 1, _LEADER)
        requests = max(_LEAST, int(most * scale))
        yield from _figures(row, requests, *_measured(cluster, topic, row, records, in_flight, requests))
        cluster.delete_topic(topic)

    return run


def _measured(
    cluster: MeasuredCluster, topic: str, row: str, records: int, in_flight: int, requests: int
) -> tuple[dict[str, float], Span]:
    """What the generator found, and what that cost the brokers, after a warm-up half as long."""
    with _generator(cluster, topic, records, in_flight) as generator:
        generator.run(max(1, requests // 2))
        with cluster.measured(row, [generator.pid]) as span:
            return generator.run(requests), span


def _generator(cluster: MeasuredCluster, topic: str, records: int, in_flight: int) -> LoadGenerator:
    request = produce_request(topic, [0], batch(records), _ALL)
    return LoadGenerator(cluster.folder, cluster.cluster.broker(_LEADER).port, request, in_flight=in_flight)


def _figures(row: str, requests: int, done: dict[str, float], span: Span) -> Iterator[Figure]:
    yield Figure(row, "requests/s", done["requests_s"], None, span.noise)
    yield Figure(row, "CPU µs/request", span.broker_cpu_s / requests * 1e6, None, span.noise)
    yield Figure(row, "p50 µs", done["p50_us"], None, span.noise)
    yield Figure(row, "p99 µs", done["p99_us"], None, span.noise)


def _beside_idle(stages: Sequence[int], most: int, least: int) -> _Load:
    """One request in flight, beside so many idle partitions, one stage after the other in the same cluster.

    ``scale`` applies to requests, of which there are at ``most`` so many with a scale of 1, not to partitions.
    """

    def run(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
        topic = f"raw-{next(_topic_numbers)}"
        cluster.create_topic(topic, 1, _LEADER)
        with _generator(cluster, topic, 1, _WARM_UP_IN_FLIGHT) as generator:
            generator.run(max(_LEAST, int(_WARM_UP * scale)))
        requests = max(least, int(most * scale))
        idle = 0
        for stage in stages:
            _add_idle(cluster, idle, stage)
            idle = stage
            row = f"{_ONE}, {stage:,} idle partitions"
            done, span = _measured(cluster, topic, row, 1, 1, requests)
            yield from _figures(row, requests, done, span)
            leader = span.cpu_s_of[cluster.cluster.broker(_LEADER).pid]
            yield Figure(row, "CPU µs/record, leader", leader / requests * 1e6, None, span.noise)

    return run


def _add_idle(cluster: MeasuredCluster, had: int, wanted: int) -> None:
    """Have so many partitions without traffic, whose leaders the controller spreads over the brokers."""
    numbers = range(had // _PARTITIONS_EACH, wanted // _PARTITIONS_EACH)
    for first in range(numbers.start, numbers.stop, _TOPICS_AT_ONCE):
        topics = [f"idle-{number}" for number in numbers if first <= number < first + _TOPICS_AT_ONCE]
        cluster.begin_topics(topics, _PARTITIONS_EACH)
        there = (first + len(topics)) * _PARTITIONS_EACH + 1  # with the one under load
        wait_for(partial(_are_in_sync, cluster, there))
    if wanted:
        time.sleep(_SETTLE_S)


def _are_in_sync(cluster: MeasuredCluster, partitions: int) -> bool:
    return cluster.in_sync(3) >= partitions


RAW_LOADS: dict[str, _Load] = {
    "raw, one record, 1 in flight": _few_in_flight(f"{_ONE}, 1 in flight", 1, 1, _REQUESTS_ONE_BY_ONE),
    "raw, one record, 20 in flight": _few_in_flight(f"{_ONE}, 20 in flight", 1, 20, 20_000),
    "raw, 16 KiB, 5 in flight": _few_in_flight(
        f"produce, acks=all, 3 replicas, {_BATCH_KIB} KiB, 5 in flight", records_in(_BATCH_KIB << 10), 5, 6_000
    ),
}
BESIDE_IDLE: dict[str, _Load] = {"raw, idle partitions": _beside_idle((0, 300, 1_300), _REQUESTS_ONE_BY_ONE, _LEAST)}
BESIDE_MANY: dict[str, _Load] = {"10,000 idle partitions": _beside_idle((10_000,), 400, 50)}
"""It takes minutes, although it has few requests, and runs only when named."""
