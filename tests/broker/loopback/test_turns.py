"""A request that is much work gives turns to those of other connections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from ottla.base.memory_network import MemoryConnection
from ottla.base.seams import SystemClock
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.heartbeat import HeartbeatRequest

from ...helpers.memory_broker import HOST, PORT, frame, read_answer, serving


class SlowBroker(SystemClock):
    """By its monotonic clock everything that the broker does takes long."""

    def __init__(self) -> None:
        self._elapsed = 0.0

    def elapsed(self) -> float:
        self._elapsed += 0.01
        return self._elapsed


def produce() -> tuple[int, bytes]:
    """Partitions, and a request of all of them."""
    count = 30
    return count, frame(produce_request("t", {number: batch(b"x") for number in range(count)}), 9, 2)


def fetch() -> tuple[int, bytes]:
    count = 100
    asked = [FetchPartition(partition=number, partition_max_bytes=1 << 20) for number in range(count)]
    request = FetchRequest(
        max_wait_ms=0, max_bytes=1 << 25, session_epoch=-1, topics=[FetchTopic(topic="t", partitions=asked)]
    )
    return count, frame(request, 12, 2)


@pytest.mark.parametrize("request_of_many", [produce, fetch])
async def test_a_request_of_many_partitions_lets_others_be_answered(
    request_of_many: Callable[[], tuple[int, bytes]], tmp_path: Path
) -> None:
    partitions, many = request_of_many()
    topic = CreatableTopic(name="t", num_partitions=partitions, replication_factor=1)
    asked = frame(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3, 3)
    async with serving(tmp_path, clock=SlowBroker()) as network:
        busy, other = await network.connect(HOST, PORT), await network.connect(HOST, PORT)
        await busy.send([frame(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5, 1)])
        await read_answer(busy)
        for _ in range(5):  # whichever of the two the loop takes first
            answered: list[int] = []

            async def note(client: MemoryConnection, answered: list[int] = answered) -> None:
                answered.append((await read_answer(client))[0])

            async with trio.open_nursery() as nursery:
                nursery.start_soon(note, busy)
                nursery.start_soon(note, other)
                await busy.send([many])
                await other.send([asked])
            assert answered == [3, 2]
        busy.close()
        other.close()


async def test_a_crowd_of_members_does_not_hold_up_a_produce(tmp_path: Path) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    crowd = 40
    async with serving(tmp_path, clock=SlowBroker()) as network:
        members = [await network.connect(HOST, PORT) for _ in range(crowd)]
        producer = await network.connect(HOST, PORT)
        await producer.send([frame(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5, 1)])
        await read_answer(producer)
        for member in members:
            await member.send([frame(heartbeat, 4, 2)])
            await read_answer(member)
        for _ in range(5):  # whichever the loop takes first
            answered: list[int] = []

            async def ask(client: MemoryConnection, asked: bytes, answered: list[int] = answered) -> None:
                await client.send([asked])
                answered.append((await read_answer(client))[0])

            async with trio.open_nursery() as nursery:
                for member in members:
                    nursery.start_soon(ask, member, frame(heartbeat, 4, 3))
                nursery.start_soon(ask, producer, frame(produce_request("t", {0: batch(b"x")}), 9, 4))
            assert answered.count(3) == crowd
            assert answered.index(4) < crowd / 2
        for client in (*members, producer):
            client.close()
