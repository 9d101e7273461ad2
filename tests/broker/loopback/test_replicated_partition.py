"""What clients are answered of a partition with several replicas: who leads, which end it has, when records are deleted.

Broker 2 leads a partition whose follower, broker 9, is played by the test: it fetches from a running broker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.log.settings import LogSettings
from ottla.metadata.types import PartitionRegistration
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.wire.messages.fetch import LeaderIdAndEpoch as FetchHint
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import LeaderIdAndEpoch as ProduceHint
from ottla.wire.records import iter_batches

from ...helpers.memory_cluster import MemoryCluster, running
from ...helpers.told import reached_at, tell

LEADER, FOLLOWER, THIRD = 1, 9, 10
LATEST = -1


class World:
    """One running broker, and what a follower and a client ask it."""

    def __init__(self, cluster: MemoryCluster, topic_id: bytes) -> None:
        self.cluster = cluster
        self.topic_id = topic_id
        self.partition = cluster.services(LEADER).replicas.partition("t", 0)
        self.follower = BrokerClient(cluster.network, f"broker{LEADER}", 9092, "broker-9-fetcher")

    def lead(self, epoch: int, leader: int = LEADER, isr: tuple[int, ...] = (LEADER, FOLLOWER)) -> None:
        """The controller has had an election."""
        registration = PartitionRegistration(leader, epoch, 100 + epoch, isr, (LEADER, FOLLOWER))
        replicas = self.cluster.services(LEADER).replicas
        replicas.apply("t", self.topic_id, 0, registration, LogSettings())

    def join(self) -> None:
        """The follower's broker is in the cluster, as far as the leader knows."""
        brokers = [reached_at("nine", broker_id) for broker_id in (LEADER, FOLLOWER)]
        tell(self.cluster.services(LEADER).metadata, brokers=brokers, controller_id=LEADER)

    async def replicate(self, offset: int, *, version: int = 17, **fields: Any) -> PartitionData:
        """The follower fetches, without waiting."""
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **fields)
        request = FetchRequest(
            replica_id=-1 if version >= 15 else FOLLOWER,
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=5) if version >= 15 else None,
            max_wait_ms=0,
            min_bytes=1,
            topics=[FetchTopic(topic="t", topic_id=self.topic_id, partitions=[asked])],
        )
        response: FetchResponse = await self.follower.send(request, version)
        (topic,) = response.responses
        (part,) = topic.partitions
        return part

    async def end(self, version: int = 9, replica_id: int = -1, timestamp: int = LATEST) -> tuple[int, int]:
        """(error code, offset) of the end of the partition, or of a timestamp."""
        asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=timestamp)])
        request = ListOffsetsRequest(replica_id=replica_id, topics=[asked])
        (found,) = (await self.cluster.ask(LEADER, request, version)).topics[0].partitions
        return found.error_code, found.offset

    async def delete(self, offset: int, timeout_ms: int = 60_000) -> DeleteRecordsPartitionResult:
        topic = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        answer = await self.cluster.ask(LEADER, DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms), 2)
        (result,) = answer.topics[0].partitions
        assert isinstance(result, DeleteRecordsPartitionResult)
        return result


@asynccontextmanager
async def replicated(records: int = 0) -> AsyncIterator[World]:
    async with running(LEADER) as cluster:
        topic_id = await cluster.create("t", [LEADER])
        world = World(cluster, topic_id)
        world.join()
        world.lead(5)
        for _ in range(records):
            assert await cluster.produce(LEADER, "t", 0, b"x", acks=1) == ErrorCode.NONE
        yield world


@pytest.mark.parametrize("version", [12, 14, 15, 17])
async def test_a_follower_replicates_in_every_layout(version: int, autojump_clock: trio.testing.MockClock) -> None:
    async with replicated(2) as world:
        part = await world.replicate(0, version=version, current_leader_epoch=5)
        assert [each.base_offset for each in iter_batches(bytes(part.records))] == [0, 1]  # type: ignore[arg-type]
        assert await world.cluster.values(LEADER, "t", 0) == []
        await world.replicate(2, version=version, current_leader_epoch=5)
        assert await world.cluster.values(LEADER, "t", 0) == [b"x", b"x"]
        assert world.partition.leader is not None
        known = 5 if version >= 15 else -1
        assert world.partition.leader.followers[FOLLOWER].broker_epoch == known


async def test_all_replicas_acknowledge(autojump_clock: trio.testing.MockClock) -> None:
    async with replicated() as world, trio.open_nursery() as nursery:
        codes = []

        async def produce() -> None:
            codes.append(await world.cluster.produce(LEADER, "t", 0, b"x"))

        nursery.start_soon(produce)
        while world.partition.log.log_end_offset == 0:
            await trio.sleep(0.01)
        await world.replicate(0)
        assert codes == []
        await world.replicate(1)
        await trio.sleep(0.01)
        assert codes == [ErrorCode.NONE]


