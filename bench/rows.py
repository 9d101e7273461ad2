"""The rows of the benchmark: each is one load, run on one broker after the other, and yields named figures.

A floor is the required ratio Ottla / Apache Kafka: ``at_least`` for rates, ``at_most`` for costs. Figures
without one are for information.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import java
from .brokers import Kind, RunningBroker
from .usage import Span, cpu_seconds, resident_mib

_ROOT = Path(__file__).resolve().parent.parent
_topic_numbers = itertools.count(1)


@dataclass(frozen=True)
class Floor:
    limit: float
    at_least: bool

    def holds(self, ratio: float) -> bool:
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


def at_least(limit: float) -> Floor:
    return Floor(limit, at_least=True)


def at_most(limit: float) -> Floor:
    return Floor(limit, at_least=False)


@dataclass(frozen=True)
class Figure:
    """One number from one run; ``noise`` as in ``usage.Span``."""

    row: str
    unit: str
    value: float
    floor: Floor | None = None
    noise: float = 0.0


@dataclass(frozen=True)
class Lifecycle:
    """A measurement that starts a broker of its own; ``on_demand``: it takes minutes, and runs only when named."""

    name: str
    run: Callable[[Kind, Path], Iterable[Figure]]
    on_demand: bool = False


@dataclass(frozen=True)
class Load:
    """A measurement on a running broker; ``scale`` multiplies the number of records."""

    name: str
    run: Callable[[RunningBroker, float], Iterable[Figure]]
    on_demand: bool = False
    """It runs only when named."""
    on_sink: bool = False
    """It runs on the sink, too, which answers and stores nothing."""
    warms_up: bool = False
    """It begins with a warm-up of its own, which is enough for brokers that are not compiled while they run."""


def _start_and_idle(kind: Kind, folder: Path) -> Iterator[Figure]:
    with RunningBroker(kind, folder) as broker:
        yield Figure("start to first Metadata answer", "s", broker.startup_s, at_most(0.2))
        time.sleep(4)
        yield Figure("idle memory", "MiB", resident_mib(broker.pid), at_most(0.25))
        before, seconds = cpu_seconds(broker.pid), 10
        time.sleep(seconds)
        yield Figure("idle CPU", "ms/s", (cpu_seconds(broker.pid) - before) * 1000 / seconds)


class Topic:
    """A fresh topic for one run, deleted after it."""

    def __init__(self, broker: RunningBroker, partitions: int) -> None:
        self._broker, self._partitions = broker, partitions
        self._name = f"bench-{next(_topic_numbers)}"

    def __enter__(self) -> str:
        self._broker.create_topic(self._name, self._partitions)
        return self._name

    def __exit__(self, *_: object) -> None:
        self._broker.delete_topic(self._name)


def _throughput(
    row: str, rate: float, payload: int, span: Span, rate_floor: Floor, cpu_floor: Floor
) -> Iterator[Figure]:
    yield Figure(row, "records/s", rate, rate_floor, span.noise)
    yield Figure(row, "CPU s/GB", span.broker_cpu_s / (payload / 1e9), cpu_floor, span.noise)


@dataclass(frozen=True)
class _Shape:
    size: int
    partitions: int
    compression: str = "none"

    def records(self, scale: float) -> int:
        return max(2000, int((1_000_000 if self.size == 100 else 250_000) * scale))

    def __str__(self) -> str:
        plural = "" if self.partitions == 1 else "s"
        codec = "" if self.compression == "none" else f", {self.compression}"
        return f"{self.size} B, {self.partitions} partition{plural}{codec}"


def _java_load(shape: _Shape) -> Load:
    def run(broker: RunningBroker, scale: float) -> Iterator[Figure]:
        records = shape.records(scale)
        with Topic(broker, shape.partitions) as topic:
            row = f"produce, Java, {shape}"
            with broker.measured(row) as span:
                made = java.producer_perf(broker.bootstrap, topic, records, shape.size, shape.compression)
            yield from _throughput(row, made["records_s"], records * shape.size, span, at_least(0.9), at_most(0.8))
            yield Figure(row, "p99 ms", made["p99_ms"], None, span.noise)
            row = f"consume, Java, {shape}"
            with broker.measured(row) as span:
                read = java.consumer_perf(broker.bootstrap, topic, records)
            yield from _throughput(row, read["records_s"], records * shape.size, span, at_least(0.9), at_most(0.7))
            yield Figure(row, "records/s after the join", read["fetch_records_s"], at_least(0.9), span.noise)

    return Load(f"Java, {shape}", run)


def worker(module: str, *arguments: object) -> dict[str, float]:
    """Run a client program of this folder in another process and return the line of JSON at the end of its output."""
    output = java.run_tool([sys.executable, "-m", f"bench.{module}", *map(str, arguments)], cwd=_ROOT)
    figures: dict[str, float] = json.loads(output.splitlines()[-1])
    return figures


def _confluent_load(shape: _Shape) -> Load:
    def run(broker: RunningBroker, scale: float) -> Iterator[Figure]:
        records = shape.records(scale)
        with Topic(broker, shape.partitions) as topic:
            for action, rate_floor, cpu_floor in (
                ("produce", at_least(0.9), at_most(0.8)),
                ("consume", at_least(0.9), at_most(0.7)),
            ):
                arguments = action, broker.bootstrap, topic, shape.partitions, records, shape.size
                row = f"{action}, confluent-kafka, {shape}"
                with broker.measured(row) as span:
                    done = worker("confluent_client", *arguments)
                yield from _throughput(row, done["records_s"], records * shape.size, span, rate_floor, cpu_floor)

    return Load(f"confluent-kafka, {shape}", run)


def _one_record_load(in_flight: int, floor: Floor) -> Load:
    name = f"one-record requests, {in_flight} in flight"

    def run(broker: RunningBroker, scale: float) -> Iterator[Figure]:
        with Topic(broker, 1) as topic:
            requests = max(1000, int(40_000 * scale))
            with broker.measured(name) as span:
                done = worker("raw_client", broker.bootstrap, topic, requests, in_flight)
            yield Figure(name, "requests/s", done["requests_s"], floor, span.noise)
            yield Figure(name, "p50 µs", done["p50_us"], None, span.noise)
            yield Figure(name, "p99 µs", done["p99_us"], None, span.noise)
            yield Figure(name, "CPU µs/request", span.broker_cpu_s / requests * 1e6, None, span.noise)

    return Load(name, run)


def _end_to_end(broker: RunningBroker, scale: float) -> Iterator[Figure]:
    row = "end-to-end latency, Java, one record at a time"
    with Topic(broker, 1) as topic:
        with broker.measured(row) as span:
            done = java.end_to_end_latency(broker.bootstrap, topic, max(500, int(10_000 * scale)))
        yield Figure(row, "avg ms", done["avg_ms"], None, span.noise)
        yield Figure(row, "p99 ms", done["p99_ms"], None, span.noise)


_SHAPES = [_Shape(size, partitions) for size in (100, 1024) for partitions in (1, 12)]

LIFECYCLES = [Lifecycle("start and idle", _start_and_idle)]
WARM_UP = _java_load(_Shape(100, 1))
LOADS = [
    *(_java_load(shape) for shape in _SHAPES),
    *(_java_load(_Shape(shape.size, shape.partitions, "lz4")) for shape in _SHAPES),
    *(_confluent_load(shape) for shape in _SHAPES),
    _one_record_load(1, at_least(0.6)),
    _one_record_load(5, at_least(1.0)),
    Load("end-to-end latency", _end_to_end),
]
