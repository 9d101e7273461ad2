"""Requests of administrators about start offsets: DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.share_groups.conftest import Fill, MakeConsumer, MakeGroup
from ottla.compat_tests.raw.share_groups.wire_share import ShareGroup, accept, reject, release
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)

pytestmark = [
    pytest.mark.client("wire"),
    pytest.mark.capability("share groups: offsets"),
    pytest.mark.one_broker("a cluster on ZooKeeper has no share groups"),
    pytest.mark.restart,
]
NONE, NO_GROUP = ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND
NON_EMPTY, UNKNOWN = ErrorCode.NON_EMPTY_GROUP, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def described(wire: Connection, group_id: str, *topics: str, version: int = 1) -> Any:
    """The group's part of a DescribeShareGroupOffsets for partition 0 of these topics, or without any for all."""
    wanted = [DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[0]) for topic in topics] or None
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=wanted)
    (found,) = wire.call(DescribeShareGroupOffsetsRequest(groups=[group]), version).groups
    assert found.group_id == group_id
    return found


def offsets(group: ShareGroup, topic: str, version: int = 1) -> tuple[int, int]:
    """Start offset and lag of partition 0, as DescribeShareGroupOffsets tells them."""
    found = described(group.connection, group.group_id, topic, version=version)
    (partition,) = found.topics[0].partitions
    assert (found.error_code, partition.error_code) == (NONE, NONE)
    assert (found.topics[0].topic_name, found.topics[0].topic_id) == (topic, group.names.id_of(topic))
    return partition.start_offset, partition.lag


def alter(wire: Connection, group_id: str, topics: Mapping[str, Mapping[int, int]]) -> Any:
    """AlterShareGroupOffsets to {topic: {partition: offset}}."""
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
                    for partition, offset in partitions.items()
                ],
            )
            for topic, partitions in topics.items()
        ],
    )
    return wire.call(request, 0)


def altered(wire: Connection, group_id: str, topics: Mapping[str, Mapping[int, int]]) -> Any:
    """The error of the request, or those of {topic: {partition: error}}."""
    response = alter(wire, group_id, topics)
    if response.error_code != NONE:
        return ErrorCode(response.error_code)
    return {
        topic.topic_name: {each.partition_index: ErrorCode(each.error_code) for each in topic.partitions}
        for topic in response.responses
    }


def deleted(wire: Connection, group_id: str, topics: Sequence[str]) -> Any:
    """DeleteShareGroupOffsets: the error of the request, or those of {topic: error}."""
    wanted = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    response = wire.call(DeleteShareGroupOffsetsRequest(group_id=group_id, topics=wanted), 0)
    if response.error_code != NONE:
        return ErrorCode(response.error_code)
    return {topic.topic_name: ErrorCode(topic.error_code) for topic in response.responses}


def test_start_and_lag(make_consumer: MakeConsumer, ten: str, fill: Fill) -> None:
    a = make_consumer(ten)
    group = a.group
    assert offsets(group, ten) == (-1, -1)  # it has not been read yet
    a.take()
    assert offsets(group, ten) == (-1, -1)  # what is acquired is not written
    assert a.acknowledge(accept(3, 4)) == NONE
    assert offsets(group, ten) == (0, 8)  # what is finished beyond the start is not lag
    assert a.acknowledge(accept(0, 2)) == NONE
    assert offsets(group, ten) in ((0, 5), (5, 5))
    assert a.acknowledge(reject(7), release(8, 9)) == NONE
    assert offsets(group, ten) == (5, 4)
    fill(ten, 5)
    assert offsets(group, ten) == (5, 9)
    assert a.acknowledge(accept(5, 6)) == NONE
    assert offsets(group, ten) in ((5, 7), (8, 7))
    assert offsets(group, ten, version=0) in ((5, -1), (8, -1))


def test_a_group_that_is_not_there(make_group: MakeGroup, wire: Connection, ten: str) -> None:
    group = make_group(ten)
    for group_id in (group.group_id, ""):
        found = described(wire, group_id)
        assert (found.error_code, found.topics) == (NONE, [])
    assert offsets(group, ten) == (-1, -1)


def test_topics_that_are_not_there(make_group: MakeGroup, wire: Connection, ten: str) -> None:
    group = make_group(ten)
    group.initialize(ten)
    found = described(wire, group.group_id, ten, ten + "-not")
    assert found.error_code == NONE
    topics = {topic.topic_name: topic for topic in found.topics}
    assert topics[ten].topic_id == group.names.id_of(ten)
    assert topics[ten + "-not"].topic_id == bytes(16)
    for topic in topics.values():
        (part,) = topic.partitions
        assert (part.partition_index, part.start_offset, part.lag, part.error_code) == (0, -1, -1, NONE)


