"""Where partitions begin and end, and where in them a time is, asked of their leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from .asking import Kafka, Leader, check

Key = tuple[str, int]
"""A topic and a partition."""
_LATEST, _EARLIEST = -1, -2


class Bounds(NamedTuple):
    """The first offset of a partition, and the one after the last record that consumers may read."""

    start: int
    end: int


async def bounds(kafka: Kafka, keys: Iterable[Key]) -> dict[Key, Bounds]:
    """Raises KafkaError."""
    keys = list(keys)
    starts = await _offsets(kafka, dict.fromkeys(keys, _EARLIEST))
    ends = await _offsets(kafka, dict.fromkeys(keys, _LATEST))
    return {key: Bounds(starts[key], ends[key]) for key in keys}


async def at_time(kafka: Kafka, keys: Iterable[Key], time_ms: int) -> dict[Key, int]:
    """The offset of the first record as new as that; -1 where there is none. Raises KafkaError."""
    return await _offsets(kafka, dict.fromkeys(keys, max(time_ms, 0)))


async def _offsets(kafka: Kafka, wanted: Mapping[Key, int]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for (topic, number), timestamp in wanted.items():
        partition = ListOffsetsPartition(partition_index=number, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
        response = await kafka.ask(request, Leader(topic, number))
        result = response.topics[0].partitions[0]
        check(result.error_code)
        found[topic, number] = result.offset
    return found
