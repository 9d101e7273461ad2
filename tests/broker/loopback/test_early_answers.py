"""A request that waits is answered in the step that ends its wait, or by its own task where that cannot be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryConnection
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.handlers.call import Call
from ottla.handlers.services import Services
from ottla.metadata.types import PartitionRegistration
from ottla.replication.fetching import FetchReads
from ottla.replication.partition import Partition
from ottla.wire.codec import decode
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.wire.messages.produce import ProduceResponse
from ottla.wire.records import iter_batches

from ...helpers.memory_broker import frame, read_answer
from ...helpers.memory_cluster import MemoryCluster, running, until

ABSENT = 99
FETCH_VERSION = 12
NOW_MS = 1_700_000_000_000


@asynccontextmanager
async def leading(*, replicas: tuple[int, ...] = (1,)) -> AsyncIterator[tuple[MemoryCluster, Services, Partition]]:
    """A broker that leads "t", whose other replicas fetch when a test says so."""
    async with running(1, replica_lag_time_max_ms="3600000") as cluster:
        await cluster.create("t", [1])
        services = cluster.services(1)
        partition = services.replicas.partition("t", 0)
        partition.apply(PartitionRegistration(1, partition.leader_epoch + 1, 1, replicas, replicas))
        yield cluster, services, partition


def respond_early(services: Services) -> None:
    """What a connection does at the end of a step."""
    assert services.early_responses, "a wait has ended"
    Call.respond_early(SimpleNamespace(early_responses=services.early_responses))  # type: ignore[arg-type]


def has_answer(client: MemoryConnection) -> bool:
    return client.receive_into(memoryview(bytearray(4))) == 4


def fetch(correlation_id: int, offset: int, session_id: int = 0, **fields: int) -> bytes:
    """A Fetch of partition 0 of "t", which begins a session or goes on with it."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=-1)
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1 << 25,
        session_id=session_id,
        session_epoch=int(session_id > 0),
        topics=[FetchTopic(topic="t", partitions=[asked])],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return frame(request, FETCH_VERSION, correlation_id)


async def waiting_consumer(cluster: MemoryCluster) -> MemoryConnection:
    """A client whose session's second Fetch waits."""
    client = await cluster.network.connect("broker1", 9092)
    await client.send([fetch(1, 0, max_wait_ms=0)])
    _, began = await read_answer(client)
    session_id = decode(FetchResponse, FETCH_VERSION, memoryview(began)[5:]).session_id
    assert session_id
    await client.send([fetch(2, 0, session_id)])
    await trio.testing.wait_all_tasks_blocked()
    return client


async def fetched(client: MemoryConnection) -> PartitionData:
    correlation_id, answer = await read_answer(client)
    assert correlation_id == 2
    (topic,) = decode(FetchResponse, FETCH_VERSION, memoryview(answer)[5:]).responses
    (part,) = topic.partitions
    return part


def sizes(part: PartitionData) -> list[int]:
    """How many bytes the records of the answer have."""
    return [len(record.value or b"") for one in iter_batches(memoryview(part.records)) for record in one.records()]


async def test_a_fetch_is_answered_in_the_step_of_the_append() -> None:
    async with leading() as (cluster, services, partition):
        client = await waiting_consumer(cluster)
        partition.append(batch(b"x"), NOW_MS)
        respond_early(services)
        assert has_answer(client)
        await trio.testing.wait_all_tasks_blocked()
        client.close()


@pytest.mark.parametrize(("limit", "size"), [(1 << 16, 10), (60, 10), (1 << 16, 60_000), (1 << 16, 200_000)])
async def test_a_fetch_is_answered_whole_and_once(limit: int, size: int) -> None:
    """In a pipe that is full, or with an answer that is too large for the step, its own task sends what is left."""
    async with leading() as (cluster, services, partition):
        cluster.network.limit = limit
        client = await waiting_consumer(cluster)
        partition.append(batch(bytes(size)), NOW_MS, internal=True)
        respond_early(services)
        assert sizes(await fetched(client)) == [size]
        await trio.testing.wait_all_tasks_blocked()
        assert not has_answer(client)
        assert partition.bytes_out == partition.log.size, "counted once"
        assert partition.log.segments[-1].file.pins == 0
        client.close()


