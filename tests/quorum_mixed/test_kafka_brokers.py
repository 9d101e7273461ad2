"""Apache Kafka's brokers on controllers of Ottla, while brokers and controllers are stopped and killed.

Their logs have no error, and no warning but those that they have on controllers of Apache Kafka.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import connect
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

from .helpers.either_quorum import KAFKA, OTTLA, PATIENCE_S, EitherNode, EitherQuorum
from .helpers.metadata_walk import MetadataWalk

pytestmark = pytest.mark.slow

BROKERS = dict.fromkeys((11, 12, 13), "broker")
PROPERTIES = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
ON_KAFKA_AS_WELL = (
    "to exist, but it was missing. Creating...",  # of a topic whose first partitions came in a batch before
    "Auto topic creation failed for __",  # two clients want it at the same time
    "Received UNKNOWN_TOPIC_ID from the leader",  # a follower knows a new topic before its leader does
    "Received UNKNOWN_TOPIC_OR_PARTITION from the leader",  # likewise: the leader has not made its replica yet
    "marked as failed",  # a follower knows an earlier leader epoch than the leader, until it hears of the next one
)
"""Of errors and warnings."""
WHILE_NODES_ARE_AWAY = (
    "NetworkClient",
    "Connection to node",
    "disconnected",
    "UnknownHost",
    "Broker may not be available",
)


def leaders(quorum: EitherQuorum, topic: str, at: int) -> set[int]:
    """The leaders of its partitions, as a broker knows them."""
    metadata = MetadataWalk(quorum).admin.list_topics(topic, PATIENCE_S)
    return {each.leader for each in metadata.topics[topic].partitions.values()}


def in_sync(walk: MetadataWalk, topic: str) -> set[tuple[int, ...]]:
    metadata = walk.admin.list_topics(topic, PATIENCE_S)
    return {tuple(sorted(each.isrs)) for each in metadata.topics[topic].partitions.values()}


def write(quorum: EitherQuorum, topic: str, value: bytes) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": quorum.bootstrap, "acks": "all", "log_level": 0})
    for partition in range(3):
        producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * 3


def move(walk: MetadataWalk, topic: str, replicas: list[int]) -> None:
    """Have all partitions on these brokers."""
    partitions = [ReassignablePartition(partition_index=number, replicas=replicas) for number in range(3)]
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000, topics=[ReassignableTopic(name=topic, partitions=partitions)]
    )
    with connect(walk.bootstrap) as connection:
        (found,) = connection.call(request, 0).responses
    assert [each.error_code for each in found.partitions] == [0, 0, 0]
    eventually(lambda: in_sync(walk, topic) == {tuple(sorted(replicas))}, PATIENCE_S)


@pytest.mark.parametrize(
    ("controllers", "voters"),
    [((1,), "standalone"), ((1, 2, 3), "static")],
    ids=["one controller", "three static voters"],
)
def test_nodes_come_and_go(controllers: tuple[int, ...], voters: str, tmp_path: Path) -> None:
    run(OTTLA, controllers, voters, tmp_path)


def run(program: str, controllers: tuple[int, ...], voters: str, folder: Path) -> None:
    """``program`` runs the controllers."""
    roles = {**dict.fromkeys(controllers, "controller"), **BROKERS}
    programs = {**dict.fromkeys(controllers, program), **dict.fromkeys(BROKERS, KAFKA)}
    quorum = EitherQuorum(folder / "nodes", roles, programs, voters=voters, properties=PROPERTIES)
    with contextlib.closing(quorum):
        quorum.start()
        walk = MetadataWalk(quorum)
        walk.change("first")
        move(walk, "first-kept", [13, 11])
        controllers_come_and_go(quorum, walk)
        brokers_come_and_go(quorum, walk)
        before = walk.seen()
        for node in quorum.controllers:
            node.ask_to_stop()
        for node in quorum.controllers:
            node.wait_stopped()
        write(quorum, "first-kept", b"without any controller")
        quorum.start()
        assert walk.seen() == before
        walk.read_all()
        quorum.stop()
        for broker in quorum.brokers:
            check_log(broker)
        for node in quorum.controllers:
            assert "Traceback" not in node.log()


def controllers_come_and_go(quorum: EitherQuorum, walk: MetadataWalk) -> None:
    """By SIGTERM and by SIGKILL; where there are others, changes are made without it."""
    for turn, end in (("stopped", EitherNode.stop), ("killed", EitherNode.kill)):
        active = quorum.active()
        end(active)
        write(quorum, "first-kept", turn.encode())
        if len(quorum.controllers) == 1:
            active.start()
            quorum.wait_joined()
        walk.change(turn)
        if not active.is_running:
            active.start()


def brokers_come_and_go(quorum: EitherQuorum, walk: MetadataWalk) -> None:
    for end in (EitherNode.stop, EitherNode.kill):
        broker = quorum.nodes[13]
        end(broker)
        eventually(lambda: leaders(quorum, "first-kept", 11) == {11}, PATIENCE_S)
        write(quorum, "first-kept", b"without a broker")
        broker.start()
        quorum.wait_joined()
        eventually(lambda: in_sync(walk, "first-kept") == {(11, 13)}, PATIENCE_S)


def check_log(broker: EitherNode) -> None:
    told = [line for line in broker.log().splitlines() if re.search(r"\] (ERROR|WARN|FATAL) ", line)]
    wrong = [line for line in told if not any(each in line for each in (*ON_KAFKA_AS_WELL, *WHILE_NODES_ARE_AWAY))]
    assert wrong == []
