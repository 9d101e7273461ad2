"""Rows of the view from brokers' responses.

Lag is the high watermark less the committed offset, and never below 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...base.partitions import TopicPartition
from ..group_lag import group_partition_row, is_lost, lag_of, owners_of
from ..pace import Pace
from ..rows import (
    GroupPartitionRow,
    GroupRow,
    GroupRows,
    MemberRow,
    PartitionRow,
    ProducerRow,
    ReaderRow,
    TopicRow,
    TrafficRates,
)
from .group_requests import GroupSeen
from .record_log import FetchedLog
from .topic_requests import RetentionConfig, TopicWithPartitions


class PartitionOffsets(NamedTuple):
    """The start and end (high watermark) of a partition, and its largest timestamp."""

    start: int | None
    end: int | None
    newest_ms: int | None
    """None before it was asked for; -1 if the partition has none."""


NO_ENDS = PartitionOffsets(None, None, None)


def rates(
    before: Mapping[TopicPartition, PartitionOffsets], now: Mapping[TopicPartition, PartitionOffsets], seconds: float
) -> dict[str, float]:
    """Records a second by topic; a partition that was made anew, or was not known before, counts as nothing."""
    grown: Counter[str] = Counter()
    for key, ends in now.items():
        old = before.get(key, NO_ENDS).end
        if ends.end is not None and old is not None and ends.end > old:
            grown[key.topic] += ends.end - old
    return {topic: count / seconds for topic, count in grown.items()}


def topic_row(
    topic: TopicWithPartitions,
    ends: Mapping[TopicPartition, PartitionOffsets],
    sizes: Mapping[TopicPartition, int],
    kept: RetentionConfig | None,
    rates: TrafficRates,
    max_lag: int | None,
) -> TopicRow:
    keys = [TopicPartition(topic.name, number) for number in topic.partitions]
    known = [ends[key] for key in keys if key in ends]
    told = [sizes[key] for key in keys if key in sizes]
    newest = [each.newest_ms for each in known if each.newest_ms is not None and each.newest_ms >= 0]
    return TopicRow(
        topic.name,
        topic.is_internal,
        len(topic.partitions),
        max((len(each.replicas) for each in topic.partitions.values()), default=0),
        sum(len(each.isr) < len(each.replicas) for each in topic.partitions.values()),
        sum(each.leader is None for each in topic.partitions.values()),
        len(known),
        len(known),
        sum(told) if told else None,
        sum((each.end or 0) - (each.start or 0) for each in known) if known else None,
        rates,
        max(newest, default=None),
        None if kept is None else kept.cleanup_policy,
        None if kept is None else kept.retention_ms,
        None if kept is None else kept.retention_bytes,
        max_lag,
    )


def partition_rows(
    topic: TopicWithPartitions,
    logs: Mapping[int, FetchedLog],
    ends: Mapping[TopicPartition, PartitionOffsets],
    sizes: Mapping[TopicPartition, int],
    producers: Iterable[ProducerRow],
) -> list[PartitionRow]:
    open_transactions = Counter(row.partition for row in producers if row.transaction_start is not None)
    rows = []
    for number, state in topic.partitions.items():
        known = topic.name, number, state.leader, state.replicas, state.isr
        log = logs.get(number)
        if log is None:
            rows.append(PartitionRow(*known))
        else:
            key = TopicPartition(topic.name, number)
            newest_ms = ends.get(key, NO_ENDS).newest_ms
            about = None, sizes.get(key), None, newest_ms, open_transactions[number]
            rows.append(PartitionRow(*known, log.start, log.end, log.last_stable, *about))
    return rows


async def group_rows(
    groups: Iterable[GroupSeen], ends: Mapping[TopicPartition, PartitionOffsets], pace: Pace
) -> GroupRows:
    max_lags: dict[str, int] = {}
    rows = []
    for seen in groups:
        rows.append(_group_row(seen, ends, max_lags))
        if pace.is_due(1 + len(seen.committed)):
            await pace.rest()
    return GroupRows(rows, max_lags)


def _group_row(seen: GroupSeen, ends: Mapping[TopicPartition, PartitionOffsets], max_lags: dict[str, int]) -> GroupRow:
    lags = []
    unknown = lost = read = 0
    for key, committed in seen.committed.items():
        found = ends.get(key, NO_ENDS)
        lag = lag_of(committed.offset, found.end)
        if lag is None:
            unknown += 1
            continue
        lags.append(lag)
        read += committed.offset
        lost += is_lost(committed.offset, found.start)
        max_lags[key[0]] = max(max_lags.get(key[0], 0), lag)
    described = seen.described
    return GroupRow(
        seen.listed.group_id,
        seen.listed.kind.lower(),
        described.state or seen.listed.state,
        seen.listed.protocol_type,
        described.protocol,
        described.epoch,
        described.assignment_epoch,
        None if described.members is None else len(described.members),
        len({topic for topic, _ in seen.committed}),
        len(seen.committed),
        sum(lags) if lags else None,
        max(lags, default=None),
        unknown,
        lost,
        read if lags else None,
    )


async def reader_rows(
    groups: Iterable[GroupSeen], topic: str, ends: Mapping[TopicPartition, PartitionOffsets], pace: Pace
) -> tuple[list[ReaderRow], int | None]:
    """The groups that have committed offsets of a topic, and the largest lag of one of them in one partition."""
    rows = []
    largest: int | None = None
    for seen in groups:
        committed = {key: each for key, each in seen.committed.items() if key[0] == topic}
        if committed:
            row = _group_row(seen._replace(committed=committed), ends, {})
            rows.append(ReaderRow(row.group_id, row.state, row.members, row.partitions, row.lag))
            if row.max_lag is not None:
                largest = max(largest or 0, row.max_lag)
        if pace.is_due(1 + len(seen.committed)):
            await pace.rest()
    return rows, largest


def group_partition_rows(
    seen: GroupSeen, members: Sequence[MemberRow], ends: Mapping[TopicPartition, PartitionOffsets]
) -> list[GroupPartitionRow]:
    """The partitions with a commit of the group, and those that members have without one, by topic and number."""
    owners = owners_of(members)
    rows = []
    for key in sorted({*seen.committed, *owners}):
        found, committed = ends.get(key, NO_ENDS), seen.committed.get(key)
        offset, metadata = (None, "") if committed is None else (committed.offset, committed.metadata)
        rows.append(group_partition_row(key, offset, found.start, found.end, owners.get(key), metadata=metadata))
    return rows
