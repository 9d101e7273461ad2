"""What a job commits to its group: never ahead of the slowest query, over one connection, and again after a failure."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, TopicPartition

from ottla.spark.group_offsets import GroupOffsets
from ottla.testing.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("orders", 2)
        yield running


@pytest.fixture
def group_id(request: pytest.FixtureRequest, broker: Broker) -> Iterator[str]:
    yield str(request.node.name)
    broker.faults.clear()


def committed(broker: Broker, group_id: str) -> dict[int, int]:
    """By partition."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        offsets = admin.list_group_offsets(group_id)[group_id]
    finally:
        admin.close()
    return {where.partition: at.offset for where, at in offsets.items() if isinstance(where, TopicPartition)}


def test_the_slowest_query_counts(broker: Broker, group_id: str) -> None:
    with GroupOffsets(broker.bootstrap_servers, group_id) as group:
        group.note("fast", {("orders", 0): 10, ("orders", 1): 5})
        group.note("slow", {("orders", 0): 4})
        assert committed(broker, group_id) == {0: 4, 1: 5}
        group.note("slow", {("orders", 0): 12})
        assert committed(broker, group_id) == {0: 10, 1: 5}


def test_one_connection_for_all_commits(broker: Broker, group_id: str) -> None:
    with broker.requests.recording(), GroupOffsets(broker.bootstrap_servers, group_id) as group:
        for offset in range(5):
            group.note("copy", {("orders", 0): offset})
    commits = [sent for sent in broker.requests.where(api="OffsetCommit") if sent.body.group_id == group_id]
    assert len(commits) == 5
    assert len({sent.peer for sent in commits}) == 1


def test_a_commit_that_failed_is_made_good_at_the_end(broker: Broker, group_id: str) -> None:
    with GroupOffsets(broker.bootstrap_servers, group_id) as group:
        group.note("copy", {("orders", 0): 1})
        broker.faults.add(api="OffsetCommit", error="NOT_COORDINATOR", count=4)
        group.note("copy", {("orders", 0): 2})
    assert committed(broker, group_id) == {0: 2}


def test_a_group_that_refuses_is_said_once(broker: Broker, group_id: str, caplog: pytest.LogCaptureFixture) -> None:
    fault = broker.faults.add(api="OffsetCommit", error="UNKNOWN_MEMBER_ID", count=None)
    with caplog.at_level(logging.WARNING), GroupOffsets(broker.bootstrap_servers, group_id) as group:
        group.note("copy", {("orders", 0): 1})
        group.note("copy", {("orders", 0): 2})
    fault.remove()
    assert [message for message in caplog.messages if group_id in message] == [
        f"no more offsets are committed to the group {group_id}: UnknownMemberIdError"
    ]
