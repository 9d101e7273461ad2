"""The upgrade of a classic group with members to a consumer group, when a member of the consumer protocol joins (KIP-848).

The classic members stay. Each has the last assignment that the leader gave it, and the number of the generation is its epoch. One
without an assignment has nothing, so its partitions are free. The records of the upgrade and those of the join that calls for it
are one batch: either the group is a consumer group with the new member, or nothing has happened.

A rebalance that was under way ends with REBALANCE_IN_PROGRESS for all who wait. They join again, as members with the classic
protocol (``classic_members``). Offsets are not touched.

Source: Kafka's GroupMetadataManager (``validateOnlineUpgrade``, ``convertToConsumerGroup``) and ConsumerGroup
(``fromClassicGroup``). Two things are different:

* A cooperative member may still read partitions that the leader has just taken from it, and given to nobody yet. It names them as
  owned in its subscription. Here they count as its own until it joins again; Kafka gives them away at once.
* Kafka fails where the group has no generation yet. Here its members have epoch 0 and no partitions then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from ..base.errors import ErrorCode, KafkaError, ProtocolError
from ..base.wording import counted
from ..replication.coordinator_log import CoordinatorTime
from ..wire.messages.consumer_protocol import ConsumerProtocolSubscription
from .classic_group import ClassicGroup
from .consumer_group_member import AssignedPartitions, ClassicSupport, ConsumerGroupMember
from .consumer_group_records import ConsumerGroupChange
from .embedded_protocol import partitions_by_id, read_assignment, read_subscription
from .generation import CONSUMER_PROTOCOL_TYPE
from .live_group import ClassicGroupMember
from .rebalance import join_timer, note_event, release, restart_session, session_timer, sync_timer
from .records import CoordinatorRecord, group_tombstone
from .shard import GroupCoordinatorShard
from .timeline import EventKind
from .topics import TopicSizes

logger = logging.getLogger(__name__)


def upgrade_records(shard: GroupCoordinatorShard, group: ClassicGroup) -> list[CoordinatorRecord]:
    """The records that make a consumer group of a classic one. KafkaError GROUP_ID_NOT_FOUND where it has to stay classic."""
    _check_group(shard, group)
    topics = shard.context.topics
    epoch = group.live.generation.generation_id
    members = _upgraded(group, topics)
    names = frozenset().union(*(member.topic_names for member in members))
    change = ConsumerGroupChange(
        group.group_id,
        subscriptions=members,
        epoch=(epoch, topics.hash_of(names) if _has_all(members, names, topics) else 0),
        targets={member.member_id: _partitions(member) for member in members},
        target_epoch=(epoch, 0),
        assignments=members,
    )
    return [group_tombstone(group.group_id), *change.records()]


def _has_all(members: Iterable[ConsumerGroupMember], names: Iterable[str], topics: TopicSizes) -> bool:
    """Whether each partition of these topics is assigned.

    The rest would be left to nobody if the member that joins reads nothing, as in Kafka. A group that does not have the hash of
    its topics makes a target at once.
    """
    held = {partition for member in members for partition in member.held()}
    sizes = [size for name in names if (size := topics.find(name)) is not None]
    return all((size.topic_id, number) in held for size in sizes for number in range(size.partition_count))


def complete_upgrade(shard: GroupCoordinatorShard, group: ClassicGroup, now: CoordinatorTime) -> None:
    """The records are written: the rebalance of the classic ``group`` is over, and the sessions of its members begin again."""
    live = group.live
    shard.timers.cancel(join_timer(group))
    shard.timers.cancel(sync_timer(group))
    for member_id in live.pending_members:
        shard.timers.cancel(session_timer(group, member_id))
    for member in live.members.values():
        restart_session(shard, group, member, now)
    if not group.is_empty:
        logger.info("Group %s: it is a consumer group from now on", group.group_id)
        note_event(shard, group, EventKind.UPGRADED, now, detail=f"with {counted(len(live.members), 'classic member')}")
    release(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)


def _check_group(shard: GroupCoordinatorShard, group: ClassicGroup) -> None:
    settings = shard.context.settings
    if not settings.allows_upgrade:
        raise _refusal(group, "online upgrade is disabled")
    if group.live.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise _refusal(group, "the group does not use the consumer embedded protocol")
    if group.member_count > settings.max_size:
        raise _refusal(group, "the group size exceeds the consumer group maximum size")


def _subscription(group: ClassicGroup, member: ClassicGroupMember) -> ConsumerProtocolSubscription:
    """KafkaError GROUP_ID_NOT_FOUND where it cannot be read."""
    metadata = member.metadata(group.live.generation.protocol_name) or member.protocols[0][1]
    try:
        return read_subscription(metadata)
    except ProtocolError as error:
        raise _malformed(group, member, error) from error


def _assigned(group: ClassicGroup, member: ClassicGroupMember, topics: TopicSizes) -> Mapping[bytes, frozenset[int]]:
    """The partitions that the leader gave the member last. KafkaError GROUP_ID_NOT_FOUND where that cannot be known."""
    given = group.assignment_of(member.member_id)
    if not given:
        return {}
    try:
        assignment = read_assignment(given)
    except ProtocolError as error:
        raise _malformed(group, member, error) from error
    if assignment.user_data:
        raise _refusal(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
            "before re-attempting the upgrade",
        )
    return partitions_by_id(assignment.assigned_partitions, topics)


def _upgraded(group: ClassicGroup, topics: TopicSizes) -> list[ConsumerGroupMember]:
    """The members as those of the consumer group. KafkaError GROUP_ID_NOT_FOUND."""
    members = list(group.live.members.values())
    subscriptions = [_subscription(group, member) for member in members]
    given = [_assigned(group, member, topics) for member in members]
    taken = {(topic_id, number) for parts in given for topic_id, numbers in parts.items() for number in numbers}
    upgraded = []
    for member, subscription, assigned in zip(members, subscriptions, given, strict=True):
        held = {topic_id: set(numbers) for topic_id, numbers in assigned.items()}
        for topic_id, numbers in partitions_by_id(subscription.owned_partitions, topics).items():
            kept = {number for number in numbers if (topic_id, number) not in taken}
            taken |= {(topic_id, number) for number in kept}
            held.setdefault(topic_id, set()).update(kept)
        upgraded.append(_as_consumer(member, subscription, held, group.live.generation.generation_id))
    return upgraded


def _as_consumer(
    member: ClassicGroupMember,
    subscription: ConsumerProtocolSubscription,
    held: Mapping[bytes, AbstractSet[int]],
    epoch: int,
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member.member_id,
        has_subscription=True,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSupport(member.session_timeout_ms, tuple(member.protocols)),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=AssignedPartitions(
            {topic_id: dict.fromkeys(sorted(numbers), epoch) for topic_id, numbers in held.items() if numbers}
        ),
    )


def _partitions(member: ConsumerGroupMember) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in member.assigned.epochs.items()}


def _malformed(group: ClassicGroup, member: ClassicGroupMember, error: ProtocolError) -> KafkaError:
    logger.warning(
        "Group %s: the subscription or assignment of member %s cannot be read: %s",
        group.group_id,
        member.member_id,
        error,
    )
    return _refusal(group, "the embedded consumer protocol is malformed")


def _refusal(group: ClassicGroup, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    )
