"""``python -m bench.machine``: one broker and two under one command (``ottla serve --brokers``), beside one of Apache Kafka.

Two load generators send at once, each to a partition of its own. Of two brokers each leads one of the partitions; a single broker
has both. Rates are of both generators together. CPU is that of all brokers of a kind, *cores* how many of them were busy with it;
the generators take their part of the same cores. The kinds take turns.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ottla.compat_tests.wire_client import Operator, cluster_view
from ottla.tools.suite import speed

from .brokers import ApacheKafka, Kind, RunningBroker
from .load_generator import LoadGenerator, batch, fetch_frame, produce_request, records_in

_GENERATORS = 2


class OttlaBrokers:
    """So many of Ottla on one machine."""

    def __init__(self, count: int) -> None:
        self.name = f"Ottla, {count} broker{'s' if count > 1 else ''}"
        self.ports = count + 2
        self._count = count

    def prepare(self, folder: Path, port: int) -> list[str]:
        serve = [str(Path(sys.executable).parent / "ottla"), "serve", "--brokers", str(self._count)]
        return [*serve, "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder / "data"), "--log-level", "warning"]


KINDS: list[Kind] = [OttlaBrokers(1), OttlaBrokers(2), ApacheKafka()]


@dataclass(frozen=True)
class Row:
    """``make`` is the frame that is sent to a partition of a topic; ``filled`` requests of 16 KiB are in it before."""

    name: str
    make: Callable[[str, int], bytes]
    requests: int
    filled: int = 0
    in_flight: int = 5


def _produce(batch_bytes: int) -> Callable[[str, int], bytes]:
    records = batch(records_in(batch_bytes))
    return lambda topic, partition: produce_request(topic, [partition], records)


ROWS = [
    Row("produce, one record", _produce(200), 20_000),
    Row("produce, 16 KiB", _produce(16 << 10), 10_000),
    Row("fetch, 1 MiB", fetch_frame, 2_000, filled=200),
]


class Result(NamedTuple):
    """Of both generators together."""

    requests_s: float
    cpu_us: float
    cores: float
    noise: float


class _Machine:
    """A kind that runs, and its partitions."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker
        view = cluster_view(broker.bootstrap, 60)
        assert view is not None, f"{broker.name} does not answer"
        brokers = sorted(view.brokers.items())
        self._leaders = [brokers[number % len(brokers)] for number in range(_GENERATORS)]
        self._topics = itertools.count(1)

    def run(self, row: Row, scale: float) -> Result:
        topic = f"machine-{next(self._topics)}"
        Operator(self.broker.bootstrap).create_topic(topic, 0, {}, replicas=[[leader] for leader, _ in self._leaders])
        requests = max(int(row.requests * scale), 100)
        if row.filled:
            with self._generators(lambda number: _produce(16 << 10)(topic, number), 5) as generators:
                _together(generators, row.filled)
        with self._generators(lambda number: row.make(topic, number), row.in_flight) as generators:
            _together(generators, requests // 2)
            with self.broker.measured(row.name, [each.pid for each in generators]) as span:
                done = _together(generators, requests)
        cpu_us = span.broker_cpu_s / (requests * _GENERATORS) * 1e6
        return Result(sum(done), cpu_us, span.broker_cpu_s / span.wall_s, span.noise)

    @contextlib.contextmanager
    def _generators(self, make: Callable[[int], bytes], in_flight: int) -> Iterator[list[LoadGenerator]]:
        with contextlib.ExitStack() as stack:
            generators = []
            for number, (_, address) in enumerate(self._leaders):
                folder = self.broker.folder / f"generator-{number}"
                folder.mkdir(exist_ok=True)
                port = int(address.rpartition(":")[2])
                generators.append(stack.enter_context(LoadGenerator(folder, port, make(number), in_flight=in_flight)))
            yield generators


def _together(generators: list[LoadGenerator], requests: int) -> list[float]:
    """The rates of generators that send at once."""
    with ThreadPoolExecutor(len(generators)) as threads:
        return [each["requests_s"] for each in threads.map(lambda one: one.run(requests), generators)]


def _table(results: Mapping[tuple[str, str], list[Result]]) -> Iterator[str]:
    yield "| row | kind | requests/s | CPU µs/request | cores | of 1 broker: rate | CPU |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for row in ROWS:
        for kind in KINDS:
            if not (found := results.get((row.name, kind.name))):
                continue
            single = results[row.name, KINDS[0].name]
            pairs = list(zip(found, single, strict=True))
            rate = statistics.median(one.requests_s / other.requests_s for one, other in pairs)
            cpu = statistics.median(one.cpu_us / other.cpu_us for one, other in pairs)
            medians = [statistics.median(values) for values in zip(*found, strict=True)]
            figures = f"{medians[0]:,.0f} | {medians[1]:,.1f} | {medians[2]:.2f} | {rate:.2f} | {cpu:.2f}"
            yield f"| {row.name} | {kind.name} | {figures} |"


def main(
    turns: Annotated[int, typer.Option(min=1, help="How often each load is run on each kind.")] = 5,
    scale: Annotated[float, typer.Option(min=0.01, help="Multiplies the number of requests.")] = 1.0,
) -> None:
    """Measure one broker, two, and Apache Kafka 4.3.1 under two load generators."""
    results: dict[tuple[str, str], list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, contextlib.ExitStack() as stack:
        machines = {
            kind.name: _Machine(stack.enter_context(RunningBroker(kind, Path(folder) / f"kind-{number}")))
            for number, kind in enumerate(KINDS)
        }
        for turn, row in itertools.product(range(turns), ROWS):
            for name, machine in machines.items():
                result = machine.run(row, scale)
                results.setdefault((row.name, name), []).append(result)
                print(f"turn {turn + 1}, {row.name}, {name}: {result}", file=sys.stderr)
    print(*_table(results), sep="\n")
    print(f"\non {os.cpu_count()} cores; Ottla's Python is {speed.described(sys.executable)}; median of {turns} turns.")


if __name__ == "__main__":
    typer.run(main)
