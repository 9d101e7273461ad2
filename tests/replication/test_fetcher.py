"""One leader, played by the test, and the fetcher that follows it: its requests one by one, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.broker_client import PeerUnavailableError
from ottla.replication.fetcher import Fetcher
from ottla.replication.fetchers import Fetchers
from ottla.replication.partition import Partition
from ottla.replication.quotas import Quota
from ottla.wire.messages.fetch import (
    EpochEndOffset,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsRequest,
)

from .helpers.followers import batch, filled, follower_world
from .helpers.scripted_leader import LEADER, SESSION, Leader, data, leader, settings

# --- what a request names -----------------------------------------------------------------------------------------------


async def test_a_partition_whose_log_starts_later_is_named(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partitions = [peer.partition(number) for number in range(3)]
        for partition in partitions:
            fetcher.follow(partition)
        await peer.fetch()
        await peer.answer(*(data(number, batch(0, epoch=5), high_watermark=1) for number in range(3)))
        assert list(await peer.fetch()) == [0, 1, 2]
        await peer.answer()
        assert not await peer.fetch()
        partitions[1].log.delete_records_before(1)  # as retention does
        await peer.answer()
        assert [(number, asked.log_start_offset) for number, asked in (await peer.fetch()).items()] == [(1, 1)]


# --- errors of a partition --------------------------------------------------------------------------------------------


async def test_partition_that_waits_is_left_out(autojump_clock: trio.testing.MockClock) -> None:
    async with leader(backoff_ms=300) as (peer, fetcher):
        for number in range(2):
            fetcher.follow(peer.partition(number))
        await peer.fetch()
        await peer.answer(data(0, error_code=ErrorCode.CORRUPT_MESSAGE), data(1))
        await peer.fetch()
        assert (peer.asked, peer.forgotten) == ({}, [0])
        await trio.sleep(0.2)
        await peer.answer()
        assert not await peer.fetch()
        await trio.sleep(0.1)
        await peer.answer()
        assert list(await peer.fetch()) == [0]


async def test_when_all_wait_nothing_is_asked(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()
        before = trio.current_time()
        await peer.answer(data(0, error_code=ErrorCode.CORRUPT_MESSAGE))
        await peer.fetch()
        assert trio.current_time() == before + 1


async def test_a_leader_that_has_yet_to_hear_of_it_is_asked_again_soon(autojump_clock: trio.testing.MockClock) -> None:
    async with leader(backoff_ms=50) as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()

        async def pause(error: ErrorCode) -> int:
            before = trio.current_time()
            await peer.answer(data(0, error_code=error))
            await peer.fetch()
            return round(1000 * (trio.current_time() - before))

        early = ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert [await pause(code) for code in (*early, *early)] == [10, 20, 40, 50]
        assert await pause(ErrorCode.NONE) == 0
        assert await pause(ErrorCode.UNKNOWN_LEADER_EPOCH) == 10


async def test_new_epoch_ends_the_waiting(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        fetcher.follow(peer.partition(epoch=5))
        await peer.fetch()
        before = trio.current_time()
        await peer.answer(data(0, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
        await trio.testing.wait_all_tasks_blocked()
        fetcher.follow(peer.partition(epoch=6))
        assert (await peer.fetch())[0].current_leader_epoch == 6
        assert trio.current_time() == before


async def test_fenced_partition_stops_until_it_is_told_of_another_epoch(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with leader() as (peer, fetcher):
        for number in range(2):
            fetcher.follow(peer.partition(number))
        await peer.fetch()
        await peer.answer(data(0, error_code=ErrorCode.FENCED_LEADER_EPOCH), data(1))
        await peer.fetch()
        assert peer.forgotten == [0]
        assert fetcher.failed_count == 1
        await trio.sleep(10)
        await peer.answer()
        assert not await peer.fetch()
        fetcher.follow(peer.partition(0, epoch=6))
        assert fetcher.failed_count == 0
        await peer.answer()
        assert (await peer.fetch())[0].current_leader_epoch == 6


async def test_lag_is_what_the_log_is_behind_the_leaders_watermark(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partitions = [peer.partition(number) for number in range(2)]
        for partition in partitions:
            fetcher.follow(partition)
        await peer.fetch()
        assert not list(fetcher.lags()), "nothing is known of the leader yet"
        await peer.answer(data(0, batch(0), high_watermark=10), data(1, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
        await peer.fetch()
        assert list(fetcher.lags()) == [(partitions[0], 9)]
        await peer.answer(data(0, batch(1), high_watermark=2))
        await peer.fetch()
        assert list(fetcher.lags()) == [(partitions[0], 0)]
        fetcher.unfollow(partitions[0])
        assert not list(fetcher.lags())


async def test_folder_that_fails_takes_only_its_partitions_along(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = peer.partition()
        fetcher.follow(partition)
        partition.log.folder.on_offline = lambda folder: fetcher.unfollow(partition)
        await peer.fetch()
        disk = partition.log.folder.disk
        assert isinstance(disk, MemoryDisk)
        disk.fail("write")
        await peer.answer(data(0, batch(0)))
        await trio.testing.wait_all_tasks_blocked()
        assert fetcher.is_idle


async def test_diverging_log_is_compared_again(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = peer.partition()
        filled(partition.log, (1, 2, 4))
        fetcher.follow(partition)
        assert (await peer.fetch())[0].last_fetched_epoch == 4
        await peer.answer(data(0, diverging_epoch=EpochEndOffset(epoch=3, end_offset=2)))
        assert [(a.fetch_offset, a.last_fetched_epoch) for a in (await peer.fetch()).values()] == [(2, 2)]
        await peer.answer(data(0, diverging_epoch=EpochEndOffset(epoch=1, end_offset=5)))
        assert [(a.fetch_offset, a.last_fetched_epoch) for a in (await peer.fetch()).values()] == [(1, 1)]


# --- out of range -----------------------------------------------------------------------------------------------------


async def out_of_range(peer: Leader, fetcher: Fetcher) -> Partition:
    """A partition with three records, whose leader has just said that there is no offset 3."""
    partition = peer.partition()
    filled(partition.log, (1, 1, 1))
    fetcher.follow(partition)
    await peer.fetch()
    await peer.answer(data(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    await asks_for(peer, -1)
    return partition


async def asks_for(peer: Leader, timestamp: int) -> None:
    request = await peer.next()
    assert isinstance(request, ListOffsetsRequest)
    assert (peer.header.api_version, request.replica_id) == (9, 1)
    ((asked,),) = (topic.partitions for topic in request.topics)
    assert (asked.timestamp, asked.current_leader_epoch) == (timestamp, 5)


async def test_leader_that_ends_before_the_log(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = await out_of_range(peer, fetcher)
        await peer.answer_offset(2)
        assert (await peer.fetch())[0].fetch_offset == 2
        assert partition.log.log_end_offset == 2


async def test_replica_that_goes_while_its_leader_is_asked_is_left_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with leader() as (peer, fetcher):
        partition = await out_of_range(peer, fetcher)
        fetcher.unfollow(partition)
        await peer.answer_offset(2)
        await trio.testing.wait_all_tasks_blocked()
        assert partition.log.log_end_offset == 3


async def test_leader_that_starts_behind_the_log(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = await out_of_range(peer, fetcher)
        await peer.answer_offset(20)
        await asks_for(peer, -2)
        await peer.answer_offset(10)
        asked = (await peer.fetch())[0]
        assert (asked.fetch_offset, asked.last_fetched_epoch, asked.log_start_offset) == (10, -1, 10)
        assert partition.log.log_start_offset == 10


async def test_leader_that_changes_while_it_is_asked(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = await out_of_range(peer, fetcher)
        fetcher.follow(peer.partition(epoch=6))
        await peer.answer_offset(1)
        assert (await peer.fetch())[0].current_leader_epoch == 6
        assert partition.log.log_end_offset == 3


async def test_leader_that_fences_an_epoch_that_is_past(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        await out_of_range(peer, fetcher)
        fetcher.follow(peer.partition(epoch=6))
        before = trio.current_time()
        await peer.answer_offset(-1, ErrorCode.FENCED_LEADER_EPOCH)
        assert (await peer.fetch())[0].current_leader_epoch == 6
        assert trio.current_time() == before


async def test_partition_that_goes_while_its_leader_is_asked(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = await out_of_range(peer, fetcher)
        fetcher.unfollow(partition)
        fetcher.follow(peer.partition(1))
        before = trio.current_time()
        await peer.answer_offset(-1, ErrorCode.UNKNOWN_LEADER_EPOCH)
        assert list(await peer.fetch()) == [1]
        assert trio.current_time() == before


async def test_leader_that_refuses_to_say(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        await out_of_range(peer, fetcher)
        before = trio.current_time()
        await peer.answer_offset(-1, ErrorCode.UNKNOWN_LEADER_EPOCH)
        await peer.fetch()
        assert trio.current_time() == before + 0.01


async def test_leader_that_is_gone_before_it_says(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        partition = await out_of_range(peer, fetcher)
        before = trio.current_time()
        peer.hang_up()
        await peer.fetch()
        assert (peer.asked, peer.forgotten) == ({}, []), "the session has it still, at the same offset"
        assert trio.current_time() == before + 1
        assert partition.log.log_end_offset == 3


# --- the connection ---------------------------------------------------------------------------------------------------


async def test_lost_connection_is_made_again_after_a_while(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()
        await peer.answer(data(0))
        await peer.fetch()
        before = trio.current_time()
        peer.hang_up()
        assert list(await peer.fetch()) == [0]
        assert (peer.request.session_id, peer.request.session_epoch) == (SESSION, 0), "the old session is ended"
        assert trio.current_time() == before + 1


async def test_broker_that_is_not_there_is_tried_again(autojump_clock: trio.testing.MockClock) -> None:
    tries: list[float] = []

    def connect(broker_id: int) -> Any:
        tries.append(trio.current_time())
        raise PeerUnavailableError(f"broker {broker_id} is gone")

    replicas = await follower_world()
    fetcher = Fetcher(LEADER, 1, connect, settings(), lambda: 0, Quota(11, 1))
    fetcher.follow(replicas.lead(LEADER, 5))
    with trio.move_on_after(3.5):
        await fetcher.run()
    assert tries == [0, 1, 2, 3]


async def test_partition_that_comes_ends_the_waiting_for_a_broker(autojump_clock: trio.testing.MockClock) -> None:
    async with leader() as (peer, fetcher):
        fetcher.follow(peer.partition(0))
        await peer.fetch()
        before = trio.current_time()
        peer.hang_up()
        await trio.testing.wait_all_tasks_blocked()
        fetcher.follow(peer.partition(1, epoch=6))
        assert sorted(await peer.fetch()) == [0, 1]
        assert trio.current_time() == before


# --- turns of other tasks ---------------------------------------------------------------------------------------------


async def test_others_have_their_turn_while_a_large_answer_is_taken() -> None:
    async with leader() as (peer, fetcher):
        partitions = [peer.partition(number) for number in range(3)]
        for partition in partitions:
            fetcher.follow(partition)
        await peer.fetch()
        seen: set[tuple[int, ...]] = set()

        async def watch() -> None:
            while True:
                seen.add(tuple(partition.log.log_end_offset for partition in partitions))
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await peer.answer(*(data(number, batch(0, "x" * 300_000)) for number in range(3)))
            await peer.fetch()
            nursery.cancel_scope.cancel()
        assert seen & {(1, 0, 0), (1, 1, 0)}


async def test_records_are_flushed_before_the_leader_is_told_of_them(held_flushes: Callable[[Any], Any]) -> None:
    async with leader(flush_messages=1) as (peer, fetcher):
        partition = peer.partition()
        fetcher.follow(partition)
        await peer.fetch()
        workers = held_flushes(partition.log)
        await peer.answer(data(0, batch(0)))
        await trio.testing.wait_all_tasks_blocked()
        assert (partition.log.log_end_offset, partition.log.recovery_point, workers.jobs) == (1, 0, 1)
        workers.release.set()
        assert (await peer.fetch())[0].fetch_offset == 1
        assert partition.log.recovery_point == 1


@pytest.fixture
def held_flushes() -> Callable[[Any], Any]:
    """``held_flushes(log)``: the workers of its folder from now on, whose jobs wait for ``release``."""

    class Held:
        def __init__(self) -> None:
            self.release = trio.Event()
            self.jobs = 0

        async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
            self.jobs += 1
            await self.release.wait()
            return function(*arguments)

    def hold(log: Any) -> Held:
        log.folder.workers = held = Held()
        return held

    return hold


# --- several leaders --------------------------------------------------------------------------------------------------


async def test_partition_moves_to_the_fetcher_of_its_new_leader(autojump_clock: trio.testing.MockClock) -> None:
    replicas = await follower_world()
    asked: list[int] = []

    def connect(broker_id: int) -> Any:
        asked.append(broker_id)
        raise PeerUnavailableError(f"broker {broker_id} is gone")

    fetchers = Fetchers(1, connect, settings(), lambda: 0, Quota(11, 1))
    partition = replicas.lead(2, 5)
    fetchers.follow(partition)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetchers.run)
        await trio.testing.wait_all_tasks_blocked()
        assert asked == [2], "what was followed before is fetched when it runs"
        for leader_id, epoch, expected in ((3, 6, [3]), (-1, 7, []), (2, 8, [2]), (2, 9, [2])):
            asked.clear()
            fetchers.follow(replicas.lead(leader_id, epoch))
            await trio.testing.wait_all_tasks_blocked()
            assert asked == expected
        fetchers.unfollow(partition)
        fetchers.unfollow(partition)
        asked.clear()
        await trio.sleep(10)
        assert asked == []
        nursery.cancel_scope.cancel()


async def test_fetcher_without_partitions_lets_go_of_its_leader(autojump_clock: trio.testing.MockClock) -> None:
    async with leader(fetchers=True) as (peer, fetchers):
        partition = peer.partition()
        fetchers.follow(partition)
        await peer.fetch()
        fetchers.unfollow(partition)
        assert peer.peer is not None
        before = trio.current_time()
        assert await peer.peer.has_ended()
        assert trio.current_time() == before
        peer.peer = None
        fetchers.follow(peer.partition(epoch=6))
        assert (await peer.fetch())[0].current_leader_epoch == 6


async def test_fetcher_goes_on_with_its_other_partitions(autojump_clock: trio.testing.MockClock) -> None:
    async with leader(fetchers=True) as (peer, fetchers):
        partitions = [peer.partition(number) for number in range(2)]
        for partition in partitions:
            fetchers.follow(partition)
        await peer.fetch()
        fetchers.unfollow(partitions[0])
        await peer.answer(data(0), data(1, batch(0)))
        assert (await peer.fetch())[1].fetch_offset == 1
        assert peer.forgotten == [0]


async def test_stopped_partition_is_unfollowed_beside_a_new_fetcher(autojump_clock: trio.testing.MockClock) -> None:
    """The one it was stopped in has ended meanwhile; the one that took its place goes on."""
    async with leader(fetchers=True) as (peer, fetchers):
        stopped, other = peer.partition(0), peer.partition(1)
        fetchers.follow(stopped)
        fetchers.follow(other)
        await peer.fetch()
        await peer.answer(data(0, error_code=ErrorCode.FENCED_LEADER_EPOCH), data(1))
        await peer.fetch()
        fetchers.unfollow(other)
        peer.peer = None
        fetchers.follow(other)
        await peer.fetch()
        fetchers.unfollow(stopped)
        await peer.answer(data(1, batch(0)))
        assert (await peer.fetch())[1].fetch_offset == 1
