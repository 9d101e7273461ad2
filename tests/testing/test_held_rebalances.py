"""Rebalances that a test holds up, of consumer groups and of classic ones; and sessions of consumer groups that it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from ottla.base.errors import ErrorCode
from ottla.compat_tests.wire_client import Connection
from ottla.testing.broker import Broker
from ottla.testing.cluster import Cluster
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(properties=QUICK) as running:
        running.create_topic("t", 2)
        yield running


class Members:
    """Members of one consumer group, by hand."""

    def __init__(self, broker: Broker, group: str) -> None:
        self.client = Connection(broker.bootstrap_servers)
        self._group = group
        while self.client.call(FindCoordinatorRequest(key=group), 3).error_code:
            pass

    def __call__(self, member_id: str, epoch: int, owned: list[TopicPartitions] | None = None) -> Any:
        joins = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=["t"] if joins else None,
            topic_partitions=[] if joins else owned,
        )
        while True:
            response = self.client.call(request, 1)
            if response.error_code not in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
                return response


def test_members_keep_the_target_of_before_until_it_is_released(broker: Broker) -> None:
    beat = Members(broker, "held")
    assert beat("A", 0).member_epoch == 2
    with broker.hold_rebalance("held") as hold:
        joined = beat("B", 0)
        assert (joined.member_epoch, joined.assignment.topic_partitions) == (2, [])
        hold.wait()
        assert [beat(member, 2).member_epoch for member in "AB"] == [2, 2]
        assert beat("A", 2).assignment is None
    assert beat("B", 2).member_epoch == 3
    given = beat("A", 2).assignment
    assert [len(each.partitions) for each in given.topic_partitions] == [1], "it has to give up the other one"
    hold.release()


def test_a_hold_that_nothing_runs_into_says_so(broker: Broker) -> None:
    with (
        broker.hold_rebalance("nobody") as hold,
        pytest.raises(TimeoutError, match="no rebalance waited for the release within 0 s"),
    ):
        hold.wait(0)
    other = Members(broker, "not held")
    with broker.hold_rebalance("another") as hold:
        assert other("A", 0).member_epoch == 2
        assert not hold.reached.is_set()


def test_a_hold_does_not_outlive_its_broker() -> None:
    with Broker(properties=QUICK) as short:
        short.create_topic("t")
        hold = short.hold_rebalance("g")
        short.restart()
        assert Members(short, "g")("A", 0).member_epoch == 2
        hold.release()
        hold = short.hold_rebalance("g")
    hold.release()


def test_a_member_whose_session_was_ended_is_unknown(broker: Broker) -> None:
    beat = Members(broker, "ended")
    assert beat("A", 0).member_epoch == beat("B", 0).member_epoch - 1 == 2
    assert broker.expire_session("ended", "A") == ["A"]
    assert beat("A", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert broker.expire_session("ended") == ["B"]
    broker.delete_group("ended")


def consume(address: str, group: str, protocol: str, **options: Any) -> Consumer:
    times = {} if protocol == "consumer" else {"heartbeat.interval.ms": 100}
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            **times,
            **options,
        }
    )


def until(condition: Callable[[], object], *consumers: Consumer) -> None:
    while not condition():
        for each in consumers:
            each.poll(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_client_waits_for_its_first_partitions(broker: Broker, protocol: str) -> None:
    consumer = consume(broker.bootstrap_servers, f"first {protocol}", protocol)
    with broker.hold_rebalance(f"first {protocol}") as hold:
        consumer.subscribe(["t"])
        until(hold.reached.is_set, consumer)
        for _ in range(10):
            consumer.poll(0.05)
        assert not consumer.assignment()
    until(lambda: len(consumer.assignment()) == 2, consumer)
    consumer.close()


@pytest.mark.slow
def test_a_client_of_the_consumer_protocol_loses_its_partitions_and_comes_back(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    broker.create_topic("lost")
    producer.produce("lost", "first")
    producer.flush()
    lost: list[Any] = []
    consumer = consume(broker.bootstrap_servers, "lost", "consumer", **{"client.id": "me"})
    consumer.subscribe(["lost"], on_lost=lambda consumer, partitions: lost.extend(partitions))
    (first,) = consumer.consume(1, timeout=30)
    consumer.commit(first, asynchronous=False)
    assert len(broker.expire_session("lost", "me")) == 1
    until(lambda: lost, consumer)
    producer.produce("lost", "second")
    producer.flush()
    (second,) = consumer.consume(1, timeout=30)
    assert (first.value(), second.value()) == (b"first", b"second")
    consumer.close()


@pytest.mark.slow
def test_a_cluster_holds_rebalances_wherever_the_coordinator_is() -> None:
    with Cluster(brokers=2, properties=QUICK) as cluster:
        cluster.create_topic("t", 2)
        client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        assert "t" in client.list_topics(timeout=30).topics
        with cluster.hold_rebalance("g") as hold:
            consumer = consume(cluster.bootstrap_servers, "g", "consumer")
            consumer.subscribe(["t"])
            done = threading.Event()
            until(lambda: hold.reached.is_set() or done.is_set(), consumer)
            assert not consumer.assignment()
        until(lambda: len(consumer.assignment()) == 2, consumer)
        assert len(cluster.expire_session("g")) == 1
        consumer.close()
