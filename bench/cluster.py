"""``make bench ARGS=--cluster``: three combined nodes beside three of Apache Kafka 4.3.1, on the same cores, in pairs.

Every topic has three replicas, and producers wait for all of them. CPU is that of the three nodes together, controllers among
it. Loads run on clusters that stay up; the rows of many and of idle partitions, and those of ``cluster_load``, which run
only when they are named, start clusters of their own, which must be empty.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ottla.compat_tests.brokers import BrokerProcess
from ottla.tools.suite import speed

from . import java
from .cluster_kinds import KINDS, PROFILED, CombinedNodes, MeasuredCluster, MeasuredOttlaNode, wait_for
from .cluster_load import LARGE_LOADS
from .cluster_raw import BESIDE_IDLE, BESIDE_MANY, RAW_LOADS
from .report import profile_table
from .rows import Figure, at_least, at_most
from .run import Run
from .usage import Span

_PARTITIONS = 12
_AWAY = 3
"""The broker that is stopped while a load is written, and then catches up."""
_TOPICS, _PARTITIONS_EACH = 10, 100
_MANY = _TOPICS * _PARTITIONS_EACH
_topic_numbers = itertools.count(1)

Load = Callable[[MeasuredCluster, float], Iterator[Figure]]


def _produce(size: int) -> Load:
    def run(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
        row = f"produce, acks=all, 3 replicas, {size} B, {_PARTITIONS} partitions"
        records = max(2000, int((1_000_000 if size == 100 else 250_000) * scale))
        with _topic(cluster) as topic:
            with cluster.measured(row) as span:
                made = java.producer_perf(cluster.bootstrap, topic, records, size, "none", "all")
            yield Figure(row, "records/s", made["records_s"], at_least(0.9), span.noise)
            cpu = span.broker_cpu_s / (records * size / 1e9)
            yield Figure(row, "CPU s/GB", cpu, at_most(0.7), span.noise)
            yield Figure(row, "p99 ms", made["p99_ms"], None, span.noise)

    return run


def _catch_up(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
    """A broker is stopped, misses a load, and is started again; its rate is from its first new byte until it is in sync."""
    row, size = "catch-up after a restart", 1024
    records = max(2000, int(500_000 * scale))
    with _topic(cluster) as topic:
        broker = cluster.cluster.broker(_AWAY)
        broker.stop()
        java.producer_perf(cluster.bootstrap, topic, records, size, "none", "all")
        began_with = _bytes_of(broker, topic)
        broker.launch()
        began = time.monotonic()
        with cluster.measured(row) as span:
            wait_for(lambda: _bytes_of(broker, topic) > began_with)
            growing = time.monotonic()
            broker.wait_ready()
            wait_for(lambda: cluster.in_sync(3) >= _PARTITIONS)
            ended = time.monotonic()
        missed = _bytes_of(broker, topic) - began_with
        yield Figure(row, "MB/s", missed / 1e6 / (ended - growing), at_least(0.9), span.noise)
        yield Figure(row, "s from exec", ended - began, None, span.noise)
        yield Figure(row, "CPU s/GB", span.broker_cpu_s / (missed / 1e9), None, span.noise)
        cluster.cluster.wait_joined()


def _bytes_of(broker: BrokerProcess, topic: str) -> int:
    return sum(file.stat().st_size for file in broker.data_folders[0].glob(f"{topic}-*/*.log"))


def _many_partitions(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
    """Always the same number: ``scale`` does not apply."""
    row = f"{_MANY:,} partitions, 3 replicas"
    with cluster.measured(row) as span:
        cluster.begin_topics([f"many-{number}" for number in range(_TOPICS)], _PARTITIONS_EACH)
        wait_for(lambda: cluster.led((1, 2, 3)) >= _MANY)
    yield Figure(f"{row}, created", "s", span.wall_s, at_most(1), span.noise)
    yield Figure(f"{row}, created", "CPU s", span.broker_cpu_s, None, span.noise)
    wait_for(lambda: cluster.in_sync(3) >= _MANY)
    time.sleep(10)
    yield Figure(f"{row}, memory of all brokers", "MiB", cluster.memory_mib(), at_most(0.25))
    controller = cluster.cluster.controller()
    assert controller is not None
    other = next(broker_id for broker_id in (1, 2, 3) if broker_id != controller)
    for killed, what in ((other, "a broker"), (controller, "the controller")):
        span = _fail_over(cluster, killed)
        yield Figure(f"{row}, failover of {what}", "s after the session", span.wall_s, at_most(1), span.noise)
        yield Figure(f"{row}, failover of {what}", "CPU s", span.broker_cpu_s, None, span.noise)
        began = time.monotonic()
        cluster.cluster.start_broker(killed)
        wait_for(lambda: cluster.in_sync(3) >= _MANY)
        yield Figure(f"{row}, {what} back in sync", "s", time.monotonic() - began)


def _fail_over(cluster: MeasuredCluster, killed: int) -> Span:
    """From the end of a killed broker's session until the others report that they lead all partitions."""
    cluster.cluster.broker(killed).kill()
    left = [broker_id for broker_id in (1, 2, 3) if broker_id != killed]
    wait_for(lambda: not cluster.is_alive(killed))
    with cluster.measured(f"{_MANY:,} partitions, failover") as span:
        wait_for(lambda: cluster.led(left) >= _MANY)
    return span


