"""Topics and partitions as rows: cluster metadata joined with the state of the replicas on this broker.

Kafka's own names hold for offsets: a log starts at ``start``, consumers read up to ``high_watermark``.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Protocol

from ...base.partitions import NO_LEADER
from ...handlers.config_entries import topic_entries
from ...handlers.services import Services
from ...log.partition_log import PartitionLog
from ...log.segment import LogSegment
from ...metadata.image import TopicImage
from ...replication.partition import Partition
from ..pace import Pace
from ..rows import MOST_PRODUCERS, ConfigRow, PartitionRow, ProducerRow, SegmentRow, TopicRow
from .traffic import Traffic


class Replicas(Protocol):
    """The replicas on this broker, by topic and partition number."""

    def get(self, key: tuple[str, int], /) -> Partition | None: ...


class ReplicasHere:
    """The ``Replicas`` of a running broker, as they are now."""

    def __init__(self, services: Services) -> None:
        self._replicas = services.replicas
        self.of = services.replicas.by_number
        """Returns the replicas of a topic on this broker, by number."""

    def get(self, key: tuple[str, int], /) -> Partition | None:
        return self._replicas.find(*key)


_SEGMENTS_PER_UNIT = 16
_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")


async def topic_row(
    topic: TopicImage, replicas: ReplicasHere, traffic: Traffic, max_lags: Mapping[str, int], pace: Pace
) -> TopicRow:
    """The row of one topic. There may be ten thousand to make: what is here is made with few calls."""
    name = topic.name
    most_replicas = under_replicated = offline = here = led = size = records = newest = 0
    settings = None
    replicas_here = replicas.of(name)
    for number, state in topic.partitions.items():
        count, units = len(state.replicas), 1
        if count > most_replicas:
            most_replicas = count
        if len(state.isr) < count:
            under_replicated += 1
        if state.leader == NO_LEADER:
            offline += 1
        partition = replicas_here.get(number)
        if partition is not None:
            log = partition.log
            segments = log.segments
            settings = log.settings
            here += 1
            for segment in segments:
                size += segment.file.size
            if segments.active is not None:
                newest = max(newest, segments.active.indexes.max_timestamp + 1)
            units += len(segments) // _SEGMENTS_PER_UNIT
            if partition.leader is not None:
                led += 1
                records += log.high_watermark - log.log_start_offset
        if pace.is_due(units):
            await pace.rest()
    return TopicRow(
        name,
        name in _INTERNAL,
        len(topic.partitions),
        most_replicas,
        under_replicated,
        offline,
        here,
        led,
        size,
        records,
        traffic.of(name),
        newest - 1 if newest else None,
        None if settings is None else ",".join(settings.cleanup_policy),
        None if settings is None else settings.retention_ms,
        None if settings is None else settings.retention_bytes,
        max_lags.get(name),
    )


def newest_ms(log: PartitionLog) -> int | None:
    """The largest timestamp in the newest segment; None where there is none, or a file would have to be read."""
    active = log.segments.active
    return None if active is None else _newest_of(active)


def _newest_of(segment: LogSegment) -> int | None:
    timestamp = segment.indexes.max_timestamp
    return timestamp if timestamp >= 0 else None


async def partition_rows(topic: TopicImage, replicas: Replicas, pace: Pace) -> list[PartitionRow]:
    """The partitions of a topic."""
    rows = []
    for number, state in topic.partitions.items():
        leader = None if state.leader == NO_LEADER else state.leader
        known = topic.name, number, leader, tuple(state.replicas), tuple(state.isr)
        partition = replicas.get((topic.name, number))
        if partition is None:
            rows.append(PartitionRow(*known))
        else:
            log = partition.log
            rows.append(
                PartitionRow(
                    *known,
                    log.log_start_offset,
                    log.high_watermark,
                    log.last_stable_offset,
                    log.log_end_offset,
                    log.size,
                    len(log.segments),
                    newest_ms(log),
                    len(log.producer_state.ongoing),
                )
            )
        if pace.is_due(2):
            await pace.rest()
    return rows


async def segment_rows(partition: Partition, pace: Pace) -> list[SegmentRow]:
    """The segments of a replica on this broker, oldest first."""
    rows = []
    segments = partition.log.segments
    for segment in [*segments]:
        is_active = segment is segments.active
        rows.append(
            SegmentRow(
                segment.base_offset,
                segment.next_offset,
                segment.size,
                segment.created_ms,
                _newest_of(segment),
                is_active,
            )
        )
        if pace.is_due():
            await pace.rest()
    return rows


async def producer_rows(topic: TopicImage, replicas: Replicas, pace: Pace) -> tuple[list[ProducerRow], int]:
    """The producers that wrote last, and how many there are in all. One is counted in each partition it writes to."""
    rows: list[ProducerRow] = []
    count = 0
    for number in topic.partitions:
        partition = replicas.get((topic.name, number))
        if partition is None:
            continue
        for state in partition.log.active_producers():
            count += 1
            start = state.current_txn_first_offset
            rows.append(
                ProducerRow(
                    number,
                    state.producer_id,
                    state.producer_epoch,
                    state.last_sequence,
                    state.last_timestamp,
                    start if start >= 0 else None,
                )
            )
            if len(rows) > 2 * MOST_PRODUCERS:
                rows = _newest(rows)
            if pace.is_due():
                await pace.rest()
    return _newest(rows), count


def _newest(rows: list[ProducerRow]) -> list[ProducerRow]:
    """Those with an open transaction first, then by when they wrote."""
    return heapq.nlargest(MOST_PRODUCERS, rows, key=lambda row: (row.transaction_start is not None, row.last_ms))


def config_rows(services: Services, topic: str) -> list[ConfigRow]:
    """The topic's settings, with where each comes from; without what is secret."""
    entries = topic_entries(services.config, services.metadata.image.topic_config(topic))
    return [
        ConfigRow(entry.name, "" if entry.is_sensitive else entry.value or "", entry.source.name, entry.documentation)
        for entry in entries
    ]