# --- who leads (KIP-951) ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [9, 10, 11])
async def test_produce_names_the_leader(version: int, autojump_clock: trio.testing.MockClock) -> None:
    async with replicated() as world:
        world.lead(6, leader=FOLLOWER)
        answer = await world.cluster.ask(LEADER, produce_request("t", {0: batch(b"x")}, 1), version)
        (part,) = answer.responses[0].partition_responses
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        if version < 10:
            assert (part.current_leader, answer.node_endpoints) == (None, [])
        else:
            assert part.current_leader == ProduceHint(leader_id=FOLLOWER, leader_epoch=6)
            assert [(node.node_id, node.host, node.port) for node in answer.node_endpoints] == [
                (FOLLOWER, "nine", 9092)
            ]


@pytest.mark.parametrize("version", [12, 15, 16, 17])
@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
async def test_fetch_names_the_leader(version: int, code: ErrorCode, autojump_clock: trio.testing.MockClock) -> None:
    async with replicated() as world:
        world.lead(6, leader=FOLLOWER)
        epoch = 5 if code is ErrorCode.FENCED_LEADER_EPOCH else -1
        asked = FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=epoch, partition_max_bytes=1000)
        topic = FetchTopic(topic="t", topic_id=world.topic_id, partitions=[asked])
        request = FetchRequest(topics=[topic])
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:  # a consumer would be served
            request.replica_id = THIRD if version < 15 else -1
            request.replica_state = ReplicaState(replica_id=THIRD, replica_epoch=5) if version >= 15 else None
        answer: FetchResponse = await world.cluster.ask(LEADER, request, version)
        (part,) = answer.responses[0].partitions
        assert part.error_code == code
        if version < 16:
            assert (part.current_leader, answer.node_endpoints) == (None, [])
        else:
            assert part.current_leader == FetchHint(leader_id=FOLLOWER, leader_epoch=6)
            assert [(node.node_id, node.host, node.port) for node in answer.node_endpoints] == [
                (FOLLOWER, "nine", 9092)
            ]


# --- the end after an election (KIP-207) ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code"),
    [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE), (9, ErrorCode.OFFSET_NOT_AVAILABLE)],
)
async def test_a_new_leader_does_not_know_the_end_at_once(
    version: int, code: ErrorCode, autojump_clock: trio.testing.MockClock
) -> None:
    async with replicated(2) as world:
        await world.replicate(1)
        assert await world.end(version) == (ErrorCode.NONE, 1)
        world.lead(6)
        assert await world.end(version) == (code, -1)
        assert await world.end(version, timestamp=1_800_000_000_000) == (code, -1)
        assert await world.end(version, timestamp=0) == (ErrorCode.NONE, 0)  # is below the watermark
        assert await world.end(version, timestamp=-2) == (ErrorCode.NONE, 0)
        assert await world.end(version, replica_id=FOLLOWER) == (ErrorCode.NONE, 2)
        await world.replicate(2)
        assert await world.end(version) == (ErrorCode.NONE, 2)
        assert await world.end(version, timestamp=1_800_000_000_000) == (ErrorCode.NONE, -1)


async def test_where_epochs_ended_is_known_at_once(autojump_clock: trio.testing.MockClock) -> None:
    async with replicated(2) as world:
        world.lead(7)
        asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=7, leader_epoch=6)
        topic = OffsetForLeaderTopic(topic="t", partitions=[asked])
        request = OffsetForLeaderEpochRequest(replica_id=FOLLOWER, topics=[topic])
        (found,) = (await world.cluster.ask(LEADER, request, 4)).topics[0].partitions
        assert (found.error_code, found.leader_epoch, found.end_offset) == (ErrorCode.NONE, 5, 2)


# --- deleted records --------------------------------------------------------------------------------------------------


async def test_records_are_deleted_once_every_live_replica_has_followed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with replicated(3) as world, trio.open_nursery() as nursery:
        await world.replicate(3, log_start_offset=0)
        results = []

        async def delete() -> None:
            results.append(await world.delete(2))

        nursery.start_soon(delete)
        while world.partition.log.log_start_offset < 2:
            await trio.sleep(0.01)
        await world.replicate(3, log_start_offset=1)
        await trio.sleep(0.01)
        assert results == []
        await world.replicate(3, log_start_offset=2)
        await trio.sleep(0.01)
        assert [(result.error_code, result.low_watermark) for result in results] == [(ErrorCode.NONE, 2)]


async def test_a_deletion_that_is_not_followed_in_time(autojump_clock: trio.testing.MockClock) -> None:
    async with replicated(3) as world:
        await world.replicate(3, log_start_offset=1)
        started = trio.current_time()
        result = await world.delete(2, timeout_ms=10_000)
        assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 1)
        assert 10 <= trio.current_time() - started < 11
