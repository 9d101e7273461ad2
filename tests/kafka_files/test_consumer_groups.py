"""Consumer groups of KIP-848 in the files: those of Apache Kafka 4.3 go on at Ottla, and Kafka's tool reads those of Ottla."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.compat_tests.brokers import BrokerProcess, KafkaProcess, OttlaProcess
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, WireGroup
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, connect
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

pytestmark = pytest.mark.slow

PROPERTIES = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}
FIRST_HALF, SECOND_HALF = {"t": [0, 1]}, {"t": [2, 3]}


def group_of(connection: Connection) -> WireGroup:
    find_coordinator(connection, GROUP, "g")
    return WireGroup(connection, "g", "t")


def commit(connection: Connection, member: str, epoch: int, partition: int) -> int:
    topic = OffsetCommitRequestTopic(
        name="t", partitions=[OffsetCommitRequestPartition(partition_index=partition, committed_offset=7)]
    )
    request = OffsetCommitRequest(group_id="g", member_id=member, generation_id_or_member_epoch=epoch, topics=[topic])
    code: int = connection.call(request, 9).topics[0].partitions[0].error_code
    return code


def fill(process: BrokerProcess) -> dict[str, Any]:
    """A static member that has given up a half, and a dynamic one that has not heard of it yet; how the group is described."""
    process.start()
    Operator(process.bootstrap).create_topic("t", 4, {})
    with connect(process.bootstrap) as connection:
        group = group_of(connection)
        look = WireGroup(connection, "looks", "t").member("look")
        eventually(lambda: look.join("t") != Beat(2, {}))  # the coordinator hears of a topic later than its leader
        assert look.beat(-1) == Beat(-1)
        a, b = group.member("A", instance_id="i1"), group.member("B")
        assert a.join("t") == Beat(2, {"t": [0, 1, 2, 3]})
        assert b.join("t") == Beat(3, {})
        assert a.beat(2) == Beat(2, FIRST_HALF)
        assert a.beat(2, FIRST_HALF) == Beat(3)
        assert commit(connection, "A", 3, 0) == 0
        return described(group)


def described(group: WireGroup) -> dict[str, Any]:
    """The members with their epochs and partitions, and the group's epochs."""
    found = group.described()
    members = {
        each.member_id: (
            each.member_epoch,
            each.instance_id,
            each.client_host,
            list(each.subscribed_topic_names),
            group.names.to_names(each.assignment.topic_partitions),
            group.names.to_names(each.target_assignment.topic_partitions),
        )
        for each in found.members
    }
    return {"members": members, "state": found.group_state, "epochs": (found.group_epoch, found.assignment_epoch)}


@pytest.fixture
def of_kafka(tmp_path: Path) -> Iterator[KafkaProcess]:
    folder = tmp_path / "kafka"
    folder.mkdir()
    process = KafkaProcess(folder, properties=PROPERTIES)
    try:
        yield process
    finally:
        process.close()


def test_a_group_of_kafka_goes_on(of_kafka: KafkaProcess, tmp_path: Path) -> None:
    before = fill(of_kafka)
    of_kafka.stop()
    shutil.copytree(of_kafka.folder / "data", tmp_path / "data")
    ottla = OttlaProcess(tmp_path, properties=PROPERTIES, port=of_kafka.port)
    try:
        ottla.start()
        with connect(ottla.bootstrap) as connection:
            group = group_of(connection)
            a, b = group.member("A", instance_id="i1"), group.member("B")
            assert eventually(lambda: (found := described(group))["members"] and found) == before
            assert commit(connection, "A", 3, 0) == 0
            # Kafka's hash of the topics is another one, so the first heartbeat makes one more target, which moves nothing.
            assert b.settle(3, {}) == Beat(4, SECOND_HALF)
            assert a.settle(3, FIRST_HALF) == Beat(4, FIRST_HALF)
            assert group.state() == ("Stable", 4, 4)
    finally:
        ottla.close()


def test_kafkas_tool_reads_the_records(tmp_path: Path, kafka_dump_log: Any) -> None:
    ottla = OttlaProcess(tmp_path, properties=PROPERTIES)
    try:
        fill(ottla)
        with connect(ottla.bootstrap) as connection:
            group = group_of(connection)
            c = group.member("C")
            c.join(subscribed_topic_names=None, subscribed_topic_regex="[t]")
            eventually(
                lambda: "t" in (c.beat(0, {}, subscribed_topic_regex="[t]", rebalance_timeout_ms=1000).assigned or ())
            )
            assert c.beat(-1) == Beat(-1)
        ottla.stop()
    finally:
        ottla.close()
    (log,) = (tmp_path / "data").glob("__consumer_offsets-0/*.log")
    options = ("--offsets-decoder",)
    theirs = kafka_dump_log([log], *options)
    ours = subprocess.run(
        [sys.executable, "-m", "ottla", "dump-log", "--files", str(log), *options],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert theirs.stdout.splitlines() == ours.stdout.splitlines()
    for kind in (3, 5, 6, 7, 8, 16):
        assert f'{{"type":"{kind}"' in theirs.stdout, kind
