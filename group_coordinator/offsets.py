"""Committed offsets on one shard: OffsetCommit, OffsetFetch, OffsetDelete.

Topics go by name here; the handlers translate topic ids and refuse partitions that do not exist. They also give the
current id with the name, and a commit for another id, of a topic that was deleted and made again, does not count.

Who may commit:

* a member of the current generation of a classic group, unless that is between JoinGroup and SyncGroup;
* a member of a consumer group, by the rules of ``consumer_commits``;
* clients without a generation (-1), as tools and consumers without a group protocol are, while the group is Empty or does
  not exist yet; the commit then makes it, as a *simple* group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.errors import ErrorCode, KafkaError
from ..log.settings import LONG_MAX
from ..replication.coordinator_log import CoordinatorTime, as_seen_by_clients
from ..wire.messages.consumer_offsets import OffsetCommitValue
from ..wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ..wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ..wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ..wire.schema import ZERO_UUID
from . import consumer_commits
from .classic_group import ClassicGroup
from .committed_offsets import CommittedOffset
from .consumer_commits import CommitJudge
from .consumer_group import ConsumerGroup
from .generation import CONSUMER_PROTOCOL_TYPE
from .live_group import GroupState
from .rebalance import restart_session
from .records import CoordinatorRecord, offset_commit, offset_tombstone
from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .streams_group import StreamsGroup

GROUP_ID_NOT_FOUND_FROM = 9
"""Version of OffsetCommit that knows this error."""
_NO_COMMITS: Mapping[int, CommittedOffset] = {}


def commit(
    shard: GroupCoordinatorShard, request: OffsetCommitRequest, version: int, now: CoordinatorTime
) -> OffsetCommitResponse:
    """OffsetCommit. KafkaError when nothing of the request is accepted."""
    judge = _judge(shard, request, version, now)
    # Kafka's sum wraps, and such offsets expire at once; "for ever" is what a client means by a retention near 2^63.
    expire_timestamp = -1 if request.retention_time_ms == -1 else min(now.wall_ms + request.retention_time_ms, LONG_MAX)
    response = OffsetCommitResponse()
    records: list[CoordinatorRecord] = []
    for topic in request.topics:
        answers = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answers)
        for partition in topic.partitions:
            code = ErrorCode.NONE
            if is_metadata_too_long(partition.committed_metadata, shard.settings.offset_metadata_max_bytes):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                judge(topic.topic_id, partition.partition_index)
                value = _value(topic.topic_id, partition, now.wall_ms, expire_timestamp)
                records.append(offset_commit(request.group_id, topic.name, partition.partition_index, value))
            answers.partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
    try:
        shard.write(records, now)
    except KafkaError as error:
        if error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, error.message) from error
        raise as_seen_by_clients(error) from error
    return response


def is_metadata_too_long(metadata: str | None, limit: int) -> bool:
    """Whether what a client wants to keep with an offset is longer than ``offset.metadata.max.bytes``."""
    # Kafka counts UTF-16 units here, whatever the setting's name says. No codec does it: Python loads that one when it is first
    # used, which fails where no descriptor is left.
    return metadata is not None and len(metadata) + sum(char > "\uffff" for char in metadata) > limit


def _value(
    topic_id: bytes, partition: OffsetCommitRequestPartition, now_ms: int, expire_timestamp: int
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )


def _judge(
    shard: GroupCoordinatorShard, request: OffsetCommitRequest, version: int, now: CoordinatorTime
) -> CommitJudge:
    """Whether a commit of each partition is accepted. KafkaError when nothing of the request is."""
    group, epoch = shard.groups.get(request.group_id), request.generation_id_or_member_epoch
    if group is None:
        if epoch >= 0:
            known = version >= GROUP_ID_NOT_FOUND_FROM
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION)
    elif isinstance(group, ClassicGroup):
        _validate_commit(shard, group, request, now)
    elif isinstance(group, ConsumerGroup):
        return consumer_commits.judge(group, request.member_id, epoch, version)
    else:
        validate_foreign_commit(group, is_from_member=epoch >= 0)
    return consumer_commits.accept_all


def _validate_commit(
    shard: GroupCoordinatorShard, group: ClassicGroup, request: OffsetCommitRequest, now: CoordinatorTime
) -> None:
    live, generation_id, member_id = group.live, request.generation_id_or_member_epoch, request.member_id
    if generation_id < 0 and live.state is GroupState.EMPTY:
        return
    if generation_id < 0 and not member_id and request.group_instance_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "the group has members; only they may commit")
    member = live.validate_member(member_id, request.group_instance_id)
    live.validate_generation(generation_id)
    if live.state is GroupState.COMPLETING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    restart_session(shard, group, member, now)


def validate_foreign_commit(group: ShareGroup | StreamsGroup, *, is_from_member: bool) -> None:
    """Only tools may commit, and only to a Streams group without members, which are not served here.

    Raises KafkaError GROUP_ID_NOT_FOUND (share groups have no such offsets) or UNKNOWN_MEMBER_ID.
    """
    if isinstance(group, ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is a share group.")
    if group.members or is_from_member:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "members of the streams protocol are not served here")


def fetch(
    shard: GroupCoordinatorShard, request: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """OffsetFetch of one group; ``topics`` None asks for everything the group has.

    KafkaError for a client that says who it is, and is no member of the group, or at another epoch.
    """
    if request.member_id is not None or request.member_epoch >= 0:
        group = shard.consumer_group(request.group_id)
        if group is not None:
            consumer_commits.check_reader(group, request.member_id, request.member_epoch)
    offsets = shard.offsets.of(request.group_id)
    response = OffsetFetchResponseGroup(group_id=request.group_id)
    wanted: Iterable[tuple[str, bytes, Iterable[int]]]
    if request.topics is not None:
        wanted = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics]
    else:
        wanted = [(name, ZERO_UUID, sorted(partitions)) for name, partitions in sorted(offsets.items())]
    for name, topic_id, partitions in wanted:
        topic = OffsetFetchResponseTopics(name=name, topic_id=topic_id)
        response.topics.append(topic)
        commits = offsets.get(name, _NO_COMMITS)
        for partition in partitions:
            unstable = require_stable and shard.offsets.is_unstable(request.group_id, name, partition)
            topic.partitions.append(_fetched(commits.get(partition), topic_id, partition, unstable=unstable))
    return response


def _fetched(
    committed: CommittedOffset | None, topic_id: bytes, partition: int, *, unstable: bool
) -> OffsetFetchResponsePartitions:
    if unstable:
        return not_fetched(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if committed is None or not _same_topic(committed.value.topic_id, topic_id):
        return not_fetched(partition, ErrorCode.NONE)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.value.offset,
        committed_leader_epoch=committed.value.leader_epoch,
        metadata=committed.value.metadata,
    )


def _same_topic(committed_id: bytes, current_id: bytes) -> bool:
    return committed_id == current_id or ZERO_UUID in (committed_id, current_id)


def not_fetched(partition: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    """The answer where there is no offset to give; with NONE it says that none was committed."""
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=code
    )


def delete(shard: GroupCoordinatorShard, request: OffsetDeleteRequest, now: CoordinatorTime) -> OffsetDeleteResponse:
    """OffsetDelete. KafkaError GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP."""
    group = shard.groups.get(request.group_id)
    if group is None or isinstance(group, ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if isinstance(group, ClassicGroup) and not group.is_empty and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "the topics of its members are unknown")
    response = OffsetDeleteResponse()
    records: list[CoordinatorRecord] = []
    for topic in request.topics:
        answers = OffsetDeleteResponseTopic(name=topic.name)
        response.topics.append(answers)
        subscribed = group.is_subscribed_to(topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
            answers.partitions.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
            if not subscribed and shard.offsets.has_commit(group.group_id, topic.name, index):
                records.append(offset_tombstone(group.group_id, topic.name, index))
    shard.write(records, now)
    return response
