"""A leadership that goes and comes back while a request waits for something else: what it appended may be gone.

Broker 1 leads two partitions, whose follower, broker 9, is not there. The request waits for the first partition; the second
one is led by the follower for a while, which never had the record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.log.settings import LogSettings
from ottla.metadata.types import PartitionRegistration
from ottla.replication.partition import Partition
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from ...helpers.memory_cluster import MemoryCluster, running

LEADER, FOLLOWER = 1, 9
BOTH = (LEADER, FOLLOWER)


class World:
    def __init__(self, cluster: MemoryCluster, topic_id: bytes) -> None:
        self.cluster = cluster
        self._topic_id = topic_id
        self._epoch = 5

    def partition(self, number: int) -> Partition:
        return self.cluster.services(LEADER).replicas.partition("t", number)

    def lead(self, number: int, leader: int, isr: tuple[int, ...]) -> None:
        """The controller has had an election."""
        self._epoch += 1
        registration = PartitionRegistration(leader, self._epoch, 100 + self._epoch, isr, BOTH)
        self.cluster.services(LEADER).replicas.apply("t", self._topic_id, number, registration, LogSettings())

    def lose(self, number: int) -> None:
        """The follower leads, has others' records, and goes; what is left is this broker."""
        self.lead(number, FOLLOWER, BOTH)
        self.partition(number).log.truncate_to(0)
        self.lead(number, LEADER, (LEADER,))
        self.partition(number).append(batch(b"of another"), 1_700_000_000_000)


@asynccontextmanager
async def two_partitions() -> AsyncIterator[World]:
    async with running(LEADER) as cluster:
        world = World(cluster, await cluster.create("t", [LEADER], [LEADER]))
        for number in (0, 1):
            world.lead(number, LEADER, BOTH)
        yield world


async def codes_when_the_second_was_lost(world: World, ask: Callable[[], Awaitable[list[int]]]) -> list[int]:
    """The answers for both partitions; ``ask`` appends to them and waits."""
    codes: list[int] = []

    async def wait() -> None:
        codes.extend(await ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        while not world.partition(1).log.log_end_offset:
            await trio.sleep(0.001)
        await trio.testing.wait_all_tasks_blocked()
        world.lose(1)
        world.lead(0, LEADER, (LEADER,))
    return codes


async def test_a_record_that_is_gone_is_not_acknowledged(autojump_clock: trio.testing.MockClock) -> None:
    async with two_partitions() as world:

        async def produce() -> list[int]:
            request = produce_request("t", {0: batch(b"zero"), 1: batch(b"one")}, -1)
            answer = await world.cluster.ask(LEADER, request, 9)
            return [part.error_code for topic in answer.responses for part in topic.partition_responses]

        codes = await codes_when_the_second_was_lost(world, produce)
        assert codes == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert await world.cluster.values(LEADER, "t", 0) == [b"zero"]
        assert await world.cluster.values(LEADER, "t", 1) == [b"of another"]


def markers() -> WriteTxnMarkersRequest:
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0, 1])
    marker = WritableTxnMarker(producer_id=7, producer_epoch=0, transaction_result=True, topics=[topic])
    return WriteTxnMarkersRequest(markers=[marker])


async def write_markers(world: World) -> list[int]:
    answer = await world.cluster.ask(LEADER, markers(), 1)
    (marker,) = answer.markers
    return [part.error_code for topic in marker.topics for part in topic.partitions]


async def test_a_marker_that_is_gone_is_written_again(autojump_clock: trio.testing.MockClock) -> None:
    async with two_partitions() as world:
        codes = await codes_when_the_second_was_lost(world, lambda: write_markers(world))
        assert codes == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_all_markers_of_a_request_wait_together(autojump_clock: trio.testing.MockClock) -> None:
    """Else the coordinator, which waits a little longer than for one, would send them again and again."""
    async with two_partitions() as world:
        started = trio.current_time()
        answer = await world.cluster.services(LEADER).end_markers.write(markers())
        (marker,) = answer.markers
        codes = [part.error_code for topic in marker.topics for part in topic.partitions]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert trio.current_time() - started <= 31
