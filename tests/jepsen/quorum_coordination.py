"""A cluster of KRaft: three nodes of Apache Kafka 4.3, brokers and controllers in one, and two brokers of Ottla.

Each partition of the test's topics has replicas on both. The topics of the coordinators are placed by the controller.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.base.errors import ErrorCode
from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.quorum_cluster import KafkaNode, OttlaNode, QuorumCluster
from ottla.compat_tests.wire_client import connect
from ottla.controller.raft.metadata_log import TOPIC
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

from .coordination import SESSION_S, VIEW_S, Coordination, host_of
from .network import Network

KAFKAS, OTTLAS = 3, 2
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
    """A cluster with Kafka's ``properties``."""

    hosts = tuple(host_of(number) for number in range(1, KAFKAS + 1))
    placement = ((4, 1, 2), (5, 3, 4), (1, 5, 3))

    def __init__(self, properties: Mapping[str, str], folder: Path, network: Network) -> None:
        self._cluster = QuorumCluster(folder, KAFKAS, OTTLAS, properties={**_PROPERTIES, **properties})
        self.brokers = self._cluster.nodes
        self.ports = [node.held_controller_port.number for node in self._cluster.controllers.values()]
        self.broker_ports = [broker.port for broker in self.brokers]

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
        if isinstance(broker, OttlaNode):
            broker.stop()
            return
        try:
            broker.stop(_STOP_S)
        except subprocess.TimeoutExpired:
            broker.kill()

    def controller(self) -> int | None:
        """The id of the controller that leads the quorum, from those that can be reached."""
        leaders = [leader for each in self._cluster.controllers.values() if (leader := _leader_by(each)) is not None]
        return max(leaders)[1] if leaders else None

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
        """Brokers of both kinds."""
        while set(chosen := super().replicas(rng)) <= set(self._cluster.of_kind("kafka")):
            pass
        return chosen

    def administrators(self) -> Sequence[BrokerProcess]:
        """All of them, Ottla's first: they forward what they are asked."""
        return [broker for broker in reversed(self.brokers) if broker.is_running]

    def close(self) -> None:
        self._cluster.close()


def _leader_by(node: KafkaNode) -> tuple[int, int] | None:
    """The epoch and the id of a controller that says it is the leader; None from any other."""
    request = DescribeQuorumRequest(topics=[TopicData(topic_name=TOPIC, partitions=[PartitionData(partition_index=0)])])
    if not node.is_running:
        return None
    with contextlib.suppress(OSError, EOFError), connect(node.controller_address, VIEW_S) as connection:
        answer = connection.call(request, 1)
        if not answer.error_code:
            (told,) = answer.topics[0].partitions
            return (told.leader_epoch, told.leader_id) if told.error_code == ErrorCode.NONE else None
    return None
