"""Time lag of groups: the timestamp of the next record to be read, fetched from its leader.

It is no guess from samples.

One request to each leader, with all of its partitions. Where the broker leaves one out, because the response would be too large,
or sends less than a whole batch, its lag in time is not known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ...base.errors import KafkaError
from ...base.partitions import TopicPartition
from ...base.seams import Workers
from ...wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ..record_log import first_timestamp
from ..rows import GroupPartitionRow
from .cluster_client import READING, BrokerClients, of_each
from .record_log import NEWEST_WITH_NAMES, fetched_batches
from .topic_requests import Failed

_MOST = 100
"""Of so many partitions of a group it is looked up: those with the largest lag."""
_PARTITION_BYTES = 64 * 1024
_MAX_BYTES = 4 << 20


async def lag_times(
    client: BrokerClients,
    workers: Workers,
    leaders: Mapping[int, Sequence[TopicPartition]],
    rows: Sequence[GroupPartitionRow],
    now_ms: int,
    failed: Failed,
) -> list[GroupPartitionRow]:
    """The rows with their lag in time."""
    behind = sorted((row for row in rows if row.lag), key=lambda row: -(row.lag or 0))[:_MOST]
    wanted = {TopicPartition(row.topic, row.number): max(row.committed or 0, row.start or 0) for row in behind}
    found: dict[TopicPartition, int] = {}

    async def ask(leader: int) -> None:
        asked = [key for key in leaders[leader] if key in wanted]
        if not asked:
            return
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_MAX_BYTES, topics=_topics(asked, wanted))
        response: FetchResponse = await client.ask(leader, request, NEWEST_WITH_NAMES, READING)
        found.update(await workers.run(_timestamps, response, wanted))

    await of_each(leaders, ask, failed)
    return [
        row
        if (time := found.get(TopicPartition(row.topic, row.number))) is None
        else dataclasses.replace(row, lag_ms=max(now_ms - time, 0))
        for row in rows
    ]


def _topics(asked: Sequence[TopicPartition], wanted: Mapping[TopicPartition, int]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for key in asked:
        topic = topics.setdefault(key.topic, FetchTopic(topic=key.topic, partitions=[]))
        topic.partitions.append(
            FetchPartition(partition=key.partition, fetch_offset=wanted[key], partition_max_bytes=_PARTITION_BYTES)
        )
    return list(topics.values())


def _timestamps(response: FetchResponse, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    found = {}
    for topic in response.responses:
        for each in topic.partitions:
            key = TopicPartition(topic.topic, each.partition_index)
            if not each.records or key not in wanted:
                continue
            try:
                timestamp = first_timestamp(fetched_batches(each.records), wanted[key])
            except KafkaError:  # a damaged batch
                continue
            if timestamp is not None:
                found[key] = timestamp
    return found
