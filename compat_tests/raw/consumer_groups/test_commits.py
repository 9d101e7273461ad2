"""Commits and fetches of offsets by member epoch, of members of both protocols and of nobody; deletion of offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.conftest import MakeGroup
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, Joined, WireGroup
from ottla.compat_tests.raw.transactional import RawProducer
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("consumer groups: commits by member epoch"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no groups of KIP-848"),
    pytest.mark.restart,
]
ALL = [0, 1, 2, 3]
STALE, UNKNOWN, NONE = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE
OLD_GENERATION, NO_GROUP = ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND


@pytest.fixture
def topic(make_topic: TopicMaker) -> str:
    """A topic of four partitions."""
    return make_topic(4)


def commit(
    group: WireGroup,
    topic: str,
    member_id: str,
    epoch: int,
    *,
    version: int = 9,
    partitions: Mapping[int, int] | None = None,
) -> list[ErrorCode] | ErrorCode:
    """OffsetCommit of {partition: offset}: the errors of the partitions, or one where they are alike."""
    wanted = [
        OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
        for partition, offset in (partitions or dict.fromkeys(ALL, 1)).items()
    ]
    named = {"topic_id": group.names.id_of(topic)} if version >= 10 else {"name": topic}
    request = OffsetCommitRequest(
        group_id=group.group_id,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequestTopic(partitions=wanted, **named)],
    )
    (response,) = group.connection.call(request, version).topics
    codes = [ErrorCode(each.error_code) for each in response.partitions]
    return codes[0] if len(set(codes)) == 1 else codes


def fetch(group: WireGroup, topic: str, member_id: str | None, epoch: int, version: int = 9) -> list[int] | ErrorCode:
    """OffsetFetch of four partitions: their offsets, or the error of the group."""
    named = {"topic_id": group.names.id_of(topic)} if version >= 10 else {"name": topic}
    topics = [OffsetFetchRequestTopics(partition_indexes=ALL, **named)]
    wanted = OffsetFetchRequestGroup(group_id=group.group_id, member_id=member_id, member_epoch=epoch, topics=topics)
    (response,) = group.connection.call(OffsetFetchRequest(groups=[wanted]), version).groups
    if response.error_code != NONE:
        assert response.topics == []
        return ErrorCode(response.error_code)
    found = {each.partition_index: each.committed_offset for each in response.topics[0].partitions}
    return [found[partition] for partition in ALL]


def delete(group: WireGroup, topic: str) -> list[ErrorCode] | ErrorCode:
    """OffsetDelete of partition 0."""
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
    response = group.connection.call(OffsetDeleteRequest(group_id=group.group_id, topics=topics), 0)
    if response.error_code != NONE:
        return ErrorCode(response.error_code)
    return ErrorCode(response.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("version", [9, 10])
def test_a_member(make_group: MakeGroup, topic: str, version: int) -> None:
    group = make_group(topic)
    group.member("A").join(topic)
    assert commit(group, topic, "A", 2, version=version) == NONE
    assert commit(group, topic, "A", 3, version=version) == STALE
    assert commit(group, topic, "B", 2, version=version) == UNKNOWN
    assert commit(group, topic, "", 2, version=version) == UNKNOWN
    assert commit(group, topic, "A", -1, version=version, partitions={0: 5}) == STALE
    assert commit(group, topic, "", -1, version=version) == UNKNOWN
    assert fetch(group, topic, "A", 2, version) == [1, 1, 1, 1]
    assert (fetch(group, topic, "A", 1, version), fetch(group, topic, "A", 3, version)) == (STALE, STALE)
    assert fetch(group, topic, "A", -1, version) == STALE
    assert (fetch(group, topic, "B", 2, version), fetch(group, topic, "", -1, version)) == (UNKNOWN, UNKNOWN)
    assert fetch(group, topic, None, -1, version) == [1, 1, 1, 1]


def test_versions_that_know_no_epochs(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a = group.member("A")
    a.join(topic)
    assert commit(group, topic, "A", 2, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(group, topic, "A", 3, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(group, topic, "B", 2, version=8) == UNKNOWN
    assert commit(group, topic, "", -1, version=8) == UNKNOWN
    a.beat(-1)
    assert commit(group, topic, "", -1, version=8) == NONE
    assert fetch(group, topic, None, -1, 8) == [1, 1, 1, 1]


def test_a_group_that_is_not_there(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    assert commit(group, topic, "A", 1) == NO_GROUP
    assert commit(group, topic, "A", 1, version=8) == OLD_GENERATION
    assert fetch(group, topic, "A", 1) == [-1, -1, -1, -1]
    assert delete(group, topic) == NO_GROUP
    assert group.listed() is None
    assert commit(group, topic, "", -1) == NONE
    assert group.listed() == ("", "Empty", "classic")
    assert fetch(group, topic, "A", 1) == [1, 1, 1, 1]


def test_a_group_without_members(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a = group.member("A")
    a.join(topic)
    a.beat(-1)
    assert commit(group, topic, "A", 2) == UNKNOWN
    assert commit(group, topic, "", 0) == UNKNOWN
    assert commit(group, topic, "", -1) == NONE
    assert commit(group, topic, "A", -1) == NONE
    assert (fetch(group, topic, "A", 2), fetch(group, topic, None, -1)) == (UNKNOWN, [1, 1, 1, 1])
    assert group.listed() == ("consumer", "Empty", "consumer")


def test_an_old_epoch_where_the_partition_is_older(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a, b = (group.member(name, server_assignor="range") for name in "AB")
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert b.join(topic) == Beat(3, {})
    assert a.beat(2) == Beat(2, {topic: [0, 1]})
    assert commit(group, topic, "A", 2) == NONE
    assert commit(group, topic, "A", 1) == STALE  # given at epoch 2
    assert commit(group, topic, "B", 3) == NONE
    assert commit(group, topic, "B", 2) == STALE
    assert a.beat(2, {topic: [0, 1]}) == Beat(3)
    assert b.beat(3) == Beat(3, {topic: [2, 3]})
    assert commit(group, topic, "A", 2, partitions={0: 7, 1: 7}) == NONE
    assert commit(group, topic, "A", 2, partitions={0: 8, 2: 8}) == STALE  # all or nothing
    assert commit(group, topic, "A", 1) == STALE
    assert commit(group, topic, "B", 2) == STALE
    assert fetch(group, topic, None, -1) == [7, 7, 1, 1]
    assert commit(group, topic, "A", 3) == NONE  # of the present epoch, whosever the partitions are


def test_an_old_epoch_and_what_is_pending(make_group: MakeGroup, topic: str, make_topic: TopicMaker) -> None:
    other = make_topic(1)
    group = make_group(topic, other)
    a, b = (group.member(name, server_assignor="range") for name in "AB")
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert a.beat(2, subscribed_topic_names=[topic, other]) == Beat(3, {topic: ALL, other: [0]})
    assert b.join(topic) == Beat(4, {})
    assert a.beat(3) == Beat(3, {topic: [0, 1], other: [0]})
    assert commit(group, topic, "A", 2) == NONE
    assert commit(group, other, "A", 2, partitions={0: 1}) == STALE
    assert commit(group, other, "A", 3, partitions={0: 1}) == NONE


def test_a_static_member_that_is_away(make_group: MakeGroup, topic: str) -> None:
    group = make_group(topic)
    a, later = (group.member(name, instance_id="i1") for name in ("A", "A2"))
    a.join(topic)
    assert a.beat(-2) == Beat(-2)
    assert commit(group, topic, "A", 2) == STALE
    assert commit(group, topic, "A", -2) == NONE
    assert later.join(topic) == Beat(2, {topic: ALL})
    assert commit(group, topic, "A", 2) == UNKNOWN
    assert commit(group, topic, "A2", 1) == NONE
    assert commit(group, topic, "A2", 2) == NONE


def test_classic_members_of_a_consumer_group(
    make_group: MakeGroup, topic: str, connections: Callable[[], Connection]
) -> None:
    group = make_group(topic)
    n = group.member("N", server_assignor="range")
    assert n.join(topic) == Beat(2, {topic: ALL})
    c = group.classic(connections())
    assert isinstance(c.join(topic), Joined)
    assert commit(group, topic, c.member_id, 3, version=8) == NONE
    assert commit(group, topic, c.member_id, 4, version=8) == OLD_GENERATION
    assert commit(group, topic, c.member_id, 2, version=9) == OLD_GENERATION
    assert (fetch(group, topic, c.member_id, 4), fetch(group, topic, c.member_id, 3)) == (OLD_GENERATION, [1, 1, 1, 1])


def test_in_transactions(make_group: MakeGroup, topic: str, wire: Connection, fresh_name: Callable[[str], str]) -> None:
    group = make_group(topic)
    producer = RawProducer(wire, fresh_name("txn")).start()

    def committed(member_id: str, epoch: int, **fields: str) -> ErrorCode:
        member: dict[str, Any] = {"member_id": member_id, "generation_id_or_member_epoch": epoch, **fields}
        return producer.commit_offset(group.group_id, topic, 1, **member)

    producer.retried(lambda: producer.add_offsets(group.group_id))
    assert committed("A", 2) == OLD_GENERATION
    a = group.member("A")
    assert a.join(topic) == Beat(2, {topic: ALL})
    assert [committed("A", 2), committed("", -1)] == [NONE, NONE]
    assert [committed("A", 3), committed("A", 1), committed("B", 2)] == [OLD_GENERATION, OLD_GENERATION, UNKNOWN]
    assert [committed("A", -1), committed("", -1, group_instance_id="i1")] == [OLD_GENERATION, UNKNOWN]
    a.beat(-1)
    assert [committed("A", 2), committed("A", -1), committed("B", -1)] == [UNKNOWN, NONE, NONE]
    assert producer.end(commit=True) == NONE


def test_deletion(make_group: MakeGroup, topic: str, make_topic: TopicMaker) -> None:
    other = make_topic(1)
    group = make_group(topic, other)
    a = group.member("A")
    a.join(topic)
    assert commit(group, topic, "A", 2) == NONE
    assert commit(group, other, "A", 2, partitions={0: 1}) == NONE
    assert delete(group, topic) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete(group, other) == NONE
    assert delete(group, topic + "-not") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    a.beat(-1)
    assert delete(group, topic) == NONE
    assert fetch(group, topic, None, -1) == [-1, 1, 1, 1]
