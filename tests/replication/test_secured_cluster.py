"""Three processes that must show each other who they are, through a failover: what was acknowledged is there, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.confluent import Client
from ottla.compat_tests.clusters import QUICK_TO_MISS
from ottla.compat_tests.secured_cluster import SecuredCluster
from ottla.compat_tests.session import consume, eventually
from ottla.compat_tests.wire_client import Connection, connect, describe
from ottla.compat_tests.zookeeper import ZooKeeperProcess

TOPIC = "orders"


@pytest.mark.slow
def test_brokers_authenticated_to_each_other_fail_over(tmp_path: Path, zookeeper_server: ZooKeeperProcess) -> None:
    cluster = SecuredCluster(tmp_path, zookeeper_server, "/secured", QUICK_TO_MISS | {"min.insync.replicas": "2"})
    try:
        cluster.start()
        client = Client(cluster.bootstrap)
        client.secure(cluster.way_in("admin"))
        client.admin().create_topic(TOPIC, 1, 3)
        eventually(lambda: len(in_sync(cluster)) == 3)
        producer = client.producer(model.ProducerSettings(idempotent=True))
        sent = send(producer, 0)
        leader = leader_of(cluster)
        cluster.broker(leader).kill()
        sent += send(producer, len(sent))
        assert leader_of(cluster, other_than=leader) != leader
        cluster.start_broker(leader)
        eventually(lambda: len(in_sync(cluster)) == 3)
        consumer = client.consumer(model.ConsumerSettings(group_id="readers"))
        consumer.subscribe([TOPIC])
        assert [message.value for message in consume(consumer, len(sent))] == sent
        consumer.close()
        producer.close()
        refuses_strangers(cluster)
    finally:
        cluster.close()


def send(producer: model.Producer, start: int) -> list[bytes]:
    """Fifty records, acknowledged by the replicas in sync."""
    values = [b"%d" % number for number in range(start, start + 50)]
    for value in values:
        producer.send(TOPIC, value, partition=0)
    assert len(producer.flush()) == len(values)
    return values


def described(cluster: SecuredCluster) -> Any:
    (running, *_) = (broker for broker in cluster.brokers if broker.is_running)
    with connect(running.address, security=cluster.security) as connection:
        return describe(connection, TOPIC).topics[0].partitions


def in_sync(cluster: SecuredCluster) -> list[int]:
    partitions = described(cluster)
    return list(partitions[0].isr_nodes) if partitions else []


def leader_of(cluster: SecuredCluster, other_than: int = -1) -> int:
    return eventually(
        lambda: next((each for each in [described(cluster)[0].leader_id] if each not in (-1, other_than)), 0)
    )


def refuses_strangers(cluster: SecuredCluster) -> None:
    """No wrong password, and no rights for a user who was given none."""
    with pytest.raises(OSError, match="SASL_AUTHENTICATION_FAILED"):
        Connection(cluster.brokers[0].address, security=cluster.way_in("alice", "wrong"))
    alice = Client(cluster.bootstrap)
    alice.secure(cluster.way_in("alice"))
    assert TOPIC not in alice.admin().list_topics()