def test_all_topics(make_group: MakeGroup, wire: Connection, ten: str, topic: str) -> None:
    group = make_group(ten)
    group.initialize(ten)
    assert [each.topic_name for each in described(wire, group.group_id).topics] == [ten]
    group.initialize(ten, topic)
    assert {each.topic_name for each in described(wire, group.group_id).topics} == {ten, topic}


def test_alter(make_consumer: MakeConsumer, ten: str, wire: Connection) -> None:
    a = make_consumer(ten)
    group = a.group
    assert altered(wire, group.group_id, {ten: {0: 7}}) == {ten: {0: NONE}}
    assert offsets(group, ten) == (7, 3)
    assert a.take() == [(7, 9, 1)]
    assert a.acknowledge(accept(7, 9)) == NONE
    assert a.close() == NONE
    # A leader that holds the partition hears of it with its next write.
    assert altered(wire, group.group_id, {ten: {0: 2}}) == {ten: {0: NONE}}
    assert offsets(group, ten) == (2, 8)


def test_altered_under_a_leader(make_consumer: MakeConsumer, ten: str, wire: Connection) -> None:
    a = make_consumer(ten)
    assert a.take() == [(0, 9, 1)]
    assert altered(wire, a.group.group_id, {ten: {0: 2}}) == {ten: {0: NONE}}
    assert a.look() == []
    # It hears of it when it writes, and reads the state anew.
    assert a.acknowledge(accept(0, 9)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert a.take() == [(2, 9, 1)]
    assert a.acknowledge(accept(2, 9)) == NONE


def test_what_cannot_be_altered(make_consumer: MakeConsumer, ten: str, wire: Connection) -> None:
    a = make_consumer(ten)
    group_id = a.group.group_id
    assert altered(wire, "", {ten: {0: 1}}) == ErrorCode.INVALID_GROUP_ID
    found = altered(wire, group_id, {ten: {0: 1, 7: 0}, ten + "-not": {0: 0}})
    assert found == {ten: {0: NONE, 7: UNKNOWN}, ten + "-not": {0: UNKNOWN}}
    assert offsets(a.group, ten) == (1, 9)
    assert altered(wire, group_id, {}) == {}
    a.group.member("M").joined(ten)
    assert altered(wire, group_id, {ten: {0: 2}}) == NON_EMPTY
    assert offsets(a.group, ten) == (1, 9)


def test_alter_makes_a_group(make_group: MakeGroup, ten: str, wire: Connection) -> None:
    group = make_group(ten)
    assert altered(wire, group.group_id, {ten: {0: 1}}) == {ten: {0: NONE}}
    assert group.state()[0] == "Empty"
    assert offsets(group, ten) == (1, 9)
    group.member("A").join_all(ten)
    assert group.consumer("A", ten).take() == [(1, 9, 1)]


def test_alter_of_a_topic_that_was_not_read(
    make_consumer: MakeConsumer, ten: str, topic: str, wire: Connection
) -> None:
    a = make_consumer(ten)
    assert altered(wire, a.group.group_id, {topic: {0: 0}}) == {topic: {0: NONE}}
    assert {each.topic_name for each in described(wire, a.group.group_id).topics} == {ten, topic}


def test_delete(make_consumer: MakeConsumer, ten: str, topic: str, wire: Connection) -> None:
    a = make_consumer(ten)
    a.take()
    assert a.acknowledge(accept(0, 9)) == NONE
    assert a.close() == NONE
    group_id = a.group.group_id
    assert deleted(wire, group_id + "-not", [ten]) == NO_GROUP
    assert deleted(wire, "", [ten]) == ErrorCode.INVALID_GROUP_ID
    assert deleted(wire, group_id, [ten + "-not", topic]) == {ten + "-not": UNKNOWN, topic: UNKNOWN}
    assert deleted(wire, group_id, []) == {}
    assert deleted(wire, group_id, [ten]) == {ten: NONE}
    assert described(wire, group_id).topics == []
    assert offsets(a.group, ten) == (-1, -1)
    assert deleted(wire, group_id, [ten]) == {ten: UNKNOWN}
    a.group.initialize(ten)
    assert offsets(a.group, ten) == (-1, -1)
    a.group.member("M").joined(ten)
    assert deleted(wire, group_id, [ten]) == NON_EMPTY
