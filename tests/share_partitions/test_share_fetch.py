"""Fetches of members that wait: a member that has gone acquires nothing, and who was told of records passes the word on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ottla.base.presence import Presence
from ottla.share_partitions.acquisition import RecordLimits
from ottla.share_partitions.share_fetch import Fetched, ShareFetch, ShareFetchLimits
from ottla.tests.simulation.share.world import KEYS, Life, ShareWorld

LIMITS = ShareFetchLimits(RecordLimits(500, 500), 1, 1 << 20)
PATIENCE = 60.0


@asynccontextmanager
async def leader() -> AsyncIterator[tuple[ShareWorld, Life]]:
    """A leader of two partitions without records."""
    async with trio.open_nursery() as nursery:
        world = ShareWorld(1)
        world.nursery = nursery
        await world.coordinators.begin(nursery, KEYS)
        yield world, await world.begin_life()
        nursery.cancel_scope.cancel()


async def fetch(
    life: Life, member_id: str, found: list[tuple[str, Fetched]], limits: ShareFetchLimits = LIMITS
) -> None:
    async def flush() -> None:
        pass

    results = await ShareFetch(life.share_partitions, member_id, KEYS[:1], limits).run(PATIENCE, flush)
    found.extend((member_id, result) for result in results)


def append(world: ShareWorld, life: Life) -> None:
    world.logs[0].append()
    life.changed()


async def test_a_member_that_has_gone_acquires_nothing(autojump_clock: MockClock) -> None:
    async with leader() as (world, life):
        found: list[tuple[str, Fetched]] = []
        presence = Presence()

        async def present() -> None:
            presence.begin()
            await fetch(life, "gone", found)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(present)
            await wait_all_tasks_blocked()
            presence.leave()
            append(world, life)  # before the task has run
        assert found == []
        await fetch(life, "there", found)
        assert [result.acquired[0].delivery_count for _, result in found] == [1]


async def test_records_wake_one_member_after_the_other(autojump_clock: MockClock) -> None:
    async with leader() as (world, life):
        found: list[tuple[str, Fetched]] = []
        one_record = ShareFetchLimits(RecordLimits(1, 500, is_exact=True), 1, 1 << 20)
        async with trio.open_nursery() as nursery:
            for name in ("a", "b", "c"):
                nursery.start_soon(fetch, life, name, found, one_record)
                await wait_all_tasks_blocked()
            while world.logs[0].log_end_offset - world.logs[0].log_start_offset < 3:
                world.logs[0].append()
            life.changed()
        assert sorted(name for name, _ in found) == ["a", "b", "c"]
        assert sorted(result.acquired[0].first_offset for _, result in found) == [0, 1, 2]
        assert trio.current_time() < PATIENCE


async def test_who_is_told_and_leaves_tells_the_next_one(autojump_clock: MockClock) -> None:
    async with leader() as (world, life):
        found: list[tuple[str, Fetched]] = []
        presence = Presence()

        async def present() -> None:
            presence.begin()
            await fetch(life, "a", found)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(present)
            await wait_all_tasks_blocked()
            nursery.start_soon(fetch, life, "b", found)
            await wait_all_tasks_blocked()
            append(world, life)
            presence.leave()
        assert [name for name, _ in found] == ["b"]
        assert trio.current_time() < PATIENCE
