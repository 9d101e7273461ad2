"""Whether a consumer group is where it is to be once faults have ended, by its own word and by that of its clients."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.group_coordinator.topics import TopicSize

from .consumer import GroupConsumer, short
from .membership import Subscription, TopicIdPartition


class MemberView(NamedTuple):
    """A member, as the coordinator tells of it."""

    epoch: int
    assigned: frozenset[TopicIdPartition]


class GroupView(NamedTuple):
    """A group, as the coordinator tells of it."""

    kind: str
    """consumer or classic."""
    state: str
    epoch: int
    members: Mapping[str, MemberView]
    """By member id."""


def unconverged(
    group: GroupView | None, consumers: Sequence[GroupConsumer], topics: Mapping[str, TopicSize]
) -> str | None:
    """Why the group is not stable, or does not have each partition at one client; None if all is well."""
    clients = [consumer for consumer in consumers if not consumer.is_gone]
    if not all(consumer.is_heard for consumer in clients):
        return "not every client is back"
    if group is None:
        return "there is no group" if clients else None
    if group.members.keys() != {consumer.member.member_id for consumer in clients}:
        return f"the members are {sorted(group.members)}"
    kind = "classic" if all(consumer.member.is_classic for consumer in clients) else "consumer"
    if clients and group.kind != kind:
        return f"it is a {group.kind} group, and its clients make it a {kind} one"
    if clients and group.state != "Stable":
        return f"the group is {group.state}"
    owners: dict[TopicIdPartition, str] = {}
    wanted: set[TopicIdPartition] = set()
    for consumer in clients:
        known, member = group.members[consumer.member.member_id], consumer.member
        if known.epoch != group.epoch or member.epoch != group.epoch:
            return f"{consumer.name} is at {member.epoch}, its member at {known.epoch}, and the group at {group.epoch}"
        if known.assigned != member.owned:
            return f"{consumer.name} reads {short(member.owned)}, and its member has {short(known.assigned)}"
        read = {
            (size.topic_id, number)
            for name, size in topics.items()
            if is_read(member.subscription, name)
            for number in range(size.partition_count)
        }
        if not member.owned <= read:
            return f"{consumer.name} has {short(member.owned - read)}, which it does not read"
        for partition in member.owned:
            if owners.setdefault(partition, consumer.name) != consumer.name:
                return f"{short([partition])} is {owners[partition]}'s and {consumer.name}'s"
        wanted |= read
    return f"nobody has {short(wanted - owners.keys())}" if wanted - owners.keys() else None


def is_read(subscription: Subscription, topic: str) -> bool:
    """Whether a subscription has a topic."""
    expression = subscription.expression
    return topic in subscription.names or bool(expression and re.fullmatch(expression, topic))
