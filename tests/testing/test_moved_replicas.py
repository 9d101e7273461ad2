"""A stock admin client moves every replica of ``ottla.Cluster(4)`` to other brokers while stock clients go on (KIP-455)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError
from kafka.structs import TopicPartition as Partition

import ottla
from ottla.compat_tests.clients import confluent
from ottla.compat_tests.session import ClientSession, eventually
from ottla.testing.cluster import Cluster

from .helpers.cluster_calls import metadata
from .test_failover import Loads

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0
INTERNAL = ("__consumer_offsets", "__transaction_state")


@contextlib.contextmanager
def running() -> Iterator[tuple[Cluster, Loads, KafkaAdminClient]]:
    """Four brokers, producers and consumers that have got going, and an administrator."""
    with ottla.Cluster(4) as cluster, contextlib.ExitStack() as stack:
        driver = confluent.Client(cluster.bootstrap_servers)
        stack.callback(driver.close)
        session = ClientSession("confluent-kafka", driver)
        stack.callback(session.close)
        loads = Loads(cluster, session)
        for load in loads.all:
            stack.callback(load.give_up)
            load.start()
        loads.wait_rounds()
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        stack.callback(admin.close)
        yield cluster, loads, admin


def replicas(cluster: Cluster) -> dict[Partition, list[int]]:
    """As clients are told by a broker that runs."""
    broker = next(number for number, each in cluster.brokers.items() if each.is_running)
    return {
        Partition(topic.name, partition.partition_index): list(partition.replica_nodes)
        for topic in metadata(cluster, broker).topics
        for partition in topic.partitions
    }


def elsewhere(before: Mapping[Partition, list[int]]) -> dict[Partition, list[int]]:
    """For each partition the broker that has no replica of it, and two that have, but not the first one."""
    return {
        key: [next(broker for broker in (1, 2, 3, 4) if broker not in assigned), *reversed(assigned[1:])]
        for key, assigned in before.items()
    }


def begin(admin: KafkaAdminClient, wanted: Mapping[Partition, list[int]]) -> None:
    assert set(asked(lambda: admin.alter_partition_reassignments(wanted)).values()) == {None}


def asked(request: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
    """The answer; kafka-python 3.0.12 asks a broker at random first, and gives up when that one is dead."""

    def answers() -> list[dict[Any, Any]]:
        try:
            return [request()]
        except KafkaConnectionError:
            return []

    return eventually(answers, PATIENCE_SECONDS)[0]


def wait_moved(cluster: Cluster, admin: KafkaAdminClient, wanted: Mapping[Partition, list[int]]) -> None:
    """Return once replicas are where they were wanted, and nowhere else on a disk of a broker that runs."""
    eventually(lambda: asked(admin.list_partition_reassignments) == {}, PATIENCE_SECONDS)
    eventually(lambda: replicas(cluster) == wanted, PATIENCE_SECONDS)
    for broker_id, broker in cluster.brokers.items():
        removed = [key for key, where in wanted.items() if broker_id not in where and broker.is_running]
        folders = [broker.data_dir / f"{key.topic}-{key.partition}" for key in removed]
        eventually(lambda folders=folders: not any(folder.exists() for folder in folders), PATIENCE_SECONDS)


def test_replicas_move_while_clients_go_on() -> None:
    with running() as (cluster, loads, admin):
        before = replicas(cluster)
        assert {key.topic for key in before} == {*Loads.TOPICS, *INTERNAL}
        wanted = elsewhere(before)
        begin(admin, wanted)
        wait_moved(cluster, admin, wanted)
        loads.wait_rounds()
        begin(admin, before)
        wait_moved(cluster, admin, before)
        loads.wait_rounds()
        loads.check(may_read_again=True)


def test_a_dead_brokers_replicas_move_although_the_controller_dies() -> None:
    with running() as (cluster, loads, admin):
        controller = cluster.controller()
        dead = next(broker for broker in cluster.brokers if broker != controller)
        cluster.kill(dead)
        loads.wait_in_sync()
        before = replicas(cluster)
        alive = [broker for broker in cluster.brokers if broker != dead]
        wanted = dict.fromkeys(before, alive)
        begin(admin, wanted)
        assert controller is not None
        cluster.kill(controller)
        cluster.restart(controller)
        wait_moved(cluster, admin, wanted)
        cluster.restart(dead)
        wait_moved(cluster, admin, wanted)
        loads.wait_rounds()
        loads.check(may_read_again=True)
