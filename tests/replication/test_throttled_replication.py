"""Replication that is throttled: what a leader keeps back, what a follower does not ask for, moves between log directories."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.handlers import fetch as fetch_handler
from ottla.replication.quotas import Quota

from .helpers.fetches import reads, result_of
from .helpers.followers import batch as batch_at
from .helpers.replicas import ME, NOW_MS, OTHER, THIRD, Replicas, batch, replicas
from .helpers.scripted_leader import data, leader
from .test_log_dir_moves import new_broker

ALL = (ME, OTHER, THIRD)
SIZE = len(batch())


# --- the leader -------------------------------------------------------------------------------------------------------


async def sent(world: Replicas, broker_id: int, offset: int = 0) -> int:
    """How many bytes a follower gets at once."""
    reading = reads(world, broker_id, offset)
    await reading.read_all()
    fetch_handler._response(reading, reading.results, None)
    assert result_of(reading).error_code == ErrorCode.NONE
    total = reading.total
    reading.release()
    return total


def lead(world: Replicas, isr: tuple[int, ...] = (ME, OTHER)) -> None:
    assert world.lead(isr=isr, replicas=ALL) == ErrorCode.NONE
    world.partition.append(batch(), NOW_MS)


async def test_a_leader_keeps_back_what_exceeds_its_quota(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas(leader_replication_throttled_replicas=(f"0:{ME}",)) as world:
        lead(world)
        world.manager.quotas.leader.limit = SIZE // 2
        assert await sent(world, THIRD) == SIZE, "the first bytes are over the quota only when they are sent"
        assert await sent(world, THIRD) == 0
        assert await sent(world, OTHER) == SIZE, "who is in sync gets everything"
        await trio.sleep(5)
        assert await sent(world, THIRD) == SIZE


@pytest.mark.parametrize("throttled", [(), ("0:2", "1:1")])
async def test_replicas_that_are_not_listed_are_free(
    throttled: tuple[str, ...], autojump_clock: trio.testing.MockClock
) -> None:
    async with replicas(leader_replication_throttled_replicas=throttled) as world:
        lead(world)
        world.manager.quotas.leader.limit = 0
        assert [await sent(world, THIRD), await sent(world, THIRD)] == [SIZE, SIZE]
        assert world.manager.quotas.leader.rate(trio.current_time()) == 0


async def test_what_a_replica_in_sync_gets_counts(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas(leader_replication_throttled_replicas=("*",)) as world:
        lead(world)
        world.manager.quotas.leader.limit = 1
        assert await sent(world, OTHER) == SIZE
        assert await sent(world, THIRD) == 0


async def test_progress_of_a_follower_that_is_kept_back_is_noted(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas(leader_replication_throttled_replicas=("*",)) as world:
        lead(world, isr=(ME,))
        quota = world.manager.quotas.leader
        quota.limit = 1
        quota.record(1000, trio.current_time())
        world.partition.append(batch(), NOW_MS)
        assert await sent(world, THIRD, offset=1) == 0
        role = world.partition.leader
        assert role is not None and role.followers[THIRD].log_end_offset == 1


async def test_an_offset_out_of_range_is_told_however_throttled(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas(leader_replication_throttled_replicas=("*",)) as world:
        lead(world)
        quota = world.manager.quotas.leader
        quota.limit = 1
        quota.record(1000, trio.current_time())
        reading = reads(world, THIRD, 9)
        await reading.read_all()
        assert result_of(reading).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_appends_do_not_wake_a_follower_that_is_kept_back(autojump_clock: trio.testing.MockClock) -> None:
    async with replicas(leader_replication_throttled_replicas=("*",)) as world, trio.open_nursery() as nursery:
        lead(world, isr=(ME,))
        quota = world.manager.quotas.leader
        quota.limit = SIZE
        quota.record(2 * SIZE, trio.current_time())
        reading = reads(world, THIRD)
        await reading.read_all()
        assert (reading.total, reading.enough) == (0, False)
        nursery.start_soon(reading.wait_for_more, 4.0, trio.lowlevel.checkpoint)
        await trio.sleep(0.5)
        world.partition.append(batch(), NOW_MS)
        await trio.sleep(3)
        assert reading.total == 0, "it waits"
        await trio.sleep(1)
        assert reading.total == 2 * SIZE, "by then the quota allows it"
        reading.release()


# --- the follower -----------------------------------------------------------------------------------------------------


def follower_quota(limit: int) -> Quota:
    quota = Quota(11, 1)
    quota.limit = limit
    return quota


async def test_a_follower_does_not_ask_for_what_exceeds_its_quota(autojump_clock: trio.testing.MockClock) -> None:
    records = batch_at(0)
    throttled = {"follower_replication_throttled_replicas": (f"0:{ME}",)}
    async with leader(quota=follower_quota(len(records) // 4), **throttled) as (peer, fetcher):
        for number in range(2):
            fetcher.follow(peer.partition(number))
        await peer.fetch()
        before = trio.current_time()
        await peer.answer(data(0, records, high_watermark=9), data(1, records, high_watermark=9))
        assert (list(await peer.fetch()), peer.forgotten) == ([1], [0]), "the other one is not listed"
        while not peer.asked.get(0):
            await trio.sleep(0.1)
            await peer.answer()
            await peer.fetch()
        assert 3.9 < trio.current_time() - before < 5
        assert peer.asked[0].fetch_offset == 1


async def test_a_follower_in_sync_is_not_throttled(autojump_clock: trio.testing.MockClock) -> None:
    records = batch_at(0)
    async with leader(quota=follower_quota(1), follower_replication_throttled_replicas=("*",)) as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()
        before = trio.current_time()
        await peer.answer(data(0, records, high_watermark=1))
        assert (await peer.fetch())[0].fetch_offset == 1
        await peer.answer(data(0, batch_at(1), high_watermark=9))
        await peer.fetch()
        assert trio.current_time() - before > 1, "it is behind, and over the quota"


async def test_a_limit_that_is_lifted_is_noticed_within_the_backoff(autojump_clock: trio.testing.MockClock) -> None:
    quota = follower_quota(1)
    async with leader(quota=quota, follower_replication_throttled_replicas=("*",)) as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()
        await peer.answer(data(0, batch_at(0), high_watermark=9))
        await trio.sleep(3.5)
        before = trio.current_time()
        quota.limit = 1 << 40
        await peer.fetch()
        assert trio.current_time() - before <= 1


async def test_without_a_limit_the_rate_is_measured_all_the_same(autojump_clock: trio.testing.MockClock) -> None:
    quota = Quota(11, 1)
    async with leader(quota=quota, follower_replication_throttled_replicas=("*",)) as (peer, fetcher):
        fetcher.follow(peer.partition())
        await peer.fetch()
        await peer.answer(data(0, batch_at(0), high_watermark=9))
        await peer.fetch()
        assert quota.rate(trio.current_time()) == len(batch_at(0))


# --- moves between log directories ---------------------------------------------------------------------------------------


async def test_a_move_between_folders_is_as_fast_as_its_quota(autojump_clock: trio.testing.MockClock) -> None:
    async def took(limit: int) -> float:
        broker = await new_broker()
        broker.append(400)
        size = broker.replicas.partition("t", 0).log.size
        broker.replicas.quotas.log_dirs.limit = limit
        broker.moves.alter("t", 0, "/b")
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.moves.run)
            while broker.places() != {"/b": (False, 0)}:
                await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
        assert broker.replicas.quotas.log_dirs.rate(trio.current_time()) > 0
        nonlocal expected
        expected = size / limit
        return trio.current_time() - began

    expected = 0.0
    assert await took(1 << 40) < 1
    seconds = await took(10_000)
    assert expected / 2 < seconds < expected * 1.5
    assert expected > 4
