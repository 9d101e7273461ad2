"""Long benchmarks of three brokers: many connections and partitions, a slow follower, a follower that was away.

They run when ``--rows`` names them: ``make bench ARGS="--cluster --rows 'crowd|slow|behind'"``, each on a cluster of its own.
They show that memory is bounded, and what a follower that catches up costs producers.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from ottla.compat_tests.brokers import BrokerProcess

from . import java
from .cluster_kinds import MeasuredCluster, metadata, wait_for
from .raw_client import produce_error, produce_frame
from .rows import Figure, at_least, at_most
from .usage import resident_mib

CROWDED, SLOW, BEHIND = "crowded brokers", "slow follower", "follower far behind"

_TOPICS, _PARTITIONS_EACH = 30, 100
_CONNECTIONS = 500
_ROUNDS = 20
_IDLE_S = 20.0
_RECORD_BYTES = 1024
_LOAD_PARTITIONS = 12
_FOLLOWER = 3
_STOPPED_S, _RUNNING_S = 0.45, 0.05
_SAMPLE_S = 0.1


def crowd(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
    """3,000 partitions, and 500 connections to each broker that write one record each, repeatedly."""
    each = max(3, int(_PARTITIONS_EACH * scale))
    count = _TOPICS * each
    row = f"{count:,} partitions, 3 replicas"
    empty = cluster.memory_mib()
    cluster.begin_topics([f"crowd-{number}" for number in range(_TOPICS)], each)
    wait_for(lambda: cluster.in_sync(3) >= count)
    time.sleep(5)
    idle = cluster.memory_mib()
    yield Figure(row, "MiB, all brokers", idle, at_most(0.5))
    yield Figure(row, "KiB each replica", (idle - empty) * 1024 / (count * 3))
    with cluster.measured(row) as span:
        time.sleep(_IDLE_S * min(1.0, scale))
    yield Figure(row, "idle CPU ms/s", span.broker_cpu_s * 1000 / span.wall_s, at_most(1), span.noise)
    connections = max(10, int(_CONNECTIONS * scale))
    with _Connections(cluster, connections) as all_of_them:
        all_of_them.write()
        row = f"{row}, {connections} connections to each broker"
        yield Figure(row, "MiB, all brokers", cluster.memory_mib(), at_most(0.5))
        yield Figure(row, "KiB each connection", (cluster.memory_mib() - idle) * 1024 / (connections * 3))
        with cluster.measured(row) as span:
            for _ in range(_ROUNDS):
                all_of_them.write()
        requests = connections * 3 * _ROUNDS
        yield Figure(row, "one-record requests/s, acks=all", requests / span.wall_s, at_least(0.9), span.noise)
        yield Figure(row, "CPU ms each request", span.broker_cpu_s * 1000 / requests, None, span.noise)
        yield Figure(row, "MiB, all brokers, afterwards", cluster.memory_mib(), at_most(0.5))


class _Connections:
    """``count`` connections to each broker; ``write`` sends a record on each, to a partition that the broker leads."""

    def __init__(self, cluster: MeasuredCluster, count: int) -> None:
        self._cluster, self._count = cluster, count
        self._open: list[tuple[socket.socket, bytes]] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> _Connections:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * self._count + 1000)), hard))
        topics = metadata(self._cluster.running[0].address).topics
        for number, broker in enumerate(self._cluster.running, 1):
            led = [
                t.name for t in topics if any(p.partition_index == 0 and p.leader_id == number for p in t.partitions)
            ]
            frames = [produce_frame(name or "", b"x" * 100) for name in led]
            host, _, port = broker.address.rpartition(":")
            for which in range(self._count):
                connection = self._stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.append((connection, frames[which % len(frames)]))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self) -> None:
        """Raises RuntimeError when a broker returns an error."""
        for connection, frame in self._open:
            connection.sendall(frame)
        for connection, _ in self._open:
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            if error := produce_error(_exactly(connection, size)):
                raise RuntimeError(f"Produce returned error {error}")


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError("the broker closed the connection")
        data += piece
    return data


def slow_follower(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
    """A follower runs for a tenth of the time while 1 GB is written with acks=1: by how much the memory of leaders grows."""
    records = max(2000, int(1_000_000 * scale))
    follower = cluster.cluster.broker(_FOLLOWER)
    leaders = [broker for broker in cluster.running if broker is not follower]
    cluster.create_topic("slow", _LOAD_PARTITIONS)
    row = f"{records * _RECORD_BYTES / 1e9:.2g} GB with a slow follower"
    java.producer_perf(cluster.bootstrap, "slow", records // 10, _RECORD_BYTES, "none", "1")
    before = {broker.pid: resident_mib(broker.pid) for broker in leaders}
    with _beside(lambda: _highest(before)) as highest, _slowed(follower):
        made = java.producer_perf(cluster.bootstrap, "slow", records, _RECORD_BYTES, "none", "1")
    yield Figure(row, "MiB that a leader grows by at most", max(highest.values(), default=0.0), at_most(1))
    yield Figure(row, "records/s", made["records_s"], None)
    began = time.monotonic()
    wait_for(lambda: cluster.in_sync(3) >= _LOAD_PARTITIONS)
    yield Figure(row, "s until it is in sync again", time.monotonic() - began)


def _highest(before: dict[int, float]) -> dict[int, float]:
    return {pid: resident_mib(pid) - mib for pid, mib in before.items()}


@contextlib.contextmanager
def _beside(look: Callable[[], dict[int, float]]) -> Iterator[dict[int, float]]:
    """The highest of each value that ``look`` returns while the block runs."""
    found: dict[int, float] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_SAMPLE_S):
            for name, value in look().items():
                found[name] = max(found.get(name, value), value)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        ended.set()
        watching.join()


@contextlib.contextmanager
def _slowed(broker: BrokerProcess) -> Iterator[None]:
    """A broker runs for a tenth of the time; the pauses are too short for its session to expire."""
    ended = threading.Event()

    def hold() -> None:
        while not ended.is_set():
            os.kill(broker.pid, signal.SIGSTOP)
            ended.wait(_STOPPED_S)
            os.kill(broker.pid, signal.SIGCONT)
            ended.wait(_RUNNING_S)

    holding = threading.Thread(target=hold)
    holding.start()
    try:
        yield
    finally:
        ended.set()
        holding.join()


def far_behind(cluster: MeasuredCluster, scale: float) -> Iterator[Figure]:
    """A broker that missed 2 GB catches up while clients write with acks=all."""
    records = max(4000, int(2_000_000 * scale))
    probe = max(2000, records // 10)
    cluster.create_topic("behind", _LOAD_PARTITIONS)
    follower = cluster.cluster.broker(_FOLLOWER)
    java.producer_perf(cluster.bootstrap, "behind", probe, _RECORD_BYTES, "none", "all")
    follower.stop()
    java.producer_perf(cluster.bootstrap, "behind", records, _RECORD_BYTES, "none", "all")
    alone = java.producer_perf(cluster.bootstrap, "behind", probe, _RECORD_BYTES, "none", "all")
    row = f"{records * _RECORD_BYTES / 1e9:.2g} GB behind, written to meanwhile"
    began_with = _stored(follower)
    follower.launch()
    with cluster.measured(row) as span, ThreadPoolExecutor(1) as beside:
        made = beside.submit(java.producer_perf, cluster.bootstrap, "behind", probe, _RECORD_BYTES, "none", "all")
        wait_for(lambda: _stored(follower) > began_with)
        growing = time.monotonic()
        follower.wait_ready()
        wait_for(lambda: cluster.in_sync(3) >= _LOAD_PARTITIONS)
        caught_up_s = time.monotonic() - growing
        missed = _stored(follower) - began_with
        rate = made.result()
    yield Figure(row, "MB/s that it catches up by", missed / 1e6 / caught_up_s, at_least(0.9), span.noise)
    yield Figure(row, "s until it is in sync", caught_up_s, None, span.noise)
    yield Figure(row, "records/s before", alone["records_s"], None)
    yield Figure(row, "records/s meanwhile", rate["records_s"], at_least(0.9), span.noise)
    yield Figure(row, "share of the rate before", rate["records_s"] / alone["records_s"], None, span.noise)
    yield Figure(row, "p99 ms before", alone["p99_ms"], None)
    yield Figure(row, "p99 ms meanwhile", rate["p99_ms"], None, span.noise)
    yield Figure(row, "MiB, all brokers", cluster.memory_mib(), at_most(0.5))
    cluster.cluster.wait_joined()


def _stored(broker: BrokerProcess) -> int:
    return sum(file.stat().st_size for file in broker.data_folders[0].glob("behind-*/*.log"))


LARGE_LOADS: dict[str, Callable[[MeasuredCluster, float], Iterator[Figure]]] = {
    CROWDED: crowd,
    SLOW: slow_follower,
    BEHIND: far_behind,
}
