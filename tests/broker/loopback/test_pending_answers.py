"""Requests of one connection that wait for replicas: they wait together, and are answered in their order."""

from __future__ import annotations

import logging
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryConnection
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.metadata.types import PartitionRegistration
from ottla.replication.partition import Partition
from ottla.wire.codec import decode
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from ottla.wire.records import iter_batches

from ...helpers.memory_broker import frame, read_answer
from ...helpers.memory_cluster import MemoryCluster, running, until

ABSENT = 99
VERSION = 9


@asynccontextmanager
async def led_for_an_absent_follower(
    broker_id: int = 1,
) -> AsyncIterator[tuple[MemoryCluster, Partition, MemoryConnection]]:
    """A broker that leads "t"; a replica on broker 99 counts as in sync, and fetches when a test says so."""
    async with running(broker_id, replica_lag_time_max_ms="3600000", log_segment_bytes=str(1 << 20)) as cluster:
        await cluster.create("t", [broker_id])
        partition = cluster.services(broker_id).replicas.partition("t", 0)
        both = (broker_id, ABSENT)
        partition.apply(PartitionRegistration(broker_id, partition.leader_epoch + 1, 1, both, both))
        client = await cluster.network.connect(f"broker{broker_id}", 9092)
        yield cluster, partition, client
        client.close()


def fetched(partition: Partition, offset: int) -> None:
    """The absent follower has everything below ``offset``."""
    role = partition.leader
    assert role is not None
    follower = role.follower(ABSENT, -1, partition.leader_epoch)
    partition.fetched_by(follower, offset, 0, partition.log.log_end_offset, -1, trio.current_time())


def produce(correlation_id: int, topic: str = "t", *, acks: int = -1, timeout_ms: int = 60_000) -> bytes:
    request = produce_request(topic, {0: batch(b"x")}, acks)
    request.timeout_ms = timeout_ms
    return frame(request, VERSION, correlation_id)


async def read_produced(client: MemoryConnection) -> tuple[int, PartitionProduceResponse]:
    """(correlation id, the partition's answer)."""
    correlation_id, answer = await read_answer(client)
    response = decode(ProduceResponse, VERSION, memoryview(answer)[5:])
    return correlation_id, response.responses[0].partition_responses[0]


async def test_they_are_all_appended_and_answered_in_order_once_a_replica_has_them() -> None:
    async with led_for_an_absent_follower() as (_, partition, client):
        # One that waits for nothing, and one that fails, are answered in their turn.
        await client.send([produce(1) + produce(2) + produce(3, acks=1) + produce(4, "missing") + produce(5)])
        await until(lambda: partition.log.log_end_offset == 4)
        await trio.testing.wait_all_tasks_blocked()
        assert client.receive_into(memoryview(bytearray(1))) < 0, "nothing is answered yet"
        fetched(partition, 4)
        answers = [await read_produced(client) for _ in range(5)]
        assert [correlation_id for correlation_id, _ in answers] == [1, 2, 3, 4, 5]
        assert [answer.base_offset for _, answer in answers] == [0, 1, 2, -1, 3]
        codes = [answer.error_code for _, answer in answers]
        assert codes == [0, 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]


async def test_what_is_committed_is_answered_before_what_is_not() -> None:
    async with led_for_an_absent_follower() as (_, partition, client):
        await client.send([produce(1) + produce(2)])
        await until(lambda: partition.log.log_end_offset == 2)
        fetched(partition, 1)
        assert (await read_produced(client))[0] == 1
        await trio.testing.wait_all_tasks_blocked()
        assert client.receive_into(memoryview(bytearray(1))) < 0
        fetched(partition, 2)
        assert (await read_produced(client))[0] == 2


async def test_they_time_out_together(autojump_clock: trio.testing.MockClock) -> None:
    async with led_for_an_absent_follower() as (_, _, client):
        began = trio.current_time()
        await client.send([produce(number, timeout_ms=1000) for number in range(5)])
        answers = [await read_produced(client) for _ in range(5)]
        assert [answer.error_code for _, answer in answers] == [ErrorCode.REQUEST_TIMED_OUT] * 5
        assert trio.current_time() - began < 2


async def test_requests_larger_than_the_buffer_wait_together_too() -> None:
    async with led_for_an_absent_follower() as (_, partition, client):
        sizes = 20_000, 25_000, 15_000
        requests = [produce_request("t", {0: batch(bytes(size))}) for size in sizes]
        frames = [frame(request, VERSION, number) for number, request in enumerate(requests)]
        await client.send([b"".join(frames)])
        await until(lambda: partition.log.log_end_offset == 3)
        fetched(partition, 3)
        answers = [await read_produced(client) for _ in range(3)]
        assert [(number, answer.base_offset) for number, answer in answers] == [(n, n) for n in range(3)]
        stored = partition.log.read(0, 1 << 20, up_to=3, at_least_one=True)
        assert stored is not None
        values = [record.value for one in iter_batches(stored.read()) for record in one.records()]
        stored.release()
        assert values == [bytes(size) for size in sizes]


async def test_another_request_is_handled_when_they_are_answered() -> None:
    async with led_for_an_absent_follower() as (_, partition, client):
        await client.send([produce(1) + frame(MetadataRequest(), 9, 2) + produce(3)])
        await until(lambda: partition.log.log_end_offset == 1)
        await trio.testing.wait_all_tasks_blocked()
        assert partition.log.log_end_offset == 1
        fetched(partition, 1)
        assert [(await read_answer(client))[0] for _ in range(2)] == [1, 2]
        await until(lambda: partition.log.log_end_offset == 2)
        fetched(partition, 2)
        assert (await read_answer(client))[0] == 3


@pytest.mark.parametrize("bad", [struct.pack(">i", 0), struct.pack(">ihh", 4, 999, 0), struct.pack(">i", -5)])
async def test_they_are_answered_before_a_bad_frame_ends_the_connection(bad: bytes) -> None:
    async with led_for_an_absent_follower() as (_, partition, client):
        await client.send([produce(1) + produce(2) + bad])
        await until(lambda: partition.log.log_end_offset == 2)
        fetched(partition, 2)
        assert [(await read_answer(client))[0] for _ in range(2)] == [1, 2]
        assert await client.receive(1) == b""


async def test_a_change_of_the_leader_ends_their_wait() -> None:
    async with led_for_an_absent_follower() as (_, partition, client):
        await client.send([produce(1) + produce(2)])
        await until(lambda: partition.log.log_end_offset == 2)
        partition.apply(PartitionRegistration(ABSENT, partition.leader_epoch + 1, 2, (ABSENT,), (1, ABSENT)))
        answers = [await read_produced(client) for _ in range(2)]
        assert [answer.error_code for _, answer in answers] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2


async def test_each_is_reported_with_its_own_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ottla.broker.listeners.refusal_log")
    async with led_for_an_absent_follower() as (_, partition, client):
        half = frame(produce_request("t", {0: batch(b"x"), 7: batch(b"x")}), VERSION, 4)
        await client.send([half + produce(1) + produce(2, "missing") + produce(3, timeout_ms=1)])
        await until(lambda: partition.log.log_end_offset == 3)
        fetched(partition, 2)
        for _ in range(4):
            await read_produced(client)
    refusals = [record.getMessage() for record in caplog.records if record.name == "ottla.broker.listeners.refusal_log"]
    assert [line.split(": ")[1].split(";")[0] for line in refusals] == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "REQUEST_TIMED_OUT",
    ]
