"""The acceptance of commits and reads of offsets in a consumer group (KIP-848), by the epochs of member and partitions.

=======================  =========================================================================================
epoch of the client      commit
=======================  =========================================================================================
none (-1)                accepted while the group has no members: it comes from a tool
that of the member       accepted
an older one             accepted if the member has had each of the partitions at that epoch already (KIP-1251): a
                         heartbeat under way does not undo the work on what it leaves with the member
a newer one              refused
=======================  =========================================================================================

A refusal is of the whole request, with STALE_MEMBER_EPOCH. Members with the classic protocol, and transactions, get
ILLEGAL_GENERATION instead, which they know (ConsumerGroup ``validateOffsetCommit``, ``validateOffsetFetch``).
"""

from __future__ import annotations

from collections.abc import Callable

from ..base.errors import ErrorCode, KafkaError
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember

CommitJudge = Callable[[bytes, int], None]
"""KafkaError where the commit of a partition, given by its topic's id and its number, is not accepted: then none is."""

_MEMBER_EPOCHS_FROM = 9
"""Version of OffsetCommit that has a member's epoch."""


def accept_all(topic_id: bytes, partition: int) -> None:
    """A ``CommitJudge`` that accepts every commit."""


def judge(group: ConsumerGroup, member_id: str, epoch: int, version: int) -> CommitJudge:
    """Of OffsetCommit. KafkaError where the request is refused whatever its partitions are."""
    if epoch < 0 and group.is_empty:
        return accept_all
    member = _member(group, member_id)
    if member.classic is None and version < _MEMBER_EPOCHS_FROM:
        why = "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, why)
    return _judge_by_epoch(member, epoch, _refusal(member))


def judge_transactional(group: ConsumerGroup, member_id: str, epoch: int) -> CommitJudge:
    """Of TxnOffsetCommit that names a member. KafkaError where it is refused whatever its partitions are."""
    if epoch < 0 and group.is_empty:
        return accept_all
    return _judge_by_epoch(_member(group, member_id), epoch, ErrorCode.ILLEGAL_GENERATION)


def check_reader(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """OffsetFetch of a client that says who it is. KafkaError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION."""
    member = _member(group, member_id or "")
    if epoch != member.epoch:
        why = f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}."
        raise KafkaError(_refusal(member), why)


def _member(group: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    member = group.members.newest().get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def _refusal(member: ConsumerGroupMember) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def _judge_by_epoch(member: ConsumerGroupMember, epoch: int, refusal: ErrorCode) -> CommitJudge:
    if epoch == member.epoch:
        return accept_all
    if epoch > member.epoch:
        raise KafkaError(refusal, f"Received member epoch {epoch} is newer than current member epoch {member.epoch}.")

    def of_partition(topic_id: bytes, partition: int) -> None:
        had_from = member.assigned.of(topic_id).get(partition)
        if had_from is None:
            had_from = member.pending_revocation.of(topic_id).get(partition)
        if had_from is None or epoch < had_from:
            raise KafkaError(
                refusal, f"The member has not had partition {partition} of a topic at member epoch {epoch}."
            )

    return of_partition
