"""A share group on three processes of Ottla, brokers and controllers of one quorum, of which some are killed.

Killed are the leader of the group's partition, its share coordinator, which leads its partition of ``__share_group_state``, and
both. Nothing that was acknowledged comes again, nothing is lost, and delivery counts hold their limit.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.kraft_cluster import OTTLA, KRaftCluster, Seat
from ottla.compat_tests.raw.share_groups.wire_share import ShareConsumer, ShareGroup
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator, connect, topic_metadata
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from .helpers.share_history import violations
from .helpers.share_load import ANSWER_S, ShareLoad

pytestmark = pytest.mark.slow

PROPERTIES = {
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "500",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
}
PATIENCE_S = 90.0
TOPIC, GROUP_ID, STATES = "jobs", "workers", "__share_group_state"
GROUP, SHARE = 0, 2
GROUP_RESOURCE = 32
LIMIT = 3
CONFIGS = {
    "share.auto.offset.reset": "earliest",
    "share.record.lock.duration.ms": "1000",
    "share.delivery.count.limit": str(LIMIT),
}
PROGRESS = 200
"""How many records are finished between two events."""


class SharedCluster:
    """The cluster, and who leads and coordinates what the test reads."""

    def __init__(self, cluster: KRaftCluster) -> None:
        self.cluster = cluster

    def group_coordinator(self) -> str:
        """Its address."""
        return self.cluster.node(self._coordinator(GROUP, GROUP_ID)).address

    def share_coordinator(self) -> int:
        with connect(self.cluster.bootstrap) as connection:
            topic_id = base64.urlsafe_b64encode(topic_metadata(connection, TOPIC).topic_id).rstrip(b"=").decode()
        return self._coordinator(SHARE, f"{GROUP_ID}:{topic_id}:0")

    def _coordinator(self, key_type: int, key: str) -> int:
        """The id of one that runs."""

        def found() -> int | None:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            with contextlib.suppress(OSError, EOFError), connect(self.cluster.bootstrap, ANSWER_S) as connection:
                (answer,) = connection.call(request, 6).coordinators
                is_there = answer.error_code == ErrorCode.NONE and self.cluster.node(answer.node_id).is_running
                return answer.node_id if is_there else None
            return None

        coordinator = eventually(found, PATIENCE_S)
        assert coordinator is not None
        return coordinator

    def leader(self) -> int:
        """The id of the leader of the topic's partition, which runs."""

        def found() -> int | None:
            with contextlib.suppress(OSError, EOFError), connect(self.cluster.bootstrap, ANSWER_S) as connection:
                leader: int = topic_metadata(connection, TOPIC).partitions[0].leader_id
                return leader if leader > 0 and self.cluster.node(leader).is_running else None
            return None

        leader = eventually(found, PATIENCE_S)
        assert leader is not None
        return leader

    def wait_in_sync(self) -> None:
        """Return once every partition has all three replicas in sync: a majority of them outlives a kill."""

        def are_all() -> bool:
            with contextlib.suppress(OSError, EOFError), connect(self.cluster.bootstrap, ANSWER_S) as connection:
                topics = [topic_metadata(connection, name) for name in (TOPIC, STATES, "__consumer_offsets")]
                return all(len(part.isr_nodes) == 3 for topic in topics for part in topic.partitions)
            return False

        eventually(are_all, PATIENCE_S)

    def lag(self) -> int | None:
        """How many records are still to be delivered, as the group coordinator tells; None while it does not."""
        topic = DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[0])
        group = DescribeShareGroupOffsetsRequestGroup(group_id=GROUP_ID, topics=[topic])
        with contextlib.suppress(OSError, EOFError), connect(self.group_coordinator(), ANSWER_S) as connection:
            (told,) = connection.call(DescribeShareGroupOffsetsRequest(groups=[group]), 1).groups
            if not told.error_code and not told.topics[0].partitions[0].error_code:
                lag: int = told.topics[0].partitions[0].lag
                return lag
        return None


@pytest.fixture
def shared_cluster(tmp_path: Path) -> Iterator[SharedCluster]:
    """With the topic, led by node 1, whose state is led by any."""
    with contextlib.closing(KRaftCluster(tmp_path, [Seat(OTTLA)] * 3, properties=PROPERTIES)) as cluster:
        cluster.start()
        Operator(cluster.bootstrap).create_topic(TOPIC, 1, {"min.insync.replicas": "2"}, [[1, 2, 3]])
        yield SharedCluster(cluster)


@contextlib.contextmanager
def initialized(shared: SharedCluster) -> Iterator[ShareGroup]:
    """The group, whose state is initialized, with its settings."""
    configs = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in CONFIGS.items()]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=GROUP_ID, configs=configs)
    with connect(shared.group_coordinator()) as connection:
        (result,) = connection.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert result.error_code == ErrorCode.NONE, result
        group = ShareGroup(connection, GROUP_ID, TOPIC)
        group.initialize(TOPIC)
        yield group


def kill(shared: SharedCluster, load: ShareLoad, *roles: Callable[[], int]) -> None:
    """Kill the nodes of these roles, and start them again: one that is alone once the others went on, as a majority does."""
    shared.wait_in_sync()
    killed = {role() for role in roles}
    for node in killed:
        shared.cluster.node(node).kill()
    if len(killed) == 1:
        load.wait_progress(PROGRESS, PATIENCE_S)
    for node in killed:
        shared.cluster.node(node).launch()
    for node in killed:
        shared.cluster.node(node).wait_ready()
    shared.cluster.wait_joined()
    load.wait_progress(PROGRESS, PATIENCE_S)


def test_what_is_acknowledged_is_kept_through_failover(shared_cluster: SharedCluster) -> None:
    """In the end members accept all that comes, until nothing comes."""
    shared = shared_cluster
    with initialized(shared) as group:
        load = ShareLoad(shared.cluster.bootstrap, group, TOPIC, seed=1)
        with load.running():
            load.wait_progress(PROGRESS, PATIENCE_S)
            kill(shared, load, shared.leader)
            kill(shared, load, shared.share_coordinator)
            kill(shared, load, shared.leader, shared.share_coordinator)
            load.end_writing()
            eventually(lambda: shared.lag() == 0, PATIENCE_S)
        with connect(shared.cluster.node(shared.leader()).address) as connection:
            assert ShareConsumer(group, "last", TOPIC, connection).look() == []
    assert violations(load.log.events, LIMIT) == []
