"""Offsets committed inside a transaction: TxnOffsetCommit on one shard (KIP-98, KIP-447).

They are written at once, as records of the transaction, and count from its commit marker on; an abort marker drops them.
Until then readers that ask for stable offsets are told UNSTABLE_OFFSET_COMMIT. A client that names a generation or a member
is fenced like a member that commits; clients from before KIP-447 name neither, and their transaction alone protects
them. A transaction may commit while the group rebalances.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..replication.coordinator_log import CoordinatorTime, as_seen_by_clients
from ..wire.messages.consumer_offsets import OffsetCommitValue
from ..wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from . import consumer_commits
from .classic_group import ClassicGroup
from .consumer_commits import CommitJudge
from .live_group import GroupState
from .offsets import is_metadata_too_long, validate_foreign_commit
from .records import CoordinatorRecord, offset_commit
from .shard import GroupCoordinatorShard
from .share_group import ShareGroup
from .streams_group import StreamsGroup


def commit(
    shard: GroupCoordinatorShard, request: TxnOffsetCommitRequest, now: CoordinatorTime
) -> TxnOffsetCommitResponse:
    """TxnOffsetCommit. KafkaError when nothing of the request is accepted."""
    judge = _judge(shard, request)
    response = TxnOffsetCommitResponse()
    records: list[CoordinatorRecord] = []
    for topic in request.topics:
        answers = TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answers)
        for partition in topic.partitions:
            code = ErrorCode.NONE
            if is_metadata_too_long(partition.committed_metadata, shard.settings.offset_metadata_max_bytes):
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                judge(topic.topic_id, partition.partition_index)
                value = _value(topic.topic_id, partition, now.wall_ms)
                records.append(offset_commit(request.group_id, topic.name, partition.partition_index, value))
            answers.partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            )
    try:
        shard.write(records, now, (request.producer_id, request.producer_epoch))
    except KafkaError as error:
        if error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, error.message) from error
        raise as_seen_by_clients(error) from error
    return response


def _judge(shard: GroupCoordinatorShard, request: TxnOffsetCommitRequest) -> CommitJudge:
    """Whether a commit of each partition is accepted. KafkaError when nothing of the request is."""
    group, epoch = shard.groups.get(request.group_id), request.generation_id_or_member_epoch
    names_member = epoch >= 0 or bool(request.member_id) or request.group_instance_id is not None
    if group is None:
        if epoch >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {request.group_id}")
    elif isinstance(group, ClassicGroup):
        _validate(group, request)
    elif isinstance(group, ShareGroup | StreamsGroup):
        if names_member:
            validate_foreign_commit(group, is_from_member=epoch >= 0)
    elif names_member:
        return consumer_commits.judge_transactional(group, request.member_id, epoch)
    return consumer_commits.accept_all


def _validate(group: ClassicGroup, request: TxnOffsetCommitRequest) -> None:
    generation_id, member_id = request.generation_id_or_member_epoch, request.member_id
    if generation_id < 0 and group.live.state is GroupState.EMPTY:
        return
    if generation_id >= 0 or member_id or request.group_instance_id is not None:
        group.live.validate_member(member_id, request.group_instance_id)
        group.live.validate_generation(generation_id)


def _value(topic_id: bytes, partition: TxnOffsetCommitRequestPartition, now_ms: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        topic_id=topic_id,
    )
