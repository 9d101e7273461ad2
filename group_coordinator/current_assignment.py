"""Reconciliation of one member of a consumer group with the target assignment: the next step of the member.

A member takes a step at each of its heartbeats, and only then. A step depends on the member, the target, the owners of the
partitions, and the client's own list of its partitions:

=====================  =======================================================  ============================================
state of the member    step                                                     epoch
=====================  =======================================================  ============================================
STABLE                 none while the target is of its epoch                    the same
STABLE, an old epoch   the target is looked at: what to give up, what to take   as below
UNREVOKED_PARTITIONS   none until the client has given up all that is pending   the old one, so that its commits still count
UNRELEASED_PARTITIONS  the target is looked at once more                        that of the target
=====================  =======================================================  ============================================

The step towards the target: if the client still has partitions to give up, they become pending, and the member is
UNREVOKED_PARTITIONS at its old epoch. Otherwise it goes to the epoch of the target and gets all of its partitions that are free.
It is STABLE then, or UNRELEASED_PARTITIONS while others have some of them. A partition with an owner is given to nobody else.

Topics that the member no longer reads count as not in the target, which may be older than the member's subscription.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from ..base.errors import ErrorCode, KafkaError
from .consumer_group import NOBODY
from .consumer_group_member import AssignedPartitions, ConsumerGroupMember, MemberState

OwnerEpoch = Callable[[bytes, int], int]
"""Epoch of the member that has a partition, or ``NOBODY``: ``ConsumerGroup.owner_epoch``."""
OwnedPartitions = Mapping[bytes, AbstractSet[int]]
"""Topic id -> partitions, as a client reports them. No list at all is None, and means that nothing has changed."""


def reconciled(
    member: ConsumerGroupMember,
    target_epoch: int,
    target: Mapping[bytes, AbstractSet[int]],
    subscribed: AbstractSet[bytes],
    owner_epoch: OwnerEpoch,
    owned: OwnedPartitions | None,
    *,
    has_subscription_changed: bool = False,
) -> ConsumerGroupMember:
    """The member after a heartbeat, or the same object if it stays.

    ``target`` is the member's own part of it, and ``subscribed`` has the ids of the topics that it reads, as of now. With
    ``has_subscription_changed``, this heartbeat has changed them. KafkaError FENCED_MEMBER_EPOCH where a newer broker has left
    the member in a state that is unknown here: the client has to give up its partitions.
    """
    if member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The state of the member is unknown to this broker. It has to give up its partitions and to join again.",
            )
    elif member.is_settled_at(target_epoch) or (
        member.state is MemberState.UNREVOKED_PARTITIONS and _still_has(owned, member.pending_revocation)
    ):
        return _without_unsubscribed(member, subscribed, owned) if has_subscription_changed else member
    return _towards_target(member, target_epoch, target, subscribed, owner_epoch, owned)


def _towards_target(
    member: ConsumerGroupMember,
    target_epoch: int,
    target: Mapping[bytes, AbstractSet[int]],
    subscribed: AbstractSet[bytes],
    owner_epoch: OwnerEpoch,
    owned: OwnedPartitions | None,
) -> ConsumerGroupMember:
    kept: dict[bytes, dict[int, int]] = {}
    revoked: dict[bytes, dict[int, int]] = {}
    for topic_id, partitions in member.assigned.epochs.items():
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        for partition, epoch in partitions.items():
            part = kept if partition in wanted else revoked
            part.setdefault(topic_id, {})[partition] = epoch
    if revoked and _still_has(owned, AssignedPartitions(revoked)):
        return member.moved(
            member.epoch, MemberState.UNREVOKED_PARTITIONS, AssignedPartitions(kept), AssignedPartitions(revoked)
        )
    state = MemberState.STABLE
    for topic_id in target.keys() & subscribed:
        added = target[topic_id] - member.assigned.of(topic_id).keys()
        free = _free(member, topic_id, added, owner_epoch)
        if free:
            kept.setdefault(topic_id, {}).update(dict.fromkeys(free, target_epoch))
        if len(free) < len(added):
            state = MemberState.UNRELEASED_PARTITIONS
    return member.moved(target_epoch, state, AssignedPartitions(kept))


def _without_unsubscribed(
    member: ConsumerGroupMember, subscribed: AbstractSet[bytes], owned: OwnedPartitions | None
) -> ConsumerGroupMember:
    """Partitions of topics that the member no longer reads are given up at once, without a new target."""
    gone = {topic_id: member.assigned.of(topic_id) for topic_id in member.assigned.epochs.keys() - subscribed}
    if not gone:
        return member
    kept = {topic_id: epochs for topic_id, epochs in member.assigned.epochs.items() if topic_id not in gone}
    pending = dict(member.pending_revocation.epochs)
    for topic_id, epochs in gone.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **epochs}
    if not _still_has(owned, AssignedPartitions(pending)):
        return member.moved(member.epoch, member.state, AssignedPartitions(kept), member.pending_revocation)
    return member.moved(
        member.epoch, MemberState.UNREVOKED_PARTITIONS, AssignedPartitions(kept), AssignedPartitions(pending)
    )


def _still_has(owned: OwnedPartitions | None, partitions: AssignedPartitions) -> bool:
    """Whether the client may still read one of the partitions."""
    if owned is None:
        return True
    return any(not numbers.isdisjoint(partitions.of(topic_id)) for topic_id, numbers in owned.items())


def _free(
    member: ConsumerGroupMember, topic_id: bytes, partitions: AbstractSet[int], owner_epoch: OwnerEpoch
) -> list[int]:
    """Those that the member may have: nobody has them, or it has just given them up itself."""
    given_up = member.pending_revocation.of(topic_id)
    return [each for each in partitions if owner_epoch(topic_id, each) == NOBODY or each in given_up]
