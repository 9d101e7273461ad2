"""``ottla groups list | describe | delete``.

Lag is the end offset less the committed one. A partition that a member has but never committed has neither.

A consumer group of KIP-848 is described by a request of its own. Its members have an epoch, and the partitions that the target
assignment gives them; what they have includes the partitions that they are still to give up.

A share group (KIP-932) commits no offsets. The share coordinator tells where it begins in each partition, and how many records
are still to be delivered. Several members have the same partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Any, NamedTuple

import kafka.errors
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from ...wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from ...wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from ...wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from .client import Admin, ClusterConnection
from .nearest import group_names, no_group
from .output import OutputColumn, as_object, is_terminal, print_json, print_rows
from .running import ToolError, refusal
from .wire_request import WireRequest

_CLASSIC, _CONSUMER, SHARE = "classic", "consumer", "share"
_DESCRIBE_VERSIONS = 0, 1
_DESCRIBE_SHARE_VERSIONS = 1, 1
_SHARE_OFFSETS_VERSIONS = 0, 1

LIST_COLUMNS = (OutputColumn("group"), OutputColumn("protocol"), OutputColumn("state"), OutputColumn("type"))
OFFSET_COLUMNS = (
    OutputColumn("group"),
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("current_offset", is_number=True),
    OutputColumn("end_offset", is_number=True),
    OutputColumn("lag", is_number=True),
    OutputColumn("member_id"),
    OutputColumn("host"),
    OutputColumn("client_id"),
)
MEMBER_COLUMNS = (
    OutputColumn("group"),
    OutputColumn("member_id"),
    OutputColumn("host"),
    OutputColumn("client_id"),
    OutputColumn("partitions", is_number=True),
    OutputColumn("assignment"),
)


CONSUMER_COLUMNS = (
    *MEMBER_COLUMNS,
    OutputColumn("instance_id"),
    OutputColumn("epoch", is_number=True),
    OutputColumn("target"),
)
"""Of the members of a consumer group; and of all in JSON."""
SHARE_OFFSET_COLUMNS = (
    OutputColumn("group"),
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("start_offset", is_number=True),
    OutputColumn("lag", is_number=True),
    OutputColumn("members", is_number=True),
)
SHARE_COLUMNS = (*MEMBER_COLUMNS, OutputColumn("epoch", is_number=True))
"""Of the members of a share group."""


class MemberDescription(NamedTuple):
    """One member of a group and the partitions it was given."""

    member_id: str
    host: str
    client_id: str
    assignment: tuple[TopicPartition, ...]
    instance_id: str | None
    epoch: int | None = None
    """Of a member of a consumer or a share group."""
    target: tuple[TopicPartition, ...] | None = None
    """The partitions that it is to have in a consumer group."""


class SharePosition(NamedTuple):
    """Where a share group begins in a partition."""

    offset: int | None
    """None where it has not read yet."""
    lag: int | None
    """Records still to be delivered, where that is known."""


class ConsumerGroupDescription(NamedTuple):
    """One group."""

    name: str
    state: str
    members: tuple[MemberDescription, ...]
    offsets: dict[TopicPartition, int]
    """The committed ones."""
    group_type: str | None = None
    """classic, consumer, share or streams; None where the brokers do not tell types."""
    epoch: int | None = None
    """Of a consumer or a share group."""
    assignment_epoch: int | None = None
    """The epoch of their target assignment."""
    assignor: str | None = None
    starts: Mapping[TopicPartition, SharePosition] = MappingProxyType({})
    """Where a share group begins in each partition."""


def list_groups(connection: ClusterConnection, *, as_json: bool) -> None:
    """A row for each group."""
    with closing(connection.admin()) as admin:
        groups = admin.list_groups()
    rows = [
        (group["group_id"], group["protocol_type"] or None, group.get("group_state"), group.get("group_type") or None)
        for group in groups
    ]
    print_rows(LIST_COLUMNS, sorted(rows, key=lambda row: row[0]), as_json=as_json)


def describe(connection: ClusterConnection, names: Sequence[str], *, members: bool, as_json: bool) -> None:
    """Rows for the partitions, or the members, of each group. Raises ToolError for a group that is not there."""
    with closing(connection.admin()) as admin:
        groups = [find_group(admin, name) for name in dict.fromkeys(names)]
        asked = {where for group in groups for where in _partitions(group)}
        ends = end_offsets(admin, asked)
    if as_json:
        print_json([_object(group, ends) for group in groups])
        return
    for group in groups:
        offset_rows = _offset_rows(group, ends)
        if is_terminal():
            lag = _total_lag(group, offset_rows)
            print(f"Group: {group.name}  {_about(group)}Members: {len(group.members)}  Lag: {lag}")
        if group.group_type == SHARE:
            columns = SHARE_COLUMNS if members else SHARE_OFFSET_COLUMNS
            _print_of_group(columns, _share_member_rows(group) if members else _share_rows(group))
        elif members and group.epoch is not None:
            _print_of_group(CONSUMER_COLUMNS, _consumer_rows(group))
        elif members:
            _print_of_group(MEMBER_COLUMNS, _member_rows(group))
        else:
            _print_of_group(OFFSET_COLUMNS, offset_rows)


def _about(group: ConsumerGroupDescription) -> str:
    """The part of a group's line that depends on its type."""
    if group.epoch is None:
        return f"State: {group.state}  "
    epochs = f"Epoch: {group.epoch}  Assignment epoch: {group.assignment_epoch}"
    return f"Type: {group.group_type}  State: {group.state}  {epochs}  Assignor: {group.assignor}  "


