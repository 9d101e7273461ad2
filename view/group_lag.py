"""Consumer lag of a group, partition by partition, for rows of the broker's own view and of a remote one.

Lag is the high watermark less the committed offset, and never below 0, as Kafka's own tools have it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ..base.partitions import TopicPartition
from ..base.wording import listed
from .rows import GroupPartitionRow, GroupRow, MemberRow

_MOST_OWNERS = 3


def lag_of(committed: int | None, end: int | None) -> int | None:
    """Offsets from a commit to the high watermark; None where either is not known."""
    return None if committed is None or end is None else max(end - committed, 0)


def is_lost(committed: int | None, start: int | None) -> bool:
    """Whether the next record to be read has been deleted already."""
    return committed is not None and start is not None and committed < start


def owners_of(members: Iterable[MemberRow]) -> dict[TopicPartition, str]:
    """The member ids to which each partition is assigned, in their order: one, but in share groups."""
    owners: dict[TopicPartition, list[str]] = {}
    for member in members:
        for topic, numbers in member.assigned or ():
            for number in numbers:
                owners.setdefault(TopicPartition(topic, number), []).append(member.member_id)
    return {partition: listed(sorted(member_ids), _MOST_OWNERS) for partition, member_ids in owners.items()}


def group_partition_row(
    key: TopicPartition,
    committed: int | None,
    start: int | None,
    end: int | None,
    owner: str | None,
    committed_ms: int | None = None,
    metadata: str = "",
) -> GroupPartitionRow:
    """The row of one partition. Its lag in time is known only where it is 0; else it has to be read from the log."""
    lag = lag_of(committed, end)
    since = 0 if lag == 0 else None
    return GroupPartitionRow(
        *key, committed, start, end, lag, since, is_lost(committed, start), committed_ms, metadata, owner
    )


def with_ends(row: GroupPartitionRow, start: int | None, end: int | None) -> GroupPartitionRow:
    """The row with the ends of its partition, which were not known before."""
    lag = lag_of(row.committed, end)
    since = 0 if lag == 0 else None
    return dataclasses.replace(row, start=start, end=end, lag=lag, lag_ms=since, is_lost=is_lost(row.committed, start))


def with_sums(row: GroupRow, partitions: Sequence[GroupPartitionRow]) -> GroupRow:
    """The group with the sums over all of its partitions."""
    lags = [each.lag for each in partitions if each.lag is not None]
    return dataclasses.replace(
        row,
        lag=sum(lags) if lags else None,
        max_lag=max(lags, default=None),
        unknown=sum(each.committed is not None and each.end is None for each in partitions),
        lost=sum(each.is_lost for each in partitions),
        committed=sum(each.committed or 0 for each in partitions if each.lag is not None) if lags else None,
    )