async def test_the_error_that_ends_a_wait_is_answered_by_its_task() -> None:
    async with leading() as (cluster, services, _):
        client = await waiting_consumer(cluster)
        services.replicas.stop("t", 0, None, deletes=True)
        respond_early(services)
        assert (await fetched(client)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        client.close()


@pytest.mark.parametrize("limit", [1 << 16, 60])
async def test_records_are_acknowledged_in_the_step_that_commits_them(limit: int) -> None:
    async with leading(replicas=(1, ABSENT)) as (cluster, services, partition):
        client = await cluster.network.connect("broker1", 9092)
        client._incoming.limit = limit
        produce = produce_request("t", {0: batch(b"x")})
        await client.send([b"".join(frame(produce, 9, number) for number in range(3))])
        await until(lambda: partition.log.log_end_offset == 3)
        await trio.testing.wait_all_tasks_blocked()
        assert partition.leader is not None
        follower = partition.leader.followers[ABSENT]
        offsets = []
        for end in (2, 3):
            await trio.testing.wait_all_tasks_blocked()
            partition.fetched_by(follower, end, 0, 3, -1, trio.current_time())
            respond_early(services)
            while len(offsets) < end:
                correlation_id, answer = await read_answer(client)
                (topic,) = decode(ProduceResponse, 9, memoryview(answer)[5:]).responses
                offsets.append((correlation_id, topic.partition_responses[0].base_offset))
        assert offsets == [(0, 0), (1, 1), (2, 2)]
        client.close()


async def test_a_bug_in_the_step_hides_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    async with leading() as (cluster, services, partition):
        client = await waiting_consumer(cluster)
        with monkeypatch.context() as broken:
            broken.setattr(FetchReads, "_read", lambda *_: 1 // 0)
            partition.append(batch(b"x"), NOW_MS)
            respond_early(services)
        _, answer = await read_answer(client)
        session_id = decode(FetchResponse, FETCH_VERSION, memoryview(answer)[5:]).session_id
        request = FetchRequest(
            max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 25, session_id=session_id, session_epoch=2
        )
        await client.send([frame(request, FETCH_VERSION, 2)])
        assert sizes(await fetched(client)) == [1]
        client.close()


async def test_two_replicas_over_connections() -> None:
    """A follower's fetch commits what a producer waits for, and is answered with what comes next."""
    async with leading(replicas=(1, ABSENT)) as (cluster, _, partition):
        producer, follower = [await cluster.network.connect("broker1", 9092) for _ in range(2)]
        replica = {"replica_id": ABSENT}
        await follower.send([fetch(1, 0, max_wait_ms=0, **replica)])
        _, began = await read_answer(follower)
        session_id = decode(FetchResponse, FETCH_VERSION, memoryview(began)[5:]).session_id
        for round_ in range(5):
            asked = fetch(2, round_, session_id, session_epoch=round_ + 1, **replica)
            await follower.send([asked])
            await trio.testing.wait_all_tasks_blocked()
            await producer.send([frame(produce_request("t", {0: batch(b"x")}), 9, round_)])
            assert sizes(await fetched(follower)) == [1]
            if round_:
                assert (await read_answer(producer))[0] == round_ - 1
        assert partition.log.high_watermark == 4
        producer.close()
        follower.close()


async def test_what_waits_for_nothing_any_more_is_left_alone() -> None:
    """Where no connection ends the wait the tasks answer, and what was to be done early comes too late."""
    async with leading(replicas=(1, ABSENT)) as (cluster, services, partition):
        client = await cluster.network.connect("broker1", 9092)
        await client.send([frame(produce_request("t", {0: batch(b"x")}), 9, 1)])
        await until(lambda: partition.log.log_end_offset == 1)
        await trio.testing.wait_all_tasks_blocked()
        assert partition.leader is not None
        partition.fetched_by(partition.leader.followers[ABSENT], 1, 0, 1, -1, trio.current_time())
        assert (await read_answer(client))[0] == 1
        await trio.testing.wait_all_tasks_blocked()
        respond_early(services)
        assert not has_answer(client)
        client.close()


async def test_a_fetch_that_its_task_has_answered_is_not_answered_again() -> None:
    async with leading() as (cluster, services, partition):
        client = await waiting_consumer(cluster)
        partition.append(batch(b"x"), NOW_MS)
        assert sizes(await fetched(client)) == [1]
        await trio.testing.wait_all_tasks_blocked()
        assert not has_answer(client)
        assert not services.early_responses
        client.close()