def _print_of_group(columns: Sequence[OutputColumn], rows: Sequence[tuple[Any, ...]]) -> None:
    """Rows that begin with the group's name, which a line above the table has said already."""
    if is_terminal():
        print_rows(columns[1:], [row[1:] for row in rows])
    else:
        print_rows(columns, rows)


def delete(connection: ClusterConnection, names: Sequence[str]) -> None:
    """Delete each group. Raises ToolError with the refusals."""
    refused = []
    with closing(connection.admin()) as admin:
        for name, result in admin.delete_groups(list(dict.fromkeys(names))).items():
            if result == "OK":
                print(f"Deleted group {name}.")
            elif result == kafka.errors.GroupIdNotFoundError.__name__:
                refused.append(str(no_group(name, group_names(admin))))
            else:
                refused.append(f"{name}: {_delete_refusal(result)}")
    if refused:
        raise ToolError("; ".join(refused))


def _delete_refusal(result: str) -> str:
    if result == "NonEmptyGroupError":
        return "the group has members; stop its consumers first (NON_EMPTY_GROUP)"
    kind = getattr(kafka.errors, result, None)
    return result if kind is None else refusal(kind.errno, None)


def find_group(admin: Admin, name: str, *, may_be_absent: bool = False) -> ConsumerGroupDescription:
    """A group with its members and offsets. Raises ToolError when it is not there; or else that is one that is Dead."""
    described = admin.describe_groups([name])[name]
    offsets = committed_offsets(admin, name)
    state = described["group_state"]
    if not described["error"] and state not in ("", "Dead"):
        return ConsumerGroupDescription(name, state, tuple(map(_member, described["members"])), offsets, _CLASSIC)
    newer = _consumer_group(admin, name)
    if newer is not None:
        members = tuple(map(_consumer, newer.members))
        epochs = newer.group_epoch, newer.assignment_epoch
        return ConsumerGroupDescription(
            name, newer.group_state, members, offsets, _CONSUMER, *epochs, newer.assignor_name
        )
    shared = _share_group(admin, name)
    if shared is not None:
        return shared
    # Groups of other protocols are not described, but they are listed.
    listed = {group["group_id"]: group for group in admin.list_groups()}
    if name not in listed and not offsets:
        if may_be_absent:
            return ConsumerGroupDescription(name, "Dead", (), {})
        raise no_group(name, listed)
    found = listed.get(name, {})
    return ConsumerGroupDescription(
        name, found.get("group_state") or "Unknown", (), offsets, found.get("group_type") or None
    )


def _consumer_group(admin: Admin, name: str) -> DescribedGroup | None:
    """A consumer group; None where it is none, where brokers know none, and where its topics may not be described."""
    try:
        request = WireRequest(ConsumerGroupDescribeRequest(group_ids=[name]), *_DESCRIBE_VERSIONS)
        response: ConsumerGroupDescribeResponse = admin.ask(request, admin.coordinator(name))
    except kafka.errors.IncompatibleBrokerVersion:
        return None
    (found,) = response.groups
    return None if found.error_code else found


def _share_group(admin: Admin, name: str) -> ConsumerGroupDescription | None:
    """A share group; None where it is none, where brokers know none, and where its topics may not be described."""
    coordinator = admin.coordinator(name)
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None)
    try:
        response: ShareGroupDescribeResponse = admin.ask(
            WireRequest(ShareGroupDescribeRequest(group_ids=[name]), *_DESCRIBE_SHARE_VERSIONS), coordinator
        )
        (found,) = response.groups
        if found.error_code:
            return None
        offsets: DescribeShareGroupOffsetsResponse = admin.ask(
            WireRequest(DescribeShareGroupOffsetsRequest(groups=[asked]), *_SHARE_OFFSETS_VERSIONS), coordinator
        )
    except kafka.errors.IncompatibleBrokerVersion:
        return None
    (told,) = offsets.groups
    starts = {
        TopicPartition(topic.topic_name, at.partition_index): SharePosition(
            at.start_offset if at.start_offset >= 0 else None, at.lag if at.lag >= 0 else None
        )
        for topic in told.topics
        for at in topic.partitions
        if not at.error_code
    }
    members = tuple(
        MemberDescription(
            each.member_id, each.client_host, each.client_id, _held(each.assignment), None, each.member_epoch
        )
        for each in found.members
    )
    return ConsumerGroupDescription(
        name,
        found.group_state,
        members,
        {},
        SHARE,
        found.group_epoch,
        found.assignment_epoch,
        found.assignor_name,
        starts,
    )


