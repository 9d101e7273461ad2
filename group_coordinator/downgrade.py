"""The downgrade of a consumer group to a classic group, when its last member of the consumer protocol goes (KIP-848).

It goes by leaving, by being fenced, or by coming back as a static member with the classic protocol. All who stay have the classic
protocol then, and one of them is to assign the partitions again. The number of the generation is the epoch of the group, and the
assignments are the partitions that the members have, as bytes that clients of the classic protocol know. The records of both are
one batch.

A rebalance follows, because nobody has the partitions of the member that went. It is soft, so the next coordinator begins it
once more (``ClassicGroup.was_downgraded``). A static member that came back has its partitions, and needs none.

Source: Kafka's GroupMetadataManager (``validateOnlineDowngradeWithFencedMembers``, ``validateOnlineDowngradeWithReplacedMember``,
``convertToClassicGroup``) and ClassicGroup (``fromConsumerGroup``). Three things are different, so that no partition is read by
two members, or by none for ever:

* Kafka writes the target as the assignments, although a member may still read partitions that the target gives to others. An
  upgrade straight afterwards would hand them out.
* Kafka calls for no rebalance after a static member has come back, although others may wait for partitions.
* Kafka loses the rebalance with the coordinator.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from ..replication.coordinator_log import CoordinatorTime
from .consumer_group import ConsumerGroup
from .consumer_group_member import ConsumerGroupMember
from .consumer_group_records import ConsumerGroupChange, group_removal
from .consumer_timers import cancel_timers
from .embedded_protocol import write_assignment
from .generation import CONSUMER_PROTOCOL_TYPE, Generation
from .live_group import ClassicGroupMember, select_protocol
from .rebalance import note_event, prepare_rebalance, restart_session
from .records import group_metadata
from .shard import GroupCoordinatorShard
from .timeline import EventKind
from .topics import TopicSizes

logger = logging.getLogger(__name__)


def is_downgrade_due(
    shard: GroupCoordinatorShard,
    group: ConsumerGroup,
    gone: Collection[ConsumerGroupMember],
    come: ConsumerGroupMember | None = None,
) -> bool:
    """Whether only classic members are left once some have gone, and the group may become a classic one.

    ``come``: the classic member that takes the place of one that goes.
    """
    stay = group.member_count - len(gone)
    classic = group.classic_member_count - sum(member.classic is not None for member in gone)
    count = stay if come is None else stay + 1
    if classic < stay or count == 0:
        return False
    if not shard.context.settings.allows_downgrade:
        logger.info("Group %s: it stays a consumer group because of the migration policy", group.group_id)
        return False
    if count > shard.settings.group_max_size:
        logger.info("Group %s: it stays a consumer group, because a classic one may not be so large", group.group_id)
        return False
    return True


def downgrade(
    shard: GroupCoordinatorShard,
    group: ConsumerGroup,
    gone: Collection[ConsumerGroupMember],
    why: tuple[EventKind, str],
    now: CoordinatorTime,
) -> None:
    """Make a classic group of the members that stay. KafkaError, and nothing has changed, when the log refuses.

    ``why`` says to people why members go.
    """
    stay = _without(group, gone)
    members = [_classic_member(member) for member in stay]
    generation = _generation(group.epoch, members, _held(stay), shard.context.topics, now)
    shard.write([*group_removal(group), group_metadata(group.group_id, generation)], now)
    reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
    _begin_classic_group(shard, group, members, [(*why, member) for member in gone], reason, now)


def downgrade_with_replaced(
    shard: GroupCoordinatorShard,
    group: ConsumerGroup,
    replaced: ConsumerGroupMember,
    come: ConsumerGroupMember,
    change: ConsumerGroupChange,
    reason: str | None,
    now: CoordinatorTime,
) -> None:
    """As ``downgrade``, when the classic member ``come`` takes the place of ``replaced``.

    ``change`` has the records by which it does so, as Kafka writes them before those of the downgrade. ``reason`` is that of the
    rebalance, None where one is needed only if members wait for partitions.
    """
    stay = _without(group, [replaced])
    stay.append(come)
    members = [_classic_member(member) for member in stay]
    if reason is None and not all(member.is_settled_at(group.epoch) for member in stay):
        reason = f"Downgrade group {group.group_id} from consumer to classic while members wait for partitions."
    generation = _generation(group.epoch, members, _held(stay), shard.context.topics, now)
    records = change.records()
    after = group
    for record in records:
        after = after.with_record(record.key, record.value)
    shard.write([*records, *group_removal(after), group_metadata(group.group_id, generation)], now)
    event = EventKind.TOOK_OVER, f"from {replaced.member_id}, as {replaced.instance_id}", come
    _begin_classic_group(shard, group, members, [event], reason, now)


def _without(group: ConsumerGroup, gone: Iterable[ConsumerGroupMember]) -> list[ConsumerGroupMember]:
    ids = {member.member_id for member in gone}
    return [member for member_id, member in group.members.newest().items() if member_id not in ids]


def _held(members: Iterable[ConsumerGroupMember]) -> dict[str, dict[bytes, set[int]]]:
    """By member id, the partitions that the client may read: topic id -> partitions."""
    parts: dict[str, dict[bytes, set[int]]] = {}
    for member in members:
        part = parts.setdefault(member.member_id, {})
        for topic_id, partition in member.held():
            part.setdefault(topic_id, set()).add(partition)
    return parts


def _classic_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    assert member.classic is not None
    return ClassicGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=list(member.classic.protocols),
    )


def _generation(
    epoch: int,
    members: Collection[ClassicGroupMember],
    parts: Mapping[str, Mapping[bytes, AbstractSet[int]]],
    topics: TopicSizes,
    now: CoordinatorTime,
) -> Generation:
    """The generation of the classic group. ``parts``: the assignments by member id."""
    protocol = select_protocol(members)
    known = {
        member.member_id: dataclasses.replace(
            member.in_generation(protocol),
            assignment=write_assignment(parts[member.member_id], topics, member.metadata(protocol)),
        )
        for member in members
    }
    leader_id = next(iter(known))
    return Generation(epoch, CONSUMER_PROTOCOL_TYPE, protocol, leader_id, known, now.wall_ms)


def _begin_classic_group(
    shard: GroupCoordinatorShard,
    before: ConsumerGroup,
    members: Iterable[ClassicGroupMember],
    events: Iterable[tuple[EventKind, str, ConsumerGroupMember]],
    reason: str | None,
    now: CoordinatorTime,
) -> None:
    for member_id in before.members.newest():
        cancel_timers(shard, before.group_id, member_id)
    shard.rebalances_began.pop(before.group_id, None)
    group = shard.classic_group(before.group_id)
    assert group is not None
    group.resume()
    for classic_member in members:
        known = group.live.members[classic_member.member_id]
        known.protocols = classic_member.protocols  # the generation has one of them alone
        restart_session(shard, group, known, now)
    logger.info("Group %s: it is a classic group from now on", group.group_id)
    for kind, detail, member in events:
        note_event(shard, group, kind, now, member, detail)
    note_event(shard, group, EventKind.DOWNGRADED, now)
    if reason is not None:
        prepare_rebalance(shard, group, now, reason)
