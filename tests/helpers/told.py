"""What a broker is told of its cluster in a test, in the terms of the metadata: who is alive, who leads which partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.base.errors import ErrorCode, KafkaError
from ottla.metadata.delta import ClusterDelta, TopicDelta
from ottla.metadata.types import AdvertisedListener, BrokerRegistration, PartitionRegistration
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.replica_manager import ReplicaManager


def tell(
    metadata: MetadataCache,
    *topics: TopicDelta,
    brokers: Iterable[BrokerRegistration] = (),
    controller_id: int = -1,
) -> None:
    """Tell a broker all brokers that are alive, the controller, and topics that have changed."""
    metadata.publish(ClusterDelta(controller_id, list(brokers), topics))


def alive(*broker_ids: int) -> list[BrokerRegistration]:
    """Brokers that nobody reaches."""
    return [BrokerRegistration(broker_id, ()) for broker_id in broker_ids]


def reached_at(host: str, broker_id: int) -> BrokerRegistration:
    """A broker that is alive, with one listener."""
    return BrokerRegistration(broker_id, (AdvertisedListener("PLAINTEXT", host, 9092),))


def led(topic: str, topic_id: bytes, leaders: Mapping[int, int]) -> TopicDelta:
    """A topic of which nothing is known but who leads its partitions."""
    return TopicDelta(topic, topic_id, {number: registration(leader) for number, leader in leaders.items()})


def registration(
    leader: int, leader_epoch: int = 0, isr: Iterable[int] = (), replicas: Iterable[int] = ()
) -> PartitionRegistration:
    return PartitionRegistration(leader, leader_epoch, leader_epoch, tuple(isr), tuple(replicas))


def apply(
    replicas: ReplicaManager, topic: str, topic_id: bytes, number: int, decided: PartitionRegistration
) -> ErrorCode:
    """Have a broker lead or follow a partition; the error by which it refuses, also what it knows already."""
    try:
        replicas.apply(topic, topic_id, number, decided, replicas.topic_settings(topic), may_be_known=False)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