def _held(assignment: Any) -> tuple[TopicPartition, ...]:
    """The partitions of an assignment, in order."""
    topics = assignment.topic_partitions
    return tuple(sorted(TopicPartition(topic.topic_name, n) for topic in topics for n in topic.partitions))


def committed_offsets(admin: Admin, name: str) -> dict[TopicPartition, int]:
    """The offsets that a group has committed; none of one that is not there."""
    return {where: at.offset for where, at in admin.list_group_offsets([name])[name].items() if at.offset >= 0}


def end_offsets(admin: Admin, asked: set[TopicPartition]) -> dict[TopicPartition, int]:
    """Where each partition ends; nothing for those that are gone or have no leader."""
    if not asked:
        return {}
    topics = {topic["name"]: topic for topic in admin.describe_topics(sorted({where.topic for where in asked}))}
    there = {
        TopicPartition(name, partition["partition_index"])
        for name, topic in topics.items()
        for partition in topic["partitions"]
        if partition["leader_id"] >= 0
    }
    known = asked & there
    if not known:
        return {}
    return {
        where: at.offset for where, at in admin.list_partition_offsets(dict.fromkeys(known, OffsetSpec.LATEST)).items()
    }


def _member(member: dict[str, Any]) -> MemberDescription:
    assignment = member["member_assignment"]
    owned = assignment.get("assigned_partitions", ()) if isinstance(assignment, dict) else ()
    return MemberDescription(
        member["member_id"],
        member["client_host"],
        member["client_id"],
        tuple(sorted(TopicPartition(topic["topic"], number) for topic in owned for number in topic["partitions"])),
        member.get("group_instance_id"),
    )


def _consumer(member: Member) -> MemberDescription:
    return MemberDescription(
        member.member_id,
        member.client_host,
        member.client_id,
        _held(member.assignment),
        member.instance_id,
        member.member_epoch,
        _held(member.target_assignment),
    )


def _partitions(group: ConsumerGroupDescription) -> list[TopicPartition]:
    return sorted({*group.offsets, *(where for member in group.members for where in member.assignment)})


def _offset_rows(group: ConsumerGroupDescription, ends: dict[TopicPartition, int]) -> list[tuple[Any, ...]]:
    owners = {where: member for member in group.members for where in member.assignment}
    rows = []
    for where in _partitions(group):
        current, end, owner = group.offsets.get(where), ends.get(where), owners.get(where)
        lag = None if current is None or end is None else max(0, end - current)
        who = (owner.member_id, owner.host, owner.client_id) if owner else (None, None, None)
        rows.append((group.name, where.topic, where.partition, current, end, lag, *who))
    return rows


def _member_rows(group: ConsumerGroupDescription) -> list[tuple[Any, ...]]:
    return [
        (
            group.name,
            member.member_id,
            member.host,
            member.client_id,
            len(member.assignment),
            _names(member.assignment),
        )
        for member in group.members
    ]


def _consumer_rows(group: ConsumerGroupDescription) -> list[tuple[Any, ...]]:
    return [
        (*row, member.instance_id, member.epoch, None if member.target is None else _names(member.target))
        for row, member in zip(_member_rows(group), group.members, strict=True)
    ]


def _share_rows(group: ConsumerGroupDescription) -> list[tuple[Any, ...]]:
    readers = Counter(where for member in group.members for where in member.assignment)
    return [
        (group.name, where.topic, where.partition, *group.starts.get(where, SharePosition(None, None)), readers[where])
        for where in sorted({*group.starts, *readers})
    ]


def _share_member_rows(group: ConsumerGroupDescription) -> list[tuple[Any, ...]]:
    return [(*row, member.epoch) for row, member in zip(_member_rows(group), group.members, strict=True)]


def _total_lag(group: ConsumerGroupDescription, rows: Sequence[tuple[Any, ...]]) -> int:
    if group.group_type == SHARE:
        return sum(start.lag or 0 for start in group.starts.values())
    return sum(row[5] or 0 for row in rows)


def _names(partitions: Sequence[TopicPartition]) -> list[str]:
    return [f"{where.topic}-{where.partition}" for where in partitions]


def _object(group: ConsumerGroupDescription, ends: dict[TopicPartition, int]) -> dict[str, Any]:
    partitions = _offset_rows(group, ends)
    return {
        "group": group.name,
        "state": group.state,
        "type": group.group_type,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor": group.assignor,
        "total_lag": _total_lag(group, partitions),
        "partitions": [as_object(SHARE_OFFSET_COLUMNS, row) for row in _share_rows(group)]
        if group.group_type == SHARE
        else [as_object(OFFSET_COLUMNS, row) for row in partitions],
        "members": [as_object(CONSUMER_COLUMNS, row) for row in _consumer_rows(group)],
    }
