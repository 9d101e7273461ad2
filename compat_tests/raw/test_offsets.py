"""ListOffsets, OffsetForLeaderEpoch, committed offsets.

Not here: the isolation level of ListOffsets (no transactions yet), the leader epoch of a recreated topic (Kafka in KRaft
mode begins at 0 again, the topic id tells the two apart). Log metrics and lag of other tools are sums of these answers.
"""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, list_offset, produce
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, connect
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

pytestmark = pytest.mark.client("wire")
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)


@pytest.fixture
def filled(leader: Connection, topic: str) -> str:
    """Three batches of two records: timestamps 100, 101; 300, 301; 200, 201."""
    produce(leader, topic, *[batch(b"a", b"b", timestamp_ms=time_ms) for time_ms in (100, 300, 200)])
    return topic


@pytest.mark.capability("ListOffsets")
def test_by_time(leader: Connection, filled: str) -> None:
    # The first record in the log whose time is not before the asked one; times are not sorted.
    for asked, offset, found in (
        (0, 0, 100),
        (101, 1, 101),
        (102, 2, 300),
        (200, 2, 300),
        (301, 3, 301),
        (302, -1, -1),
    ):
        answer = list_offset(leader, filled, asked)
        assert (answer.error_code, answer.offset, answer.timestamp) == (ErrorCode.NONE, offset, found)
        assert answer.leader_epoch == (0 if offset >= 0 else -1)


@pytest.mark.capability("ListOffsets")
def test_special_times(leader: Connection, filled: str) -> None:
    special = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED)
    answers = [list_offset(leader, filled, each) for each in special]
    assert [(each.error_code, each.offset, each.timestamp) for each in answers] == [
        (ErrorCode.NONE, 6, -1),
        (ErrorCode.NONE, 0, -1),
        (ErrorCode.NONE, 3, 301),
        (ErrorCode.NONE, 0, -1),
        (ErrorCode.NONE, -1, -1),
    ]
    assert list_offset(leader, filled, EARLIEST_PENDING_UPLOAD).error_code == ErrorCode.NONE


@pytest.mark.capability("ListOffsets")
@pytest.mark.parametrize("version", range(1, 12))
def test_every_version(leader: Connection, filled: str, version: int) -> None:
    answers = [list_offset(leader, filled, asked, version) for asked in (LATEST, EARLIEST, 101)]
    assert [(each.error_code, each.offset) for each in answers] == [(0, 6), (0, 0), (0, 1)]


@pytest.mark.capability("ListOffsets")
def test_empty_partition(leader: Connection, topic: str) -> None:
    answers = [list_offset(leader, topic, asked) for asked in (LATEST, EARLIEST, MAX_TIMESTAMP, 0)]
    assert [(each.error_code, each.offset) for each in answers] == [(0, 0), (0, 0), (0, -1), (0, -1)]


@pytest.mark.capability("ListOffsets")
def test_errors_are_per_partition(leader: Connection, filled: str) -> None:
    wanted = [
        ListOffsetsPartition(partition_index=0, timestamp=LATEST),
        ListOffsetsPartition(partition_index=7, timestamp=LATEST),
    ]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=filled, partitions=wanted)])
    answers = {each.partition_index: each for each in leader.call(request, 7).topics[0].partitions}
    assert (answers[0].error_code, answers[0].offset) == (ErrorCode.NONE, 6)
    assert answers[7].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.capability("ListOffsets")
def test_times_inside_a_compressed_batch(leader: Connection, topic: str) -> None:
    values = [b"%d" % number for number in range(100)]
    produce(leader, topic, batch(*values, timestamp_ms=1000, compression=1))
    assert [list_offset(leader, topic, asked).offset for asked in (1000, 1037, 1099, 1100)] == [0, 37, 99, -1]


@pytest.mark.capability("OffsetForLeaderEpoch")
@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch(leader: Connection, filled: str, version: int) -> None:
    def ask(leader_epoch: int, current: int = -1, partition: int = 0) -> tuple[int, int, int]:
        wanted = OffsetForLeaderPartition(partition=partition, leader_epoch=leader_epoch, current_leader_epoch=current)
        topic = OffsetForLeaderTopic(topic=filled, partitions=[wanted])
        answer = leader.call(OffsetForLeaderEpochRequest(topics=[topic]), version).topics[0].partitions[0]
        return answer.error_code, answer.leader_epoch, answer.end_offset

    assert ask(0) == (ErrorCode.NONE, 0, 6)
    assert ask(0, current=0) == (ErrorCode.NONE, 0, 6)
    assert ask(5) == (ErrorCode.NONE, -1, -1)
    assert ask(0, current=5) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert ask(0, partition=9)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def coordinator(wire: Connection, group_id: str) -> Connection:
    """The connection as one to the coordinator of the test's group."""
    return wire


