"""Consumer groups as rows, with their lag.

Lag is the high watermark less the committed offset, and never below 0, as Kafka's own tools have it; it is known of the
partitions that this broker leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...base.partitions import TopicPartition
from ...broker.consumer_lag import commits, lag_behind
from ...group_coordinator.classic_group import ClassicGroup
from ...group_coordinator.committed_offsets import CommittedOffsets
from ...group_coordinator.consumer_group import ConsumerGroup
from ...group_coordinator.consumer_group_member import ConsumerGroupMember
from ...group_coordinator.group import Group
from ...group_coordinator.shard import GroupAndOffsets
from ...group_coordinator.share_group import ShareGroup
from ...replication.partition import Partition
from ..assignments import assigned
from ..consumer_members import consumer_progress, in_order
from ..group_lag import group_partition_row, owners_of
from ..pace import Pace
from ..rows import ExpressionRow, GroupPartitionRow, GroupRow, GroupRows, MemberRow, ReaderRow
from .topics import Replicas, ReplicasHere

AssignorOf = Callable[[Group], str]
"""The name of a group's assignor."""


async def read_groups(
    groups: Iterable[GroupAndOffsets], replicas: ReplicasHere, assignor_of: AssignorOf, pace: Pace
) -> GroupRows:
    max_lags: dict[str, int] = {}
    rows = [await group_row(group, replicas, max_lags, assignor_of, pace) for group in groups]
    return GroupRows(rows, max_lags)


async def group_row(
    found: GroupAndOffsets, replicas: ReplicasHere, max_lags: dict[str, int], assignor_of: AssignorOf, pace: Pace
) -> GroupRow:
    """A group's row; ``max_lags`` is raised where this group's is larger. All groups together may have very many commits."""
    group, offsets = found
    partitions = known = lost = total = largest = read = 0
    for topic, committed in list(offsets.items()):
        largest_here = -1
        replicas_here = replicas.of(topic)
        for number, each in list(committed.items()):
            partitions += 1
            partition = replicas_here.get(number)
            if partition is not None and partition.leader is not None:
                log, offset = partition.log, each.value.offset
                known += 1
                read += offset
                lag = log.high_watermark - offset
                if lag > 0:
                    total += lag
                if lag > largest_here:
                    largest_here = max(lag, 0)
                if offset < log.log_start_offset:
                    lost += 1
            if pace.is_due():
                await pace.rest()
        if largest_here >= max_lags.get(topic, 0):
            max_lags[topic] = largest_here
        largest = max(largest, largest_here)
    if pace.is_due():  # a group without commits is looked at, too
        await pace.rest()
    return GroupRow(
        group.group_id,
        group.type_name,
        group.state_name,
        group.protocol_type,
        assignor_of(group),
        group.epoch,
        group.target.epoch if isinstance(group, ConsumerGroup | ShareGroup) else None,
        group.member_count,
        len(offsets),
        partitions,
        total if known else None,
        largest if known else None,
        partitions - known,
        lost,
        read if known else None,
    )


async def reader_rows(
    groups: Iterable[GroupAndOffsets], topic: str, replicas: Replicas, pace: Pace
) -> tuple[list[ReaderRow], int | None]:
    """The groups that have committed offsets of a topic, and the largest lag of one of them in one partition."""
    rows = []
    largest: int | None = None
    for group, offsets in groups:
        committed = offsets.get(topic)
        if committed is not None:
            total: int | None = None
            for number, each in list(committed.items()):
                partition = replicas.get((topic, number))
                if partition is not None and partition.is_leader:
                    lag = lag_behind(partition, each.value.offset)
                    total = (total or 0) + lag
                    largest = max(largest or 0, lag)
                if pace.is_due():
                    await pace.rest()
            rows.append(ReaderRow(group.group_id, group.state_name, group.member_count, len(committed), total))
        if pace.is_due():
            await pace.rest()
    return rows, largest


async def member_rows(group: Group, topic_name: Callable[[bytes], str | None], pace: Pace) -> list[MemberRow]:
    """The members, with the partitions that they have now; ``topic_name`` gives that of a topic's id."""
    rows = []
    if isinstance(group, ClassicGroup):
        for member in list(group.live.members.values()):
            given = assigned(group.assignment_of(member.member_id))
            rows.append(
                MemberRow(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.session_timeout_ms,
                    given,
                )
            )
            if pace.is_due(5):
                await pace.rest()
    elif isinstance(group, ConsumerGroup):
        for each in group.members.values():
            row = _consumer_row(group, each, topic_name)
            rows.append(row)
            if pace.is_due(5 + sum(len(numbers) for _, numbers in row.assigned or ()) // 5):
                await pace.rest()
    elif isinstance(group, ShareGroup):
        for one in group.members.values():
            held = {name: set(some) for key, some in one.assigned.items() if (name := topic_name(key)) is not None}
            rows.append(MemberRow(one.member_id, None, one.client_id, one.client_host, None, in_order(held)))
            if pace.is_due(5 + sum(map(len, held.values())) // 5):
                await pace.rest()
    return rows


def _consumer_row(
    group: ConsumerGroup, member: ConsumerGroupMember, topic_name: Callable[[bytes], str | None]
) -> MemberRow:
    held: dict[str, set[int]] = {}
    for topic_id, number in member.held():
        name = topic_name(topic_id)
        if name is not None:
            held.setdefault(name, set()).add(number)
    target = {
        name: numbers
        for topic_id, numbers in group.target.of(member.member_id).items()
        if (name := topic_name(topic_id)) is not None
    }
    return MemberRow(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        None if member.classic is None else member.classic.session_timeout_ms,
        in_order(held),
        consumer_progress(
            member.epoch,
            group.target.epoch,
            held,
            target,
            member.topic_names,
            member.expression,
            is_classic=member.classic is not None,
        ),
    )


async def expression_rows(group: Group, pace: Pace) -> list[ExpressionRow]:
    """The regular expressions of a consumer group's members, with the topics that each stands for."""
    if not isinstance(group, ConsumerGroup):
        return []
    resolved = group.expressions.newest()
    rows = []
    for expression, members in sorted(group.expression_subscribers.newest().items()):
        found = resolved.get(expression)
        topics = None if found is None else tuple(sorted(found.topics))
        rows.append(ExpressionRow(expression, members, topics, None if found is None else found.timestamp_ms))
        if pace.is_due(1 + len(topics or ()) // 8):
            await pace.rest()
    return rows


def group_partition_rows(
    offsets: CommittedOffsets, replicas: Replicas, members: Iterable[MemberRow]
) -> Iterator[tuple[GroupPartitionRow, Partition | None]]:
    """The partitions with a commit of the group, then those that members have without one; each with its replica led here."""
    owners = owners_of(members)
    for topic, number, committed in commits(offsets):
        key, value = TopicPartition(topic, number), committed.value
        partition = replicas.get(key)
        start, end = _ends(partition)
        owner = owners.pop(key, None)
        row = group_partition_row(key, value.offset, start, end, owner, value.commit_timestamp, value.metadata)
        yield row, None if end is None else partition
    for key, owner in owners.items():
        yield group_partition_row(key, None, *_ends(replicas.get(key)), owner), None


def _ends(partition: Partition | None) -> tuple[int | None, int | None]:
    if partition is None or not partition.is_leader:
        return None, None
    return partition.log.log_start_offset, partition.log.high_watermark
