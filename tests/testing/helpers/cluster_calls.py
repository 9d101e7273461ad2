"""Requests of tests to the brokers of ``ottla.Cluster``, and waits, which use the cluster's clock."""

from __future__ import annotations

import contextlib

from ottla.compat_tests.wire_client import Connection
from ottla.testing.cluster import Cluster
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.record_codec import Record
from ottla.wire.records import build_batch

LONGER_THAN_A_SESSION = 1.5


def metadata(cluster: Cluster, broker: int, timeout: float = 20.0) -> MetadataResponse:
    """The metadata that this broker returns."""
    with contextlib.closing(Connection(cluster.brokers[broker].bootstrap_servers, timeout)) as connection:
        response: MetadataResponse = connection.call(MetadataRequest(topics=None), 9)
        return response


def live(cluster: Cluster, broker: int) -> set[int]:
    """The brokers in the metadata of this one."""
    return {each.node_id for each in metadata(cluster, broker).brokers}


def other_than(cluster: Cluster, *brokers: int | None) -> int:
    return next(broker for broker in cluster.brokers if broker not in brokers)


def make_topic_at(cluster: Cluster, broker: int) -> str:
    """Create a topic whose only replica is at this broker."""
    for number in range(20):
        name = f"at-{broker}-{number}"
        cluster.create_topic(name, replication_factor=1)
        if cluster.leader_of(name) == broker:
            return name
    raise AssertionError("no replica was placed there")


def produce(
    cluster: Cluster, topic: str, value: bytes, *, broker: int | None = None, acks: int = -1, timeout_ms: int = 10_000
) -> int:
    """Write a record at the leader, or at ``broker``, and return the error code."""
    asked = broker or cluster.leader_of(topic)
    assert asked is not None
    record = Record(value=value, timestamp=cluster.clock.now_ms())
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=build_batch([record]))])
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])
    with contextlib.closing(Connection(cluster.brokers[asked].bootstrap_servers)) as connection:
        (answered,) = connection.call(request, 9).responses[0].partition_responses
    return int(answered.error_code)


def values(cluster: Cluster, topic: str, count: int = 0) -> list[bytes | None]:
    return [record.value for record in cluster.records(topic, count)]


def until_other_controller(cluster: Cluster, than: int | None) -> int:
    """The next controller, after the session of the previous one has expired."""
    cluster.clock.advance(seconds=LONGER_THAN_A_SESSION)
    for _ in range(100):
        now = cluster.controller()
        if now not in (None, than):
            assert now is not None
            return now
        cluster.clock.advance(seconds=0.01)
    raise AssertionError("there is no other controller")


def until_ended(cluster: Cluster, broker: int) -> None:
    for _ in range(1000):
        if not cluster.brokers[broker].is_running:
            return
        cluster.clock.advance(seconds=0.01)
    raise AssertionError("it goes on")
