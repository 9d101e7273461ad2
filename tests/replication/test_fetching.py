"""Fetches of followers and consumers, as the engine reads them; a test plays the follower.

On real logs in a simulated disk, with a clock that jumps. What consumers see of it is in tests/handlers/test_fetch.py.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.replication.delayed_fetch import DelayedFetch
from ottla.replication.fetch_session import FetchSession, FetchSessionCache
from ottla.replication.fetching import FetchReads
from ottla.replication.isr import CommittedPartitionState, PendingExpand
from ottla.wire.messages.fetch import EpochEndOffset, PartitionData
from ottla.wire.records import iter_batches

from ..helpers.told import led, tell
from .helpers.fetches import ask, begin, reads, result_of
from .helpers.replicas import LAG_SECONDS, ME, NOW_MS, OTHER, THIRD, Replicas, batch, replicas

BATCH_SIZE = len(batch())


async def fetch(
    world: Replicas, offset: int, broker_id: int = OTHER, *, broker_epoch: int = -1, **fields: Any
) -> PartitionData:
    """The answer to a fetch that does not wait."""
    reading = reads(world, broker_id, offset, broker_epoch=broker_epoch, asked=fields)
    await reading.read_all()
    return result_of(reading)


def offsets(result: PartitionData) -> list[int]:
    """The base offsets of the batches in an answer, whose slice is released."""
    assert result.error_code == ErrorCode.NONE
    if not result.records:
        return []
    data = result.records.read()  # type: ignore[union-attr]
    result.records.release()  # type: ignore[union-attr]
    return [each.base_offset for each in iter_batches(data)]


def append(world: Replicas, count: int = 1) -> None:
    for _ in range(count):
        world.partition.append(batch(), NOW_MS)


def lead(world: Replicas, epoch: int = 0, isr: tuple[int, ...] = (ME, OTHER)) -> None:
    assert world.lead(epoch=epoch, isr=isr, replicas=(ME, OTHER)) == ErrorCode.NONE


# --- what is read -----------------------------------------------------------------------------------------------------


async def test_a_follower_reads_to_the_end_a_consumer_to_the_high_watermark() -> None:
    async with replicas() as world:
        lead(world)
        append(world, 2)
        assert offsets(await fetch(world, 0)) == [0, 1]
        assert offsets(await fetch(world, 0, broker_id=-1)) == []
        await fetch(world, 1)
        assert offsets(await fetch(world, 0, broker_id=-1)) == [0]


async def test_a_fetch_proves_what_is_below_its_offset_and_is_answered_with_the_watermark_before() -> None:
    async with replicas() as world:
        lead(world)
        append(world, 2)
        assert (await fetch(world, 0)).high_watermark == 0
        assert (await fetch(world, 2)).high_watermark == 0
        assert world.partition.log.high_watermark == 2
        assert (await fetch(world, 2)).high_watermark == 2


async def test_a_fetch_that_is_refused_proves_nothing() -> None:
    async with replicas() as world:
        lead(world, epoch=1)
        append(world, 2)
        assert world.partition.leader is not None
        follower = world.partition.leader.followers[OTHER]
        assert (await fetch(world, 3)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (await fetch(world, 2, current_leader_epoch=0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await fetch(world, 2, current_leader_epoch=2)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        lead(world, epoch=2)
        append(world)
        diverging = await fetch(world, 3, last_fetched_epoch=1)
        assert diverging.diverging_epoch == EpochEndOffset(epoch=1, end_offset=2)
        assert (follower.log_end_offset, world.partition.log.high_watermark) == (-1, 0)


async def test_a_broker_that_is_none_of_the_replicas() -> None:
    async with replicas() as world:
        lead(world, epoch=4)
        assert (await fetch(world, 0, THIRD, current_leader_epoch=4)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await fetch(world, 0, THIRD)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_an_earlier_life_of_a_follower_is_refused() -> None:
    async with replicas() as world:
        lead(world)
        append(world)
        assert (await fetch(world, 0, broker_epoch=8)).error_code == ErrorCode.NONE
        assert (await fetch(world, 1, broker_epoch=7)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert world.partition.log.high_watermark == 0


@pytest.mark.parametrize("broker_id", [OTHER, -1])
async def test_only_the_leader_is_read(broker_id: int) -> None:
    async with replicas() as world:
        world.lead(THIRD, 3, replicas=(ME, OTHER, THIRD))
        assert (await fetch(world, 0, broker_id)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_below_the_start_of_the_log_there_is_nothing_to_compare() -> None:
    async with replicas() as world:
        lead(world, isr=(ME,))
        append(world, 3)
        lead(world, epoch=2, isr=(ME,))
        world.partition.log.delete_records_before(2)
        for epoch in (0, 1):  # of 1, which this leader does not know, it would else say where 0 ended
            assert (await fetch(world, 1, last_fetched_epoch=epoch)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        # Nothing of an epoch at or below this one is here.
        world.partition.log.leader_epochs.clear()
        assert (await fetch(world, 3, last_fetched_epoch=0)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_the_id_of_another_topic_of_that_name() -> None:
    async with replicas() as world:
        lead(world)
        tell(world.metadata, led("t", b"j" * 16, {0: ME}))
        news = DelayedFetch(is_followers=True)
        wanted = ask(news)
        wanted.topic_id = b"j" * 16
        reading = begin(world, news, OTHER, by_id=True)
        await reading.read_all()
        assert reading.results[wanted].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


# --- what the leader learns -------------------------------------------------------------------------------------------


async def test_a_follower_that_has_caught_up_joins_by_its_fetch() -> None:
    async with replicas() as world:
        lead(world, isr=(ME,))
        append(world, 2)
        await fetch(world, 1)
        assert world.partition.leader is not None
        assert isinstance(world.partition.leader.isr, CommittedPartitionState)
        await fetch(world, 2)
        assert isinstance(world.partition.leader.isr, PendingExpand)


async def test_where_the_log_of_a_follower_starts() -> None:
    async with replicas() as world:
        lead(world)
        append(world, 2)
        await fetch(world, 2)
        world.partition.log.delete_records_before(1)
        await fetch(world, 2, log_start_offset=0)
        assert world.partition.low_watermark == 0
        await fetch(world, 2, log_start_offset=1)
        assert world.partition.low_watermark == 1


async def test_a_follower_of_a_busy_leader_stays_in_sync(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        lead(world)
        for offset in range(8):
            append(world)
            await fetch(world, offset)
            await trio.sleep(LAG_SECONDS / 2)
        world.partition.check_followers()
        assert world.partition.leader is not None
        assert isinstance(world.partition.leader.isr, CommittedPartitionState)


# --- waiting ----------------------------------------------------------------------------------------------------------


async def test_what_is_appended_wakes_a_follower_before_it_is_committed(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world, trio.open_nursery() as nursery:
        lead(world)
        follower, consumer = reads(world, OTHER), reads(world)
        woken: list[FetchReads] = []

        async def wait(reading: FetchReads) -> None:
            await reading.read_all()
            assert not reading.enough
            await reading.wait_for_more(3600, trio.lowlevel.checkpoint)
            woken.append(reading)

        nursery.start_soon(wait, follower)
        nursery.start_soon(wait, consumer)
        await trio.testing.wait_all_tasks_blocked()
        append(world)
        await trio.testing.wait_all_tasks_blocked()
        assert woken == [follower]
        assert offsets(result_of(follower)) == [0]
        await fetch(world, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert woken == [follower, consumer]
        assert offsets(result_of(consumer)) == [0]


async def test_the_end_of_a_wait_proves_nothing_new(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas() as world:
        lead(world)
        started = trio.current_time()
        reading = reads(world, OTHER)
        await reading.read_all()
        await reading.wait_for_more(LAG_SECONDS, trio.lowlevel.checkpoint)
        assert world.partition.leader is not None
        assert world.partition.leader.followers[OTHER].last_caught_up == started


@pytest.mark.parametrize("change", ["new-epoch", "follower", "stopped"])
async def test_a_follower_that_waits_hears_of_a_change(autojump_clock: trio.testing.MockClock, change: str) -> None:
    async with replicas() as world, trio.open_nursery() as nursery:
        lead(world)
        reading = reads(world, OTHER, asked={"current_leader_epoch": 0})

        async def wait() -> None:
            await reading.read_all()
            await reading.wait_for_more(3600, trio.lowlevel.checkpoint)

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        if change == "new-epoch":
            lead(world, epoch=1)
        elif change == "follower":
            world.lead(OTHER, 1, replicas=(ME, OTHER))
        else:
            world.stop()
        await trio.testing.wait_all_tasks_blocked()
        fenced = ErrorCode.NOT_LEADER_OR_FOLLOWER if change == "stopped" else ErrorCode.FENCED_LEADER_EPOCH
        assert result_of(reading).error_code == fenced


# --- sessions ---------------------------------------------------------------------------------------------------------


async def test_a_follower_s_session_takes_the_place_of_a_consumer_s() -> None:
    cache = FetchSessionCache(2, random.Random(1))
    key = ("t", 0)

    def create(*, is_followers: bool = False) -> FetchSession | None:
        news = DelayedFetch(is_followers=is_followers)
        return cache.create(False, {key: ask(news)}, news)

    first = create()
    follower = create(is_followers=True)
    assert first is not None
    assert follower is not None
    assert create() is None
    assert create(is_followers=True) is not None
    assert cache.partitions(first.session_id) == []
    assert cache.partitions(follower.session_id) != []
    # Followers do not take each other's.
    assert create(is_followers=True) is None
