"""``python -m bench.balance [plan] [ottla] [kafka]``: times and results of ``ottla cluster balance``.

``plan``: the time of the search for 3,000 and 30,000 partitions. The others: three brokers in processes of their own, of Ottla or
of Apache Kafka 3.9, one of them empty; a load writes a record of 1 KB fifty times a second with acks=all, and measures its
latency, first alone, then while a throttled plan is stopped in the middle and resumed.
"""

from __future__ import annotations

import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer

from ottla.balance.model import BrokerModel, ClusterModel, PartitionModel
from ottla.balance.plan import find_plan
from ottla.compat_tests.clusters import cluster

_SIZES = ((3_000, 6, None), (3_000, 6, 3), (30_000, 12, 3), (30_000, 30, None))
_FACTOR = 3
_PARTITIONS = 30
_RECORD = bytes(10_000)
_THROTTLE = 4_000_000
_ALONE_SECONDS = 15.0
_PAUSE_SECONDS = 0.02


def main(chosen: Sequence[str]) -> None:
    """Print what was measured."""
    for what in chosen or ("plan", "ottla", "kafka"):
        if what == "plan":
            _plan()
        else:
            _run(what)


def _plan() -> None:
    for partitions, brokers, racks in _SIZES:
        skewed = _skewed(partitions, brokers, racks)
        began = time.process_time()
        plan = find_plan(skewed)
        seconds = time.process_time() - began
        print(
            f"{partitions} partitions with {_FACTOR} replicas, {brokers} brokers, {racks or 'no'} racks: {seconds:.1f} s, "
            f"{len(plan.moves)} partitions change, {plan.bytes / 1e9:.0f} GB to copy, not reached: {[*plan.missed]}"
        )


def _skewed(partitions: int, brokers: int, racks: int | None) -> ClusterModel:
    """The last broker is empty, and the loads of the others differ by up to a factor of four."""
    chance = random.Random(1)
    found = []
    for number in range(partitions):
        replicas: list[int] = []
        while len(replicas) < _FACTOR:
            (broker,) = chance.choices(range(brokers - 1), [1 + broker % 4 for broker in range(brokers - 1)])
            if broker not in replicas:
                replicas.append(broker)
        size, written = int(chance.lognormvariate(18, 1.2)), int(chance.lognormvariate(8, 1.5))
        key = (f"topic-{number // 50}", number % 50)
        found.append(
            PartitionModel(key, tuple(replicas), replicas[0], frozenset(replicas), 2, size, written, 2 * written)
        )
    return ClusterModel(
        tuple(BrokerModel(b, f"rack-{b % racks}" if racks else None) for b in range(brokers)), tuple(found)
    )


def _run(kind: str) -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, cluster(kind, Path(folder)) as running:
        _fill(running.bootstrap)
        load = _Load(running.bootstrap)
        time.sleep(5)  # a JVM compiles meanwhile
        load.take()
        time.sleep(_ALONE_SECONDS)
        alone = load.take()
        first = _balance(running.bootstrap, stops=True)
        second = _balance(running.bootstrap)
        beside = load.take()
        load.end()
    print(
        f"{kind}: p99 alone {_p99(alone):.1f} ms ({len(alone)}), while a plan runs {_p99(beside):.1f} ms ({len(beside)})"
    )
    moved, planned = len(first["moved"]), len(first["moves"])
    print(f"  stopped: {first.get('stopped')} after {moved} of {planned} partitions; taken up: {len(second['moves'])}")
    for name in ("replicas", "leaders", "bytes"):
        before, after = (
            [broker[when][name] for broker in found["brokers"]]
            for found, when in ((first, "before"), (second, "after"))
        )
        print(f"  {name}: {before} -> {after}, at most {_off(after):.1%} from the mean")


def _fill(bootstrap: str) -> None:
    """Fill two of the brokers, with partitions of 0.4 to 4 MB."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({"skewed": {"assignments": {n: [1, 2] if n % 3 else [2, 1] for n in range(_PARTITIONS)}}})
    admin.create_topics({"load": {"assignments": {0: [1, 2, 3]}}})
    admin.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    for number in range(_PARTITIONS):
        for _ in range(40 * (1 + number % 10)):
            producer.send("skewed", _RECORD, partition=number)
    producer.flush()
    producer.close()


class _Load(threading.Thread):
    """Writes one record after another, and measures the latency of each, in milliseconds."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0)
        self._taken: list[float] = []
        self._is_over = False
        self.start()

    def run(self) -> None:
        while not self._is_over:
            began = time.perf_counter()
            self._producer.send("load", bytes(1000)).get(timeout=60)
            self._taken.append(1000 * (time.perf_counter() - began))
            time.sleep(_PAUSE_SECONDS)

    def take(self) -> list[float]:
        """The latencies since the last call."""
        taken, self._taken = self._taken, []
        return taken

    def end(self) -> None:
        self._is_over = True
        self.join()
        self._producer.close()


def _balance(bootstrap: str, *, stops: bool = False) -> Any:
    """The command's JSON; with ``stops`` it is interrupted in its second step, as by Ctrl-C."""
    options = ["--window", "2", "--disk-limit", "100", "--at-once", "2", "--throttle", str(_THROTTLE), "--json"]
    command = [sys.executable, "-m", "ottla", "cluster", "balance", "-b", bootstrap, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        if stops:
            for line in running.stderr:
                if "step 2 of" in line:
                    running.send_signal(signal.SIGINT)
                    break
        output, errors = running.communicate()
    if not output:
        raise RuntimeError(errors)
    return {"moved": []} | json.loads(output)


def _p99(taken: Sequence[float]) -> float:
    return statistics.quantiles(taken, n=100)[-1]


def _off(loads: Sequence[int]) -> float:
    mean = sum(loads) / len(loads)
    return max(abs(load - mean) for load in loads) / mean


if __name__ == "__main__":
    main(sys.argv[1:])
