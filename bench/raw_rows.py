"""Raw Produce requests, acks=1, by size, connections and partitions: two brokers, and the sink beside them.

They run when ``--rows`` names them: ``make bench ARGS="--rows raw"``. The load generator in C leaves the brokers more of the
cores than a client in Python. The sink stores nothing: its CPU time is what the kernel takes for the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .brokers import RunningBroker
from .load_generator import RECORD_BYTES, LoadGenerator, batch, produce_request, records_in
from .rows import Figure, Load, Topic

_IN_FLIGHT = 5
"""As many as a producer has by default."""
_REQUESTS, _LEAST = 40_000, 200
_MOST_BYTES = 512 << 20
"""Of a run, so that large requests don't fill a disk."""
_MOST_BATCHES = 400_000
"""Of a run, so that one with many in each request does not take minutes."""


@dataclass(frozen=True)
class _Shape:
    """What is sent: a batch of records of 100 B for each of ``partitions``."""

    about: str
    batch_bytes: int = 200
    """At most; and at least one record. They limit how many requests there are."""
    partitions: int = 1
    connections: int = 1
    in_flight: int = _IN_FLIGHT

    def requests(self, scale: float) -> int:
        """At least two for each connection."""
        most = min(_REQUESTS, _MOST_BYTES / (self.batch_bytes * self.partitions), _MOST_BATCHES / self.partitions)
        return max(_LEAST, 2 * self.connections, int(most * scale))


def _raw_load(shape: _Shape, by_bytes: bool = False) -> Load:
    name = f"raw, {shape.about}"

    def run(broker: RunningBroker, scale: float) -> Iterator[Figure]:
        requests, records = shape.requests(scale), records_in(shape.batch_bytes)
        with Topic(broker, shape.partitions) as topic:
            request = produce_request(topic, range(shape.partitions), batch(records))
            generator = LoadGenerator(broker.folder, broker.port, request, shape.connections, shape.in_flight)
            with generator:
                generator.run(max(_LEAST, shape.connections, requests // 2))
                with broker.measured(name, [generator.pid]) as span:
                    done = generator.run(requests)
        payload = RECORD_BYTES * records * shape.partitions
        if by_bytes:
            yield Figure(name, "MB/s", done["requests_s"] * payload / 1e6, None, span.noise)
            yield Figure(name, "CPU s/GB", span.broker_cpu_s / (requests * payload / 1e9), None, span.noise)
        else:
            yield Figure(name, "requests/s", done["requests_s"], None, span.noise)
            yield Figure(name, "CPU µs/request", span.broker_cpu_s / requests * 1e6, None, span.noise)
        yield Figure(name, "p50 µs", done["p50_us"], None, span.noise)
        yield Figure(name, "p99 µs", done["p99_us"], None, span.noise)

    return Load(name, run, on_demand=True, on_sink=True, warms_up=True)


def _of_size(kib: int) -> Load:
    label = f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"
    return _raw_load(_Shape(f"{label} a request", kib << 10), by_bytes=True)


def _over_connections(connections: int) -> Load:
    plural = "" if connections == 1 else "s"
    about = f"one record, {connections:,} connection{plural}"
    return _raw_load(_Shape(about, connections=connections, in_flight=1))


def _to_partitions(partitions: int) -> Load:
    """One record for each."""
    plural = "" if partitions == 1 else "s"
    return _raw_load(_Shape(f"{partitions:,} partition{plural} a request", partitions=partitions))


RAW = [
    *map(_of_size, (1, 16, 64, 256, 1024)),
    *map(_over_connections, (1, 100, 1000)),
    *map(_to_partitions, (1, 10, 100, 1000)),
]