@contextlib.contextmanager
def _topic(cluster: MeasuredCluster) -> Iterator[str]:
    """A fresh topic for one run, deleted after it."""
    name = f"bench-{next(_topic_numbers)}"
    cluster.create_topic(name, _PARTITIONS)
    try:
        yield name
    finally:
        cluster.delete_topic(name)


LOADS: dict[str, Load] = {
    "produce, 100 B": _produce(100),
    "produce, 1024 B": _produce(1024),
    "catch-up": _catch_up,
}
WARM_UP = "produce, 100 B"
OWN_LOADS: dict[str, Load] = {"many partitions": _many_partitions, **BESIDE_IDLE}
ON_DEMAND = LARGE_LOADS | BESIDE_MANY
EVERY_LOAD = (*LOADS, *RAW_LOADS, *OWN_LOADS, *ON_DEMAND)


class ClusterBench(Run):
    """Clusters of several kinds, by name."""

    def __init__(self, kinds: Mapping[str, type[CombinedNodes]], pairs: int, scale: float, folder: Path) -> None:
        super().__init__(list(kinds))
        self._kinds, self._pairs, self._scale, self._folder = kinds, pairs, scale, folder

    def loads(self, rows: re.Pattern[str]) -> None:
        """Loads on clusters that stay up; the first load of each is a warm-up, and not counted."""
        chosen = {name: load for name, load in (LOADS | RAW_LOADS).items() if rows.search(name)}
        if not chosen:
            return
        with contextlib.ExitStack() as stack:
            clusters = [
                stack.enter_context(MeasuredCluster(name, kind, self._folder / f"loads-{number}"))
                for number, (name, kind) in enumerate(self._kinds.items())
            ]
            # Raw loads have a warm-up of their own, which is enough for Ottla.
            is_to_warm_up = len(clusters) > 1 or chosen.keys() - RAW_LOADS.keys()
            for cluster in clusters if is_to_warm_up else ():
                self._warm_up(cluster.name, LOADS[WARM_UP](cluster, self._scale / 2))
            for name, load in chosen.items():
                for pair, cluster in itertools.product(range(self._pairs), clusters):
                    self._measure(name, cluster.name, pair, load(cluster, self._scale))
            self.profiles = clusters[0].profiles

    def own_clusters(self, rows: re.Pattern[str]) -> None:
        """Loads on clusters of their own, one at a time."""
        offered = OWN_LOADS | ON_DEMAND if rows.pattern else OWN_LOADS
        chosen = {name: load for name, load in offered.items() if rows.search(name)}
        for number, (row, load) in enumerate(chosen.items()):
            for pair, (name, kind) in itertools.product(range(self._pairs), self._kinds.items()):
                with MeasuredCluster(name, kind, self._folder / f"own-{number}-{pair}-{name[:5]}") as cluster:
                    self._measure(row, name, pair, load(cluster, self._scale))


def measure_clusters(
    rows: str, pairs: int, scale: float, only_ottla: bool, profile: bool, output: Path | None, folder: Path | None
) -> list[str]:
    """Measure, print, and write ``output`` if it is given. Returns the rows that missed their floors or failed."""
    kinds = PROFILED if profile else dict(itertools.islice(KINDS.items(), 1)) if only_ottla else KINDS
    wanted = re.compile(rows)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-", dir=folder) as temporary:
        bench = ClusterBench(kinds, pairs, scale, Path(temporary))
        bench.loads(wanted)
        bench.own_clusters(wanted)
    bench.results.print()
    if profile:
        print(*profile_table(bench.profiles), sep="\n")
    if output is not None:
        options = ["--cluster", *(["--rows", rows] if rows else []), "--pairs", str(pairs), "--scale", f"{scale:g}"]
        command = f"make bench ARGS={shlex.quote(shlex.join(options))}"
        output.write_text(bench.results.markdown("Three brokers of each", command, _about(kinds, pairs, scale)))
    missed = [f"missed: {row}" for row in bench.results.missed()]
    return missed + [f"failed: {name}" for name in bench.failures]


def _about(kinds: Iterable[str], pairs: int, scale: float) -> list[str]:
    return [
        f"on {os.cpu_count()} cores, {platform.system()}; Ottla's Python is {speed.described(MeasuredOttlaNode.python)}.",
        f"Clients and brokers share the cores. Median of {pairs} alternating pairs, scale {scale:g}. CPU is",
        "that of the three brokers together, per 10^9 bytes of record values, each of which is written three times. Noise is",
        "the highest share of all cores that neither these brokers nor the client took in any run of the row; above 0.1 it is",
        f"marked. Ratios are {' / '.join(kinds)}; only they travel between machines.",
    ]
