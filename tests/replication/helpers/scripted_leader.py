"""A leader controlled by a test: it reads the requests of a ``Fetcher`` one by one, and sends the responses of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from ottla.replication.fetcher import Fetcher
from ottla.replication.fetchers import Fetchers
from ottla.replication.inter_broker_protocol import LATEST
from ottla.replication.partition import Partition
from ottla.replication.quotas import Quota
from ottla.replication.settings import ReplicationSettings
from ottla.wire.headers import RequestHeader
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

from .followers import Replicas, follower_world
from .replicas import TOPIC_ID
from .scripted_peer import Peer, World, opened

LEADER = 2
SESSION = 33
BROKER_EPOCH = 77
Asked = dict[int, FetchPartition]


class Leader:
    """The other end of the fetcher's connection; ``asked`` are the partitions of the last Fetch by their numbers."""

    def __init__(self, world: World, replicas: Replicas) -> None:
        self.world = world
        self.replicas = replicas
        self.peer: Peer | None = None
        self.header: RequestHeader
        self.request: Any
        self.asked: Asked = {}

    async def next(self) -> Any:
        """The next request."""
        if self.peer is None:
            self.peer = await self.world.accept()
        self.header, self.request = await self.peer.request()
        if isinstance(self.request, FetchRequest):
            self.asked = {asked.partition: asked for topic in self.request.topics for asked in topic.partitions}
        return self.request

    async def fetch(self) -> Asked:
        """The partitions in the next request, a Fetch."""
        assert isinstance(await self.next(), FetchRequest)
        return self.asked

    @property
    def forgotten(self) -> list[int]:
        return [number for topic in self.request.forgotten_topics_data for number in topic.partitions]

    async def answer(self, *partitions: PartitionData, session_id: int = SESSION, error: int = 0) -> None:
        assert self.peer is not None
        names = {"topic": "t", "topic_id": TOPIC_ID}
        topics = [FetchableTopicResponse(**names, partitions=list(partitions))] if partitions else []
        await self.peer.answer(self.header, FetchResponse(error_code=error, session_id=session_id, responses=topics))

    async def answer_offset(self, offset: int, error: int = 0) -> None:
        """Respond to ListOffsets."""
        assert self.peer is not None
        (topic,) = self.request.topics
        (asked,) = topic.partitions
        data = ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset, error_code=error)
        response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[data])])
        await self.peer.answer(self.header, response)

    def hang_up(self) -> None:
        assert self.peer is not None
        self.peer.connection.cut()
        self.peer = None

    def partition(self, number: int = 0, epoch: int = 5, leader: int = LEADER) -> Partition:
        """A partition that follows the leader in this epoch, after a request of the controller."""
        return self.replicas.lead(leader, epoch, number)


def data(number: int = 0, records: bytes = b"", **fields: Any) -> PartitionData:
    fields = {"error_code": 0, "high_watermark": 0, "log_start_offset": 0, **fields}
    return PartitionData(partition_index=number, records=records, **fields)


def settings(**values: Any) -> ReplicationSettings:
    return ReplicationSettings(values)


@asynccontextmanager
async def leader(
    fetchers: bool = False,
    backoff_ms: int = 1_000,
    quota: Quota | None = None,
    protocol: str = LATEST,
    **log_settings: Any,
) -> AsyncIterator[tuple[Leader, Any]]:
    """A leader with a running fetcher, or with the fetchers of a broker."""
    replicas = await follower_world(**log_settings)
    async with opened() as world, trio.open_nursery() as nursery:
        replication = settings(replica_fetch_backoff_ms=backoff_ms, inter_broker_protocol_version=protocol)
        arguments = 1, lambda broker_id: world.client, replication, lambda: BROKER_EPOCH, quota or Quota(11, 1)
        follower: Any = Fetchers(*arguments) if fetchers else Fetcher(LEADER, *arguments)
        nursery.start_soon(follower.run)
        yield Leader(world, replicas), follower
        nursery.cancel_scope.cancel()
