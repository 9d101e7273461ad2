"""Three brokers in one loop: each metric of a cluster moves for its cause, and stands still for others."""

from __future__ import annotations

import trio
import trio.testing
from prometheus_client.core import Metric

from ottla.base.errors import ErrorCode
from ottla.base.partitions import TopicPartition
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Set
from ottla.replication.quotas import NO_LIMIT
from ottla.tests.zookeeper_double.embedded_session import EmbeddedSession
from ottla.wire.messages.delete_topics import DeleteTopicsRequest

from ...helpers.memory_cluster import MemoryCluster, running, until
from ..helpers.collected_metrics import collected

ALL = (1, 2, 3)
REPLICAS = "kafka_server_replicamanager_"
TRAFFIC = "kafka_server_brokertopicmetrics_"
FETCHERS = "kafka_server_replicafetchermanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
ELECTIONS = "kafka_controller_controllerstats_"
EVENTS = "kafka_controller_controllereventmanager_"
SENDERS = "kafka_controller_controllerchannelmanager_"
SESSION = "kafka_server_sessionexpirelistener_"
QUIET = {"replica_lag_time_max_ms": "1000", "auto_leader_rebalance_enable": "false"}


def value(cluster: MemoryCluster, at: int, name: str, **labels: str) -> float:
    """The sum of a metric's samples with these labels at a broker, which are there."""
    found = [
        sample.value
        for family in _metrics(cluster, at)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert found, name
    return sum(found)


def values(cluster: MemoryCluster, name: str) -> list[float]:
    """At each broker that runs, in the order of their ids."""
    return [value(cluster, broker_id, name) for broker_id in sorted(cluster.servers)]


async def until_value(cluster: MemoryCluster, at: int, name: str, wanted: float, **labels: str) -> None:
    await until(lambda: value(cluster, at, name, **labels) == wanted)


def session_of(cluster: MemoryCluster, broker_id: int) -> EmbeddedSession:
    session_id = cluster.services(broker_id).cluster.session.session_id
    return next(session for session in cluster.store.sessions if session.session_id == session_id)


async def stop_following(cluster: MemoryCluster, broker_id: int, topic: str) -> None:
    """Have a broker leave a replica alone, and stay in the cluster; its leader then has a record that it lacks."""
    cluster.services(broker_id).replicas.stop(topic, 0, None, deletes=False)
    assert await cluster.produce(1, topic, 0, b"missed", acks=1) == ErrorCode.NONE


async def test_replicas_that_are_missed_and_come_back(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, min_insync_replicas="2", **QUIET) as cluster:
        await cluster.create("t", ALL)
        assert value(cluster, 1, REPLICAS + "leadercount") == 1
        assert values(cluster, REPLICAS + "partitioncount") == [1, 1, 1]
        for name in ("underreplicatedpartitions", "underminisrpartitioncount", "atminisrpartitioncount"):
            assert values(cluster, REPLICAS + name) == [0, 0, 0]
        await cluster.stop(3)
        await until_value(cluster, 1, REPLICAS + "underreplicatedpartitions", 1)
        assert value(cluster, 1, REPLICAS + "atminisrpartitioncount") == 1
        await cluster.stop(2)
        await until_value(cluster, 1, REPLICAS + "underminisrpartitioncount", 1)
        assert value(cluster, 1, REPLICAS + "atminisrpartitioncount") == 0
        assert value(cluster, 1, REPLICAS + "isrshrinks_total") == 0, "it was the controller that took them out"
        await cluster.start(2, 3)
        await until_value(cluster, 1, REPLICAS + "underreplicatedpartitions", 0)
        assert values(cluster, REPLICAS + "isrexpands_total") == [2, 0, 0]


async def test_a_follower_that_falls_behind(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, **QUIET) as cluster:
        await cluster.create("t", ALL)
        await stop_following(cluster, 3, "t")
        await until_value(cluster, 1, REPLICAS + "isrshrinks_total", 1)
        assert value(cluster, 1, REPLICAS + "underreplicatedpartitions") == 1
        assert (
            value(cluster, 1, REPLICAS + "isrexpands_total")
            == value(cluster, 1, REPLICAS + "failedisrupdates_total")
            == 0
        )


async def test_a_change_of_in_sync_replicas_that_another_has_overtaken(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, **QUIET) as cluster:
        await cluster.create("t", ALL)
        path = znodes.state_path("t", 0)
        session = cluster.store.session()
        await session.multi([Set(path, (await session.get(path)).data)])
        await stop_following(cluster, 3, "t")
        await until_value(cluster, 1, REPLICAS + "failedisrupdates_total", 1)
        assert value(cluster, 1, REPLICAS + "isrshrinks_total") == 0


async def test_what_is_replicated_is_counted_at_both_ends_and_not_as_consumed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(*ALL, **QUIET) as cluster:
        await cluster.create("t", ALL)
        assert await cluster.produce(1, "t", 0, b"one", b"two") == ErrorCode.NONE
        partition = cluster.services(1).replicas.partition("t", 0)
        size = partition.bytes_in
        assert size > 0
        await until(lambda: values(cluster, TRAFFIC + "replicationbytesin_total") == [0, size, size])
        assert values(cluster, TRAFFIC + "replicationbytesout_total") == [2 * size, 0, 0]
        assert partition.bytes_out == 0
        await cluster.values(1, "t", 0)
        assert partition.bytes_out == size
        assert values(cluster, TRAFFIC + "replicationbytesout_total") == [2 * size, 0, 0]


async def test_a_move_and_the_bytes_that_it_takes(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, **QUIET) as cluster:
        await cluster.create("t", (1, 2), **{"leader.replication.throttled.replicas": "*"})
        assert await cluster.produce(1, "t", 0, b"one", b"two") == ErrorCode.NONE
        partition, quota = cluster.services(1).replicas.partition("t", 0), cluster.services(1).replicas.quotas.leader
        size = partition.bytes_in
        await until(lambda: value(cluster, 2, TRAFFIC + "replicationbytesin_total") == size)
        quota.limit = 1
        quota.record(1000, trio.current_time())
        controller = cluster.services(cluster.controller_id()).cluster
        assert await controller.reassign({TopicPartition("t", 0): (1, 3)}) == {("t", 0): None}
        await until(lambda: values(cluster, REPLICAS + "reassigningpartitions") == [1, 0, 0])
        assert values(cluster, TRAFFIC + "reassignmentbytesin_total") == [0, 0, 0]
        quota.limit = NO_LIMIT
        await until(
            lambda: values(cluster, REPLICAS + "reassigningpartitions") == [0, 0, 0] and partition.isr == (1, 3)
        )
        assert values(cluster, TRAFFIC + "reassignmentbytesin_total") == [0, 0, size]
        assert values(cluster, TRAFFIC + "reassignmentbytesout_total") == [size, 0, 0]
        assert values(cluster, TRAFFIC + "replicationbytesout_total") == [2 * size, 0, 0]
        assert await cluster.produce(1, "t", 0, b"three") == ErrorCode.NONE
        await until(lambda: value(cluster, 3, TRAFFIC + "replicationbytesin_total") > size)
        assert value(cluster, 3, TRAFFIC + "reassignmentbytesin_total") == size, "it has been added"


async def test_fetchers_and_their_lag(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, **QUIET) as cluster:
        await cluster.create("t", ALL)
        assert await cluster.produce(1, "t", 0, b"one") == ErrorCode.NONE
        labels = {"clientId": "ReplicaFetcherThread-0-1", "topic": "t", "partition": "0"}
        lag = "kafka_server_fetcherlagmetrics_consumerlag"
        await until(lambda: any(family.name == lag and family.samples for family in _metrics(cluster, 2)))
        await until_value(cluster, 2, lag, 0, **labels)
        await trio.sleep(20)
        assert value(cluster, 2, FETCHERS + "minfetchrate", clientId="Replica") > 1  # they wait half a second each
        assert value(cluster, 1, FETCHERS + "minfetchrate", clientId="Replica") == 0
        assert value(cluster, 2, FETCHERS + "maxlag") == value(cluster, 2, FETCHERS + "failedpartitionscount") == 0


def _metrics(cluster: MemoryCluster, broker_id: int) -> list[Metric]:
    return collected(cluster.servers[broker_id])


async def test_what_the_controller_knows_of_the_cluster(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, **QUIET) as cluster:
        assert values(cluster, CONTROLLER + "activecontrollercount") == [1, 0, 0]
        assert values(cluster, CONTROLLER + "activebrokercount") == [3, 0, 0]
        await cluster.create("t", [2, 1])
        await cluster.create("alone", [3])
        assert values(cluster, CONTROLLER + "globaltopiccount") == [2, 0, 0]
        assert values(cluster, CONTROLLER + "globalpartitioncount") == [2, 0, 0]
        looks = value(cluster, 1, ELECTIONS + "leaderelectionrateandtimems_count")
        await cluster.stop(2, 3)
        await until_value(cluster, 1, CONTROLLER + "activebrokercount", 1)
        await until_value(cluster, 1, CONTROLLER + "offlinepartitionscount", 1)
        assert value(cluster, 1, CONTROLLER + "preferredreplicaimbalancecount") == 2
        await until(lambda: value(cluster, 1, ELECTIONS + "leaderelectionrateandtimems_count") > looks)
        await cluster.ask(1, DeleteTopicsRequest(topic_names=["t", "alone"], timeout_ms=100), 4)
        assert value(cluster, 1, CONTROLLER + "topicstodeletecount") == 2
        assert value(cluster, 1, CONTROLLER + "offlinepartitionscount") == 0
        await cluster.start(2, 3)
        await until_value(cluster, 1, CONTROLLER + "topicstodeletecount", 0)
        assert value(cluster, 1, CONTROLLER + "globaltopiccount") == 0
        await cluster.stop(1)
        await until(lambda: sorted(values(cluster, CONTROLLER + "activecontrollercount")) == [0, 1])
        await until(lambda: sorted(values(cluster, CONTROLLER + "activebrokercount")) == [0, 2])


async def test_an_election_of_a_leader_that_was_not_in_sync(autojump_clock: trio.testing.MockClock) -> None:
    name = ELECTIONS + "uncleanleaderelections_total"
    async with running(*ALL, **QUIET) as cluster:
        await cluster.create("t", [2, 3], unclean_leader_election_enable="true")
        await cluster.stop(3)
        await cluster.stop(2)
        assert value(cluster, 1, name) == 0
        await cluster.start(3)
        await until_value(cluster, 1, name, 1)
        await until_value(cluster, 3, REPLICAS + "leadercount", 1)


async def test_the_controllers_queues(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, **QUIET) as cluster:
        events, sent = EVENTS + "eventqueuetimems_count", SENDERS + "requestrateandqueuetimems_count"
        before = value(cluster, 1, events), value(cluster, 1, sent, broker_id="3")
        await cluster.create("t", [3])
        await until_value(cluster, 1, SENDERS + "queuesize", 0, broker_id="3")
        assert value(cluster, 1, events) > before[0]
        assert value(cluster, 1, sent, broker_id="3") >= before[1] + 2  # LeaderAndIsr and UpdateMetadata
        session_of(cluster, 1).suspect()
        await trio.testing.wait_all_tasks_blocked()
        assert value(cluster, 1, EVENTS + "eventqueuesize") == 0
        assert value(cluster, 1, CONTROLLER + "activecontrollercount") == 0
        session_of(cluster, 1).reconnect()
        await until_value(cluster, 1, CONTROLLER + "activecontrollercount", 1)


async def test_the_session_at_the_store(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL, **QUIET) as cluster:

        def counts(broker_id: int = 2) -> list[float]:
            names = ("zookeepersyncconnects_total", "zookeeperdisconnects_total", "zookeeperexpires_total")
            return [value(cluster, broker_id, SESSION + name) for name in names]

        assert counts() == [1, 0, 0]
        assert value(cluster, 2, SESSION + "sessionstate", state="CONNECTED") == 1
        session = session_of(cluster, 2)
        session.suspect()
        assert counts() == [1, 1, 0]
        assert value(cluster, 2, SESSION + "sessionstate", state="CONNECTING") == 1
        assert value(cluster, 2, SESSION + "sessionstate") == 1
        session.reconnect()
        assert counts() == [2, 1, 0]
        requests = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_count"
        before = value(cluster, 2, requests)
        await session.expire()
        assert counts() == [2, 1, 1]
        await until_value(cluster, 2, SESSION + "sessionstate", 1, state="CONNECTED")
        assert counts() == [3, 1, 1]
        await until(lambda: value(cluster, 2, requests) > before)
        assert counts(3) == [1, 0, 0]
