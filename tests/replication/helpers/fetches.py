"""Fetches of partition 0 of "t" as the engine reads them, without a session."""

from __future__ import annotations

from typing import Any

from ottla.replication.delayed_fetch import DelayedFetch, FetchedPartition
from ottla.replication.fetching import FetchReads, FollowerId
from ottla.replication.read_replica import ConsumerRack
from ottla.wire.messages.fetch import FetchPartition, PartitionData

from .replicas import TOPIC_ID, Replicas


def ask(news: DelayedFetch, offset: int = 0, **fields: Any) -> FetchedPartition:
    """Have partition 0 of "t" fetched from ``offset`` on."""
    fields = {"partition_max_bytes": 1 << 20, "current_leader_epoch": -1, **fields}
    return FetchedPartition("t", TOPIC_ID, FetchPartition(partition=0, fetch_offset=offset, **fields), news)


def begin(
    world: Replicas,
    news: DelayedFetch,
    broker_id: int = -1,
    *,
    broker_epoch: int = -1,
    min_bytes: int = 1,
    by_id: bool = False,
    or_follower: bool = False,
    rack: ConsumerRack | None = None,
) -> FetchReads:
    """A fetch of what ``news`` has, of a follower, or of a consumer with -1."""
    follower = FollowerId(broker_id, broker_epoch) if broker_id >= 0 else None
    news.begin(None, list(news.changed))
    return FetchReads(world.manager, world.metadata, news, by_id, follower, min_bytes, 1 << 25, or_follower, rack)


def reads(
    world: Replicas, broker_id: int = -1, offset: int = 0, *, isolation: int = 0, asked: Any = None, **fields: Any
) -> FetchReads:
    """A fetch of one partition from ``offset`` on; ``asked`` are other fields of its request."""
    news = DelayedFetch(is_followers=broker_id >= 0, read_committed=isolation == 1)
    ask(news, offset, **(asked or {}))
    return begin(world, news, broker_id, **fields)


def result_of(reading: FetchReads) -> PartitionData:
    """The answer of a fetch of one partition."""
    (result,) = reading.results.values()
    return result


class CountedBytes:
    """A ``FetchWatch`` of a request that waits for so many bytes."""

    reads_committed = False
    uncounted = 0

    def __init__(self, missing: int) -> None:
        self.missing = missing

    @property
    def owner(self) -> object:
        return self

    @property
    def is_waiting(self) -> bool:
        return self.missing > 0

    def on_change(self, visible: int) -> bool:
        self.missing -= visible
        return self.is_waiting

    def on_end(self) -> None:
        self.missing = 0
