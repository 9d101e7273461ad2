"""The clusters that are measured: three combined nodes, or three brokers and three controllers, of Ottla or of Apache Kafka.

Each node is on a host of its own (``compat_tests.cut_network``), so that it can be cut off. Apache Kafka's nodes run with the
options of its start script (1 GiB heap, G1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ottla.compat_tests.cut_network import CLIENTS, Network, both_ways
from ottla.compat_tests.kraft_cluster import (
    BROKER,
    CONTROLLER,
    KAFKA,
    OTTLA,
    KafkaNode,
    KRaftCluster,
    OttlaNode,
    Seat,
)

from ..cluster_kinds import StockKafkaNode
from .wire import elect_preferred, partitions_by

NODES = 3
COMBINED, APART = "combined", "apart"
SHAPES: Mapping[str, Sequence[Sequence[str]]] = {
    COMBINED: [(BROKER, CONTROLLER)] * NODES,
    APART: [*[(BROKER,)] * NODES, *[(CONTROLLER,)] * NODES],
}
NAMES: Mapping[str, str] = {OTTLA: "Ottla", KAFKA: "Apache Kafka 4.3.1"}
PATIENCE_S = 120.0
_LOOK_S = 0.02

DEFAULT, SHORT = "default", "short"
TIMES: Mapping[str, Mapping[str, str]] = {
    DEFAULT: {},
    SHORT: {
        "controller.quorum.fetch.timeout.ms": "1000",
        "broker.session.timeout.ms": "1500",
        "broker.heartbeat.interval.ms": "200",
    },
}
_PROPERTIES = {
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
}


class _Cluster(KRaftCluster):
    kinds: Mapping[str, type[KafkaNode | OttlaNode]] = {KAFKA: StockKafkaNode, OTTLA: OttlaNode}  # type: ignore[misc]


class MeasuredQuorum:
    """A cluster of one kind and shape, with one set of times, made but not started."""

    def __init__(self, kind: str, shape: str, times: str, folder: Path, network: Network, hosts: Sequence[str]) -> None:
        self.kind, self.shape, self.times = kind, shape, times
        self.network, self.hosts = network, hosts
        seats = [Seat(kind, roles) for roles in SHAPES[shape]]
        self.cluster = _Cluster(folder, seats, properties={**_PROPERTIES, **TIMES[times]})
        for node, host in zip(self.cluster.nodes, hosts, strict=False):
            node.host = network.address(host)
            node.bootstrap = node.address
            node.prefix = network.on(host)

    def __str__(self) -> str:
        return f"{NAMES[self.kind]}, {self.shape}, {self.times}"

    def prepare(self) -> None:
        """Format every folder."""
        for node in self.cluster.nodes:
            self.cluster.prepare(node)

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def addresses(self, but: int = 0) -> list[str]:
        """Of the brokers, but for one node."""
        return [node.address for number, node in enumerate(self.cluster.nodes, 1) if node.is_broker and number != but]

    def controller(self) -> int:
        """The id of the active controller."""
        self.until(lambda: self.cluster.controller() is not None, "a controller is active")
        found = self.cluster.controller()
        assert found is not None
        return found

    def cut_off(self, node_id: int) -> None:
        """A node loses its network."""
        others = [CLIENTS, *(host for number, host in enumerate(self.hosts, 1) if number != node_id)]
        self.network.cut(both_ways([self.hosts[node_id - 1]], others))

    def revive(self, node_id: int) -> None:
        """The end of any fault of a node."""
        node = self.cluster.node(node_id)
        self.network.heal()
        if not node.is_running:
            node.start()
        else:
            node.resume()

    def make_whole(self, topic: str, partitions: int) -> None:
        """Return when every replica of a topic is in sync, and the preferred ones lead, as every broker tells."""

        def is_whole() -> bool:
            for address in self.addresses():
                states = partitions_by(address, topic)
                if len(states) != partitions:
                    return False
                if any(len(state.isr_nodes) < NODES for state in states):
                    return False
                if any(state.leader_id != state.replica_nodes[0] for state in states):
                    elect_preferred(self.addresses()[0], topic, partitions)
                    return False
            return True

        self.until(is_whole, f"{topic} is whole")

    def all_vote(self) -> bool:
        """Whether each controller has fetched what is committed."""
        quorum = self.cluster.described_quorum()
        return quorum is not None and all(
            voter.log_end_offset >= quorum.high_watermark for voter in quorum.current_voters
        )

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait. Raises TimeoutError."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self}: timed out until {what}")
            time.sleep(_LOOK_S)

    def close(self) -> None:
        """End everything."""
        self.cluster.close()