def commit(connection: Connection, group_id: str, topic: str, version: int, **partition: object) -> int:
    """OffsetCommit without membership; the error of the partition."""
    wanted = OffsetCommitRequestPartition(committed_metadata="note", **partition)  # type: ignore[arg-type]
    request = OffsetCommitRequest(group_id=group_id, topics=[OffsetCommitRequestTopic(name=topic, partitions=[wanted])])

    def answered() -> int | None:
        code = int(connection.call(request, version).topics[0].partitions[0].error_code)
        return None if code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR) else code + 1

    answer = eventually(answered)
    assert answer is not None
    return answer - 1


@pytest.mark.capability("committed offsets")
@pytest.mark.parametrize("version", [2, 6, 8, 9])
def test_leader_epoch_and_metadata_come_back(coordinator: Connection, group_id: str, topic: str, version: int) -> None:
    epoch = {"committed_leader_epoch": 0} if version >= 6 else {}
    assert commit(coordinator, group_id, topic, version, partition_index=0, committed_offset=42, **epoch) == 0
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1])
    group = OffsetFetchRequestGroup(group_id=group_id, topics=[wanted])
    found = coordinator.call(OffsetFetchRequest(groups=[group]), 8).groups[0].topics[0].partitions
    known, unknown = sorted(found, key=lambda each: int(each.partition_index))
    assert (known.committed_offset, known.metadata, known.error_code) == (42, "note", ErrorCode.NONE)
    assert known.committed_leader_epoch == (0 if version >= 6 else -1)
    assert (unknown.committed_offset, unknown.metadata, unknown.error_code) == (-1, "", ErrorCode.NONE)
    assert unknown.committed_leader_epoch == -1


@pytest.mark.capability("committed offsets")
@pytest.mark.parametrize("version", [1, 2, 5, 7])
def test_offset_fetch_of_one_group(coordinator: Connection, group_id: str, topic: str, version: int) -> None:
    assert commit(coordinator, group_id, topic, 8, partition_index=0, committed_offset=42) == 0
    asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    answers = [coordinator.call(OffsetFetchRequest(group_id=group_id, topics=asked), version)]
    if version >= 2:
        answers.append(coordinator.call(OffsetFetchRequest(group_id=group_id, topics=None), version))
    for answer in answers:
        (found,) = answer.topics[0].partitions
        assert (found.committed_offset, found.metadata) == (42, "note")


@pytest.mark.capability("committed offsets")
def test_unknown_partitions_are_refused_one_by_one(coordinator: Connection, group_id: str, topic: str) -> None:
    code = commit(coordinator, group_id, topic, 8, partition_index=7, committed_offset=1)
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(coordinator, group_id, topic + "-not", 8, partition_index=0, committed_offset=1) == code


@pytest.mark.capability("committed offsets")
def test_metadata_has_a_limit(coordinator: Connection, group_id: str, topic: str) -> None:
    def with_note(length: int) -> int:
        wanted = OffsetCommitRequestPartition(committed_offset=1, committed_metadata="x" * length)
        topics = [OffsetCommitRequestTopic(name=topic, partitions=[wanted])]
        answer = coordinator.call(OffsetCommitRequest(group_id=group_id, topics=topics), 8)
        return int(answer.topics[0].partitions[0].error_code)

    eventually(lambda: with_note(4096) == ErrorCode.NONE)
    assert with_note(4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.capability("committed offsets")
def test_commit_of_a_stranger(coordinator: Connection, group_id: str, topic: str, address: str) -> None:
    # A generation without a membership: the group doesn't know the member.
    wanted = OffsetCommitRequestPartition(committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=3,
        member_id="stranger",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[wanted])],
    )
    with connect(address) as other:
        assert commit(other, group_id, topic, 8, partition_index=0, committed_offset=42) == 0
    code = coordinator.call(request, 8).topics[0].partitions[0].error_code
    assert code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
