"""The group APIs over the wire, at every version; what the handlers know and the coordinator does not: topics.

The rules of groups themselves are tested in tests/group_coordinator.
"""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.base.errors import ErrorCode
from ottla.compat_tests.wire_client import CLIENT_ID
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
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
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.schema import ZERO_UUID

NONE = ErrorCode.NONE
INT32_MIN = -(1 << 31)


def create_topic(send, name: str, partitions: int = 1) -> bytes:
    """Make a topic and return its id."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    created = send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0]
    assert created.error_code == NONE
    return created.topic_id


@pytest.fixture
def topic_id(send) -> bytes:
    """The id of the topic ``t`` of three partitions, on a broker that coordinates groups."""
    find(send, "any")
    known = send(MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False), 12).topics[
        0
    ]
    return known.topic_id if known.error_code == NONE else create_topic(send, "t", 3)


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4()}"


def find(send, key: str, version: int = 3) -> Any:
    """Also makes the broker coordinate groups, if it does not yet."""
    return send(FindCoordinatorRequest(key=key), version)


def join_request(group: str, member_id: str = "", instance: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")],
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
    )


def enter(send, group: str, version: int = 9) -> Any:
    """Join a group, with the id that is required from version 4 on."""
    answer = send(join_request(group), version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = send(join_request(group, answer.member_id), version)
    return answer


def commit(send, group: str, version: int = 9, *, name="t", topic_id=ZERO_UUID, partitions=((0, 5),), **fields):
    """Error codes by partition."""
    parts = [
        OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_leader_epoch=2, committed_metadata="m"
        )
        for partition, offset in partitions
    ]
    topic = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=parts)
    response = send(OffsetCommitRequest(group_id=group, topics=[topic], **fields), version)
    (topic_response,) = response.topics
    assert (topic_response.name, topic_response.topic_id) == (("", topic_id) if version >= 10 else (name, ZERO_UUID))
    return {part.partition_index: part.error_code for part in topic_response.partitions}


def fetch(send, group: str, version: int = 7, *, name="t", topic_id=ZERO_UUID, partitions=(0,)) -> Any:
    """The partitions of one topic; a name of None asks for all topics and returns them."""
    if version < 8:
        topics = None if name is None else [OffsetFetchRequestTopic(name=name, partition_indexes=list(partitions))]
        response = send(OffsetFetchRequest(group_id=group, topics=topics), version)
    else:
        asked = OffsetFetchRequestTopics(name=name or "", topic_id=topic_id, partition_indexes=list(partitions))
        wanted = OffsetFetchRequestGroup(group_id=group, topics=None if name is None else [asked])
        (response,) = send(OffsetFetchRequest(groups=[wanted]), version).groups
        assert response.group_id == group
    assert response.error_code == NONE
    return response.topics if name is None else response.topics[0].partitions


# FindCoordinator


def test_the_first_find_coordinator_creates_the_offsets_topic_and_answers_at_once(tmp_path: Path, connect):
    with ottla.Broker(data_dir=tmp_path) as broker:
        send = connect(broker.bootstrap_servers)
        answer = find(send, "g")
        assert (answer.error_code, f"{answer.host}:{answer.port}") == (NONE, broker.bootstrap_servers)
        assert commit(send, "g", name="nothing") == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        described = send(MetadataRequest(topics=[MetadataRequestTopic(name="__consumer_offsets")]), 12).topics[0]
        assert (len(described.partitions), described.is_internal) == (50, True)
        assert {len(partition.replica_nodes) for partition in described.partitions} == {1}


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator(send, broker, version):
    if version < 4:
        answers = [find(send, "g", version)]
    else:
        response = send(FindCoordinatorRequest(coordinator_keys=["g", "h"]), version)
        answers = response.coordinators
        assert [answer.key for answer in answers] == ["g", "h"]
    for answer in answers:
        assert (answer.error_code, answer.node_id) == (NONE, broker.broker_id)
        assert f"{answer.host}:{answer.port}" == broker.bootstrap_servers


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize("key_type", [2, 77])
def test_other_coordinators_are_refused_with_an_error_nobody_retries(send, version, key_type):
    if version < 4:
        answer = send(FindCoordinatorRequest(key="x", key_type=key_type), version)
    else:
        request = FindCoordinatorRequest(coordinator_keys=["x"], key_type=key_type)
        (answer,) = send(request, version).coordinators
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message
    assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)


@pytest.mark.parametrize("version", range(1, 7))
def test_the_coordinator_of_a_transaction(send, broker, version):
    if version < 4:
        answer = send(FindCoordinatorRequest(key="x", key_type=1), version)
    else:
        (answer,) = send(FindCoordinatorRequest(coordinator_keys=["x"], key_type=1), version).coordinators
    assert (answer.error_code, answer.node_id) == (NONE, broker.broker_id)
    assert f"{answer.host}:{answer.port}" == broker.bootstrap_servers


# Membership


@pytest.mark.parametrize("version", range(10))
def test_one_member_from_joining_to_leaving(send, topic_id, group, version):
    joined = enter(send, group, version)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (NONE, 1, "range")
    assert joined.protocol_type == ("consumer" if version >= 7 else None)
    member = joined.member_id
    assert [other.member_id for other in joined.members] == [member]
    sync_version = min(version, 5)
    sync = SyncGroupRequest(
        group_id=group,
        member_id=member,
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"assigned")],
    )
    synced = send(sync, sync_version)
    assert (synced.error_code, synced.assignment) == (NONE, b"assigned")
    assert synced.protocol_name == ("range" if sync_version >= 5 else None)
    beat = HeartbeatRequest(group_id=group, member_id=member, generation_id=1)
    assert send(beat, min(version, 4)).error_code == NONE
    leave_version = min(version, 5)
    if leave_version < 3:
        left = send(LeaveGroupRequest(group_id=group, member_id=member), leave_version)
        assert left.error_code == NONE
    else:
        left = send(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member)]), leave_version)
        assert [answer.error_code for answer in left.members] == [NONE]
    assert send(beat, min(version, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_names_no_protocol(send, topic_id, group, version):
    refused = send(join_request(group, "unknown"), version)
    assert (refused.error_code, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "unknown")
    assert refused.protocol_name == ("" if version < 7 else None)
    invalid = send(join_request(""), version)
    assert (invalid.error_code, invalid.generation_id) == (ErrorCode.INVALID_GROUP_ID, -1)


def test_sync_from_version_5_has_to_name_the_protocol(send, topic_id, group):
    member = enter(send, group).member_id
    sync = SyncGroupRequest(group_id=group, member_id=member, generation_id=1)
    assert send(sync, 4).error_code == NONE
    assert send(sync, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(3))
def test_an_unknown_member_that_leaves_hears_so(send, topic_id, group, version):
    left = send(LeaveGroupRequest(group_id=group, member_id="unknown"), version)
    assert left.error_code == ErrorCode.UNKNOWN_MEMBER_ID


# Offsets


@pytest.mark.parametrize("version", range(2, 11))
def test_partitions_that_do_not_exist_are_refused_and_the_rest_is_committed(send, topic_id, group, version):
    by = {"topic_id": topic_id} if version >= 10 else {}
    codes = commit(send, group, version, partitions=((0, 5), (2, 7), (3, 9)), **by)
    assert codes == {0: NONE, 2: NONE, 3: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    offsets = [partition.committed_offset for partition in fetch(send, group, partitions=(0, 1, 2, 3))]
    assert offsets == [5, -1, 7, -1]
    if version < 10:
        assert commit(send, group, version, name="no such topic") == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    else:
        assert commit(send, group, version, topic_id=b"x" * 16) == {0: ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.parametrize("version", range(1, 11))
def test_offset_fetch_gives_back_offset_epoch_and_metadata(send, topic_id, group, version):
    commit(send, group, partitions=((1, 42),))
    by = {"topic_id": topic_id} if version >= 10 else {}
    nothing, committed = fetch(send, group, version, partitions=(0, 1), **by)
    assert (committed.committed_offset, committed.metadata) == (42, "m")
    assert committed.committed_leader_epoch == (2 if version >= 5 else -1)
    assert (nothing.committed_offset, nothing.metadata, nothing.error_code) == (-1, "", NONE)
    if version >= 2:
        (topic,) = fetch(send, group, version, name=None)
        assert (topic.name, [partition.committed_offset for partition in topic.partitions]) == (
            "" if version >= 10 else "t",
            [42],
        )
    if version >= 10:
        assert topic.topic_id == topic_id
        (unknown,) = fetch(send, group, version, topic_id=b"x" * 16)
        assert (unknown.error_code, unknown.committed_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)


@pytest.mark.parametrize("version", [8, 9])
def test_offset_fetch_of_many_groups(send, topic_id, group, version):
    commit(send, group)
    commit(send, group + "2", partitions=((1, 6),))
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in (group, group + "2", "unknown")]
    answers = send(OffsetFetchRequest(groups=groups), version).groups
    offsets = [[p.committed_offset for t in answer.topics for p in t.partitions] for answer in answers]
    assert offsets == [[5], [6], []]
    assert [answer.error_code for answer in answers] == [NONE] * 3


def test_offset_delete(send, topic_id, group):
    commit(send, group, partitions=((0, 1), (1, 2)))
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        )
        for name, indexes in (("t", (0, 9)), ("no such topic", (0,)))
    ]
    response = send(OffsetDeleteRequest(group_id=group, topics=topics), 0)
    codes = {(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 0): NONE, ("t", 9): unknown, ("no such topic", 0): unknown}
    assert [p.committed_offset for p in fetch(send, group, partitions=(0, 1))] == [-1, 2]
    missing = send(OffsetDeleteRequest(group_id="unknown", topics=topics), 0)
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_deleted_topic_are_forgotten(send, topic_id, group):
    create_topic(send, "passing")
    commit(send, group)
    commit(send, group, name="passing")
    assert {topic.name for topic in fetch(send, group, name=None)} == {"t", "passing"}
    deleted = send(DeleteTopicsRequest(topic_names=["passing"], timeout_ms=10_000), 5)
    assert deleted.responses[0].error_code == NONE
    assert {topic.name for topic in fetch(send, group, name=None)} == {"t"}
    create_topic(send, "passing")
    assert fetch(send, group, name="passing")[0].committed_offset == -1


# Administration


@pytest.mark.parametrize("version", range(7))
def test_describe_groups(send, topic_id, group, version):
    member = enter(send, group).member_id
    response = send(
        DescribeGroupsRequest(groups=[group, "unknown"], include_authorized_operations=version >= 3), version
    )
    known, unknown = response.groups
    assert (known.group_state, known.protocol_type, known.protocol_data) == ("CompletingRebalance", "consumer", "")
    (described,) = known.members
    assert (described.member_id, described.client_id, described.client_host) == (member, CLIENT_ID, "/127.0.0.1")
    assert known.authorized_operations == (0b110101001000 if version >= 3 else INT32_MIN)
    assert (unknown.group_state, unknown.members) == ("Dead", [])
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else NONE)


@pytest.mark.parametrize("version", range(6))
def test_list_groups(send, topic_id, group, version):
    commit(send, group)
    listed = {entry.group_id: entry for entry in send(ListGroupsRequest(), version).groups}
    entry = listed[group]
    assert entry.protocol_type == ""
    assert entry.group_state == ("Empty" if version >= 4 else "")
    assert entry.group_type == ("classic" if version >= 5 else "")
    if version >= 4:
        assert group not in {
            entry.group_id for entry in send(ListGroupsRequest(states_filter=["Stable"]), version).groups
        }


@pytest.mark.parametrize("version", range(4))
def test_delete_groups(send, topic_id, group, version):
    commit(send, group)
    results = send(DeleteGroupsRequest(groups_names=[group, "unknown"]), version).results
    assert {result.group_id: result.error_code for result in results} == {
        group: NONE,
        "unknown": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert fetch(send, group)[0].committed_offset == -1


# The process


def test_groups_and_offsets_survive_a_restart(tmp_path: Path, connect, group):
    with ottla.Broker(data_dir=tmp_path) as broker:
        send = connect(broker.bootstrap_servers)
        find(send, group)
        create_topic(send, "t")
        member = enter(send, group).member_id
        assignment = SyncGroupRequestAssignment(member_id=member, assignment=b"assigned")
        sync = SyncGroupRequest(group_id=group, member_id=member, generation_id=1, assignments=[assignment])
        assert send(sync, 4).error_code == NONE
        assert commit(send, group, generation_id_or_member_epoch=1, member_id=member) == {0: NONE}
    with ottla.Broker(data_dir=tmp_path) as broker:
        send = connect(broker.bootstrap_servers)
        assert send(HeartbeatRequest(group_id=group, member_id=member, generation_id=1), 4).error_code == NONE
        assert send(sync, 4).assignment == b"assigned"
        fetched = fetch(send, group)[0]
        assert (fetched.committed_offset, fetched.committed_leader_epoch, fetched.metadata) == (5, 2, "m")


def test_a_broker_that_stops_does_not_wait_for_members_that_wait(connect, group):
    answers: list[Any] = []
    with ottla.Broker() as broker:
        send = connect(broker.bootstrap_servers)
        find(send, group)
        assert enter(send, group).error_code == NONE
        waiting = threading.Thread(target=lambda: answers.append(second(join_request(group), 3)))
        second = connect(broker.bootstrap_servers)
        waiting.start()
        while send(DescribeGroupsRequest(groups=[group]), 5).groups[0].group_state != "PreparingRebalance":
            assert waiting.is_alive()
    waiting.join()
    assert answers[0].error_code == ErrorCode.NOT_COORDINATOR
