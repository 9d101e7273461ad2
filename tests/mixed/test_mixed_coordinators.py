"""Transactions, groups and producer ids in a mixed cluster: coordinators of either kind, which hand over to each other."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

from .helpers.mixed import BOTH, PATIENCE_S, Mixed
from .helpers.on_zookeeper import ZooKeeperMixed

pytestmark = pytest.mark.slow

GROUP, TRANSACTION = 0, 1
INTERNAL = {GROUP: "__consumer_offsets", TRANSACTION: "__transaction_state"}


def coordinator(mixed: Mixed, key_type: int, key: str) -> int:
    """Who coordinates a group or a transactional id, as every broker that runs tells."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])

    def found() -> int | None:
        told = set()
        for each in mixed.running():
            with mixed.connect(each) as connection:
                (answer,) = connection.call(request, 4).coordinators
            told.add(answer.node_id if answer.error_code == 0 else -1)
        return told.pop() if len(told) == 1 and -1 not in told else None

    broker_id = eventually(found, PATIENCE_S)
    assert broker_id is not None
    return broker_id


def coordinated_by(mixed: Mixed, key_type: int, broker_id: int, name: str) -> str:
    """A group or a transactional id that a broker coordinates."""
    mixed.wait_all_listed()
    coordinator(mixed, key_type, "any")  # the topic is there
    topic = INTERNAL[key_type]

    def leads() -> bool:
        mixed.elect_preferred(topic, *mixed.internal_partitions)
        return all(broker_id in mixed.leaders(topic, each).values() for each in mixed.ids)

    eventually(leads, PATIENCE_S)
    keys = (f"{name}-{number}" for number in itertools.count())
    return next(key for key in keys if coordinator(mixed, key_type, key) == broker_id)


class Transactions:
    """A producer that writes one record to each partition in a transaction; ``committed`` are those to be read, by partition."""

    def __init__(self, mixed: Mixed, topic: str, transactional_id: str) -> None:
        self._mixed = mixed
        self._topic = topic
        self.committed: list[bytes] = []
        self._producer = Producer(
            {
                "bootstrap.servers": mixed.bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 60_000,
                "retry.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._producer.init_transactions(PATIENCE_S)

    def begin(self, value: bytes) -> None:
        self._producer.begin_transaction()
        for partition in range(len(self._mixed.ids)):
            self._producer.produce(self._topic, value, partition=partition)
        assert self._producer.flush(PATIENCE_S) == 0

    def add_offsets(self, consumer: Consumer, offset: int) -> None:
        """Commit that a group has read partition 0 to there."""
        offsets = [TopicPartition(self._topic, 0, offset)]
        self._producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)

    def commit(self, value: bytes) -> None:
        def is_done() -> bool:
            try:
                self._producer.commit_transaction(PATIENCE_S)
            except KafkaException as error:
                assert error.args[0].retriable(), error
                return False
            return True

        eventually(is_done, PATIENCE_S)
        self.committed.append(value)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)

    def check(self) -> None:
        """Every partition has what was committed, and nothing else."""
        for partition in range(len(self._mixed.ids)):
            read = self._mixed.read(
                self._topic, len(self.committed), partition, **{"isolation.level": "read_committed"}
            )
            assert read == self.committed


@pytest.mark.parametrize("coordinating", BOTH)
def test_transactions_over_partitions_of_both_kinds(
    mixed: Mixed, controller: int, coordinating: str, topic: str
) -> None:
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    transactional_id = coordinated_by(mixed, TRANSACTION, mixed.one(coordinating), topic)
    transactions = Transactions(mixed, topic, transactional_id)
    for number, (grouping, ends) in enumerate(itertools.product(BOTH, ("commit", "abort", "commit"))):
        value = b"%d-%s" % (number, ends.encode())
        group = coordinated_by(mixed, GROUP, mixed.one(grouping), f"{topic}-{number}")
        consumer = Consumer({"bootstrap.servers": mixed.bootstrap, "group.id": group, "log_level": 0})
        with contextlib.closing(consumer):
            transactions.begin(value)
            transactions.add_offsets(consumer, number + 1)
            if ends == "commit":
                transactions.commit(value)
            else:
                transactions.abort()
            (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE_S)
        assert committed.offset == (number + 1 if ends == "commit" else -1001)
    transactions.check()
    for partition in range(len(mixed.ids)):
        mixed.wait_same(topic, partition)


def test_a_transaction_goes_on_while_its_coordinator_moves(mixed: Mixed, topic: str) -> None:
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    moves = set()
    for broker_id in mixed.ids:
        transactional_id = coordinated_by(mixed, TRANSACTION, broker_id, f"{topic}-{broker_id}")
        name = f"{topic}-{broker_id}"
        mixed.create(name, *(mixed.replicas_from(each) for each in mixed.ids))
        transactions = Transactions(mixed, name, transactional_id)
        transactions.begin(b"before")
        transactions.commit(b"before")
        transactions.begin(b"across")
        mixed.cluster.broker(broker_id).stop()
        moves.add(
            (mixed.cluster.kind(broker_id), mixed.cluster.kind(coordinator(mixed, TRANSACTION, transactional_id)))
        )
        transactions.commit(b"across")
        transactions.begin(b"aborted")
        mixed.cluster.start_broker(broker_id)
        coordinated_by(mixed, TRANSACTION, broker_id, "back")
        transactions.abort()
        transactions.begin(b"after")
        transactions.commit(b"after")
        transactions.check()
    assert any(one != other for one, other in moves), moves


