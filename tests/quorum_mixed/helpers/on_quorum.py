"""A cluster of KRaft of three nodes of Apache Kafka 4.3 and two brokers of Ottla."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ottla.compat_tests.clients.security import Security, librdkafka_properties
from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.compat_tests.session import eventually
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData

from ...mixed.helpers.mixed import PATIENCE_S, Mixed

PROPERTIES = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "replica.lag.time.max.ms": "2000",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


class QuorumMixed(Mixed):
    """The nodes of Apache Kafka are controllers as well, and one of them is the active one."""

    internal_partitions = range(5)

    def __init__(self, cluster: QuorumCluster) -> None:
        super().__init__(cluster, None if cluster.security is None else librdkafka_properties(cluster.security))
        self.quorum = cluster

    def active(self) -> int:
        """The id of the active controller, as a broker of Ottla that runs tells it."""
        asked = next(each for each in self.quorum.of_kind("ottla") if self.quorum.node(each).is_running)
        topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])

        def told() -> int | None:
            try:
                with self.connect(asked) as connection:
                    response = connection.call(DescribeQuorumRequest(topics=[topic]), 1)
            except TimeoutError:
                return None
            if response.error_code:
                return None
            leader: int = response.topics[0].partitions[0].leader_id
            return leader if leader > 0 else None

        active = eventually(told, PATIENCE_S)
        assert active is not None
        return active


@contextlib.contextmanager
def running(
    folder: Path, kafkas: int = 3, ottlas: int = 2, *, security: Security | None = None, **properties: str
) -> Iterator[QuorumMixed]:
    """A context with a started cluster. ``security``: how brokers are asked about each other."""
    cluster = QuorumCluster(folder, kafkas, ottlas, properties={**PROPERTIES, **properties})
    cluster.security = security
    with contextlib.closing(cluster):
        cluster.start()
        yield QuorumMixed(cluster)
