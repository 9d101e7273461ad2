"""Clusters of KRaft: which nodes are brokers, controllers or both, whose each of them is, and where partitions lie.

``quorum`` is three nodes of Apache Kafka, brokers and controllers in one, and two brokers of Ottla; each partition of the test's
topics has replicas on both. Where all controllers are Ottla's, the voters may change: one that comes back with an empty disk
takes the place of the voter that it was (``controller.quorum.auto.join.enable``).
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.cut_network import Network
from ottla.compat_tests.kraft_cluster import BROKER, CONTROLLER, KAFKA, OTTLA, KafkaNode, KRaftCluster, OttlaNode, Seat
from ottla.compat_tests.server_process import START_TIMEOUT_S

from .coordination import SESSION_S, Coordination, host_of

MIXED = (*[Seat(KAFKA)] * 3, *[Seat(OTTLA, (BROKER,))] * 2)
ALL_OTTLA = (Seat(OTTLA),) * 3
APART = (*[Seat(OTTLA, (BROKER,))] * 3, *[Seat(OTTLA, (CONTROLLER,))] * 3)
KAFKA_ON_OTTLA = (*[Seat(KAFKA, (BROKER,))] * 3, *[Seat(OTTLA, (CONTROLLER,))] * 3)
_ON_BOTH_KINDS = ((4, 1, 2), (5, 3, 4), (1, 5, 3))

_PROPERTIES: Mapping[str, str] = {
    "broker.session.timeout.ms": str(int(SESSION_S * 1000)),
    "broker.heartbeat.interval.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.retention.bytes": "30000",
}
"""The metadata log begins anew, with a snapshot, every one or two minutes."""

_ELECTION_S = 10.0
_LOOK_S = 0.1
_STOP_S = 40.0
"""A broker of Kafka whose controllers cannot be reached waits for five minutes before it stops."""


class QuorumCoordination(Coordination):
    """A cluster of these ``seats``, brokers first, with Kafka's ``properties``."""

    def __init__(self, seats: Sequence[Seat], properties: Mapping[str, str], folder: Path, network: Network) -> None:
        self._has_own_controllers = all(seat.kind == OTTLA for seat in seats if CONTROLLER in seat.roles)
        joins = {"controller.quorum.auto.join.enable": "true"} if self._has_own_controllers else {}
        self._cluster = KRaftCluster(
            folder, seats, properties={**_PROPERTIES, **properties}, has_static_voters=not self._has_own_controllers
        )
        for node in self._cluster.controllers.values():
            node.properties.update(joins)
        self.nodes = self._cluster.nodes
        self.brokers = self._cluster.brokers
        self.hosts = [host_of(number) for number in self._cluster.controllers]
        self.delicate_hosts = () if self._has_own_controllers else self.hosts
        self.ports = [node.controller_port for node in self._cluster.controllers.values()]
        self.broker_ports = [broker.port for broker in self.brokers]
        self._has_both_kinds = len({broker.kind for broker in self.brokers}) > 1
        self.placement = _ON_BOTH_KINDS if self._has_both_kinds else ()

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    def start(self) -> None:
        self._cluster.start()

    def before_start(self, broker: BrokerProcess) -> None:
        """Format its disk, if it has a new one."""
        assert isinstance(broker, KafkaNode | OttlaNode)
        self._cluster.prepare(broker)

    def stop(self, broker: BrokerProcess) -> None:
        """As ``Coordination.stop``; a broker of Kafka that no controller lets go is killed."""
        if not isinstance(broker, KafkaNode):
            broker.stop(START_TIMEOUT_S)
            return
        try:
            broker.stop(_STOP_S)
        except subprocess.TimeoutExpired:
            broker.kill()

    def controller(self) -> int | None:
        """The id of the controller that leads the quorum, from those that can be reached."""
        return self._cluster.controller()

    def what_is_not_whole(self) -> str | None:
        """The voters that are missing: one that has come with an empty disk joins by itself, after a while."""
        quorum = self._cluster.described_quorum()
        if quorum is None:
            return "no controller is active"
        voters = {voter.replica_id: voter.log_end_offset for voter in quorum.current_voters}
        if set(voters) != set(self._cluster.controllers):
            return f"the voters are {sorted(voters)}"
        behind = [number for number, end in voters.items() if end < quorum.high_watermark]
        return f"controllers {behind} are behind" if behind else None

    def depose_controller(self) -> bool:
        """Pause the active controller's node until another one is active."""
        before = self.controller()
        if before is None:
            return False
        node = self._cluster.node(before)
        node.pause()
        try:
            deadline = time.monotonic() + _ELECTION_S
            while self.controller() in (None, before):
                if time.monotonic() > deadline:
                    return False
                time.sleep(_LOOK_S)
        finally:
            node.resume()
        return True

    def replicas(self, rng: random.Random) -> list[int]:
        """Brokers of both kinds, where there are such."""
        while True:
            chosen = super().replicas(rng)
            if len({self._cluster.kind(each) for each in chosen}) == 1 + self._has_both_kinds:
                return chosen

    def administrators(self) -> Sequence[BrokerProcess]:
        """All brokers, Ottla's first: they forward what they are asked."""
        return [broker for broker in reversed(self.brokers) if broker.is_running]

    def close(self) -> None:
        self._cluster.close()
