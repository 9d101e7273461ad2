"""The world of one machine: its broker's configuration, its network, and what its clients need to know about it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ottla.base.errors import ErrorCode
from ottla.base.network import Network
from ottla.controller.zookeeper.store.cluster_home import ClusterHome

from .faults import JumpingClock
from .machine import DATA, Machine
from .network import HOST, PORT, Client, SimulatedNetwork
from .run import Mode, Run, Violation

CONFIG = {
    "broker.id": "1",
    "log.dirs": DATA,
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.segment.bytes": "3000",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.segment.bytes": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.backoff.ms": "700",
    "log.cleaner.dedupe.buffer.size": str(1 << 20),
    "log.cleaner.min.cleanable.ratio": "0.3",
    "log.retention.check.interval.ms": "900",
    "log.flush.offset.checkpoint.interval.ms": "1100",
    "log.flush.start.offset.checkpoint.interval.ms": "1300",
    "log.segment.delete.delay.ms": "400",
    "log.index.interval.bytes": "200",
    "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
    "group.min.session.timeout.ms": "1000",
}


class World(Run):
    """A run with one machine; what ``Actor`` needs of a world is here and in ``Run``."""

    replication_factor = 1
    topic_configs: Mapping[str, str] = MappingProxyType({})
    """The configuration of every topic, in addition to its own."""
    acks = (-1, -1, 1)
    """The acks of Produce requests, one of these at random for each."""
    retriable: frozenset[ErrorCode] = frozenset()
    """Errors after which clients of this world retry, in addition to the usual ones."""
    trusts_time = True
    """Whether a time that is short for a client is also short for the brokers."""

    def __init__(self, seed: int, mode: Mode) -> None:
        super().__init__(seed, mode)
        self.network = SimulatedNetwork()
        self.machine = Machine(self, "broker", CONFIG, _Alone(self.network), self.random_for("world"))

    @property
    def clock(self) -> JumpingClock:
        return self.machine.clock

    def client(self, name: str) -> Client:
        return Client(self.network, name, self.random_for(f"network {name}"))


class _Alone:
    """The place of a single machine."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self.network: Network = network
        self._network = network

    def home(self) -> ClusterHome | None:
        return None

    def gone(self, *, power_lost: bool) -> None:
        self._network.cut_all()


__all__ = ["DATA", "Mode", "Violation", "World"]
