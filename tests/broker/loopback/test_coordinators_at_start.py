"""Partitions of coordinators that a broker comes to lead while it starts: it serves each of them once it is ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.base.seams import InlineWorkers
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

from ..helpers.controller_world import SECONDS, ControllerWorld, until

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
OWN = {"offsets_topic_replication_factor": "1", "transaction_state_log_replication_factor": "1"}
GROUP, TRANSACTION = 0, 1


class SlowReads(InlineWorkers):
    """Reads of a file wait until ``go_on``, the first of which is told."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.go_on = trio.Event()

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        if getattr(function, "__name__", "") == "read":
            self.begun.set()
            await self.go_on.wait()
        return await super().run(function, *args)


async def coordinator(world: ControllerWorld, key_type: int, key: str) -> int:
    """The broker that coordinates it, as broker 2 tells."""
    with trio.fail_after(SECONDS):
        while True:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            (found,) = (await world.ask(2, request, 4)).coordinators
            if not found.error_code:
                return int(found.node_id)
            await trio.sleep(0.05)


async def commit(world: ControllerWorld, group: str) -> int:
    """Have a group commit an offset; which broker coordinates it."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])
    node_id = await coordinator(world, GROUP, group)
    with trio.fail_after(SECONDS):
        while (await world.ask(node_id, request, 8)).topics[0].partitions[0].error_code:
            await trio.sleep(0.05)
    return node_id


async def test_each_start_serves_all_groups(autojump_clock: MockClock) -> None:
    """The leaders of what was led before come a moment before or after the broker is done with its start."""
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, {1: "controller", 2: "broker", 3: "broker"})
        world.format()
        await world.start(**OWN)
        await world.create(2, "t")
        groups = [group for group in (f"g{number}" for number in range(9)) if await commit(world, group) == 3]
        assert groups
        for _ in range(6):
            await world.stop(3)
            await world.start(3, **OWN)
            with trio.fail_after(SECONDS):
                for group in groups:
                    topic = OffsetFetchRequestTopics(name="t", partition_indexes=[0])
                    asked = OffsetFetchRequestGroup(group_id=group, topics=[topic])
                    while (found := (await world.ask(3, OffsetFetchRequest(groups=[asked]), 8)).groups[0]).error_code:
                        await trio.sleep(0.05)
                    assert found.topics[0].partitions[0].committed_offset == 1
        nursery.cancel_scope.cancel()


async def test_what_it_comes_to_lead_while_it_loads_is_loaded_as_well(autojump_clock: MockClock) -> None:
    """Another topic is made while the broker, which others know to be there, reads what it led before."""
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, {1: "controller", 2: "broker", 3: "broker"})
        world.format()
        await world.start(**OWN)
        await world.create(2, "t")
        assert {await commit(world, f"g{number}") for number in range(9)} == {2, 3}
        await world.stop(3)
        slow = world.workers[3] = SlowReads()
        life = world.start_soon(3, **OWN)
        with trio.fail_after(SECONDS):
            await slow.begun.wait()
        ids = {key: await coordinator(world, TRANSACTION, key) for key in map(str, range(9))}
        assert set(ids.values()) == {2, 3}
        topics = world.services(3).metadata
        await until(lambda: "__transaction_state" in topics.image.topics)
        slow.go_on.set()
        with trio.fail_after(SECONDS):
            await life.ready.wait()
        for key, node_id in ids.items():
            request = InitProducerIdRequest(transactional_id=key, transaction_timeout_ms=60_000)
            with trio.fail_after(SECONDS):
                while (error := (await world.ask(node_id, request, 4)).error_code) != ErrorCode.NONE:
                    assert error != ErrorCode.NOT_COORDINATOR, "it has not been loaded"
                    await trio.sleep(0.05)
        nursery.cancel_scope.cancel()