def test_a_group_goes_on_while_its_coordinator_moves(mixed: Mixed, topic: str) -> None:
    mixed.create(topic, *(mixed.replicas_from(each) for each in mixed.ids))
    moves = set()
    for broker_id in mixed.ids:
        group = coordinated_by(mixed, GROUP, broker_id, f"{topic}-{broker_id}")
        consumer = Consumer(
            {
                "bootstrap.servers": mixed.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        with contextlib.closing(consumer):
            read_and_commit(mixed, consumer, topic, b"%d before" % broker_id)
            before = generation(mixed, group)
            mixed.cluster.broker(broker_id).stop()
            moved_to = coordinator(mixed, GROUP, group)
            moves.add((mixed.cluster.kind(broker_id), mixed.cluster.kind(moved_to)))
            read_and_commit(mixed, consumer, topic, b"%d meanwhile" % broker_id)
            mixed.cluster.start_broker(broker_id)
            coordinated_by(mixed, GROUP, broker_id, "back")
            assert coordinator(mixed, GROUP, group) == broker_id
            read_and_commit(mixed, consumer, topic, b"%d after" % broker_id)
            assert generation(mixed, group) == before, "one member, under each coordinator"
    assert any(one != other for one, other in moves), moves


def read_and_commit(mixed: Mixed, consumer: Consumer, topic: str, value: bytes) -> None:
    """Write a record to each partition, have the group read all there is, and commit."""
    for partition in range(len(mixed.ids)):
        mixed.produce(topic, [value], partition)
    found: set[int] = set()

    def read() -> bool:
        for message in consumer.consume(100, timeout=0.2):
            if message.error() is None and message.value() == value:
                found.add(message.partition())
        return len(found) == len(mixed.ids)

    eventually(read, PATIENCE_S)

    def committed() -> bool:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException:
            return False
        return True

    eventually(committed, PATIENCE_S)
    wanted = [TopicPartition(topic, partition) for partition in range(len(mixed.ids))]
    positions = [each.offset for each in consumer.position(wanted)]
    assert [each.offset for each in consumer.committed(wanted, timeout=PATIENCE_S)] == positions


def generation(mixed: Mixed, group: str) -> list[str]:
    """The members of a group, as its coordinator tells.

    By a client of its own: librdkafka 2.16.1 puts a request for a broker that has just come back on the handle of the one that
    had gone, which is terminating, and it waits there until it times out.
    """
    admin = AdminClient({"bootstrap.servers": mixed.bootstrap, "log_level": 0})
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    return sorted(member.member_id for member in described.members)


def test_no_producer_id_is_given_twice(mixed: ZooKeeperMixed) -> None:
    given: list[int] = []
    for controlling in BOTH:
        mixed.led_by(controlling)
        for broker_id in mixed.ids:
            given += producer_ids(mixed, broker_id, 1_100)
    mixed.cluster.restart_broker(mixed.ids[0])
    mixed.cluster.restart_broker(mixed.ids[-1])
    for broker_id in mixed.ids:
        given += producer_ids(mixed, broker_id, 10)
    assert len(set(given)) == len(given)


def producer_ids(mixed: Mixed, broker_id: int, count: int) -> list[int]:
    """More than a block has."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    found: list[int] = []
    with mixed.connect(broker_id) as connection:

        def ask() -> bool:
            for _ in range(100):
                connection.send(request, 4)
            for _ in range(100):
                answer = connection.receive()
                if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    assert answer.error_code == 0
                    found.append(answer.producer_id)
            return len(found) >= count

        eventually(ask, PATIENCE_S)
    return found


def test_what_a_coordinator_of_kafka_could_not_continue_is_not_offered(mixed: Mixed) -> None:
    offered = {kind: versions(mixed, mixed.one(kind)) for kind in BOTH}
    ours, theirs = offered["ottla"], offered["kafka"]
    produce, txn_offset_commit, end_txn = 0, 28, 26
    init_producer_id, add_partitions, add_offsets = 22, 24, 25
    for key in (produce, txn_offset_commit, end_txn, init_producer_id, add_partitions, add_offsets):
        assert ours[key][1] == theirs[key][1], f"API {key}"
    for key in ours.keys() & theirs.keys():
        assert max(ours[key][0], theirs[key][0]) <= min(ours[key][1], theirs[key][1]), (
            f"no version of API {key} in common"
        )


def versions(mixed: Mixed, broker_id: int) -> dict[int, Any]:
    """Lowest and highest version by API."""
    with mixed.connect(broker_id) as connection:
        answer = connection.call(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 3)
    assert answer.finalized_features == []
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
