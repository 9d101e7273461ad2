"""Start and end offsets of partitions, and offsets by timestamp, requested from their leaders.

A leader gets one request for all that it leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..base.partitions import TopicPartition
from ..wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from .kafka_requests import KafkaRequests, LeaderTarget, check

_LATEST, _EARLIEST = -1, -2
_AT_ONCE = 500
"""So many partitions a request is about, for a broker answers it without a pause."""


class Bounds(NamedTuple):
    """The first offset of a partition, and the one after the last record that consumers may read."""

    start: int
    end: int


async def bounds(kafka: KafkaRequests, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
    """In the same order. Raises KafkaError."""
    partitions = list(partitions)
    starts = await _offsets(kafka, partitions, _EARLIEST)
    ends = await _offsets(kafka, partitions, _LATEST)
    return {each: Bounds(starts[each], ends[each]) for each in partitions}


async def at_time(
    kafka: KafkaRequests, partitions: Iterable[TopicPartition], time_ms: int
) -> Mapping[TopicPartition, int]:
    """The offset of the first record as new as that; -1 where there is none. Raises KafkaError."""
    return await _offsets(kafka, list(partitions), max(time_ms, 0))


async def _offsets(
    kafka: KafkaRequests, partitions: Sequence[TopicPartition], timestamp: int
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for led in await kafka.by_leader(partitions):
        for start in range(0, len(led), _AT_ONCE):
            part = led[start : start + _AT_ONCE]
            response = await kafka.ask(_request(part, timestamp), LeaderTarget(*part[0]))
            for topic in response.topics:
                for result in topic.partitions:
                    check(result.error_code)
                    found[TopicPartition(topic.name, result.partition_index)] = result.offset
    return found


def _request(partitions: Iterable[TopicPartition], timestamp: int) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for name, number in partitions:
        topic = topics.setdefault(name, ListOffsetsTopic(name=name, partitions=[]))
        topic.partitions.append(ListOffsetsPartition(partition_index=number, timestamp=timestamp))
    return ListOffsetsRequest(replica_id=-1, topics=list(topics.values()))
