"""Coordinators go where their partitions are led: who waits at the old one is answered, and the new one serves."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

from ...helpers.memory_cluster import MemoryCluster, running, until_true

ALL = (1, 2, 3)
OFFSETS = "__consumer_offsets"


def join() -> JoinGroupRequest:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id="readers",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=[protocol],
    )


async def coordinator(cluster: MemoryCluster, broker_id: int) -> int:
    answer = await cluster.ask(broker_id, FindCoordinatorRequest(key="readers"), 3)
    node: int = answer.node_id
    return node


async def test_who_waits_at_a_coordinator_that_goes_finds_the_next_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(*ALL, group_initial_rebalance_delay_ms="3600000", offsets_topic_num_partitions="1") as cluster:
        controller = cluster.controller_id()
        first, second = (broker_id for broker_id in ALL if broker_id != controller)
        await cluster.create(OFFSETS, [first, second])
        await until_true(lambda: _coordinates(cluster, controller, first))
        answers: list[Any] = []

        async def wait_in_group() -> None:
            answers.append(await cluster.ask(first, join(), 3))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_in_group)
            await trio.testing.wait_all_tasks_blocked()
            assert answers == []
            nursery.start_soon(cluster.stop, first)
        assert [answer.error_code for answer in answers] == [ErrorCode.NOT_COORDINATOR]
        await until_true(lambda: _coordinates(cluster, controller, second))
        await until_true(lambda: _serves(cluster, second))


async def _coordinates(cluster: MemoryCluster, asked: int, expected: int) -> bool:
    return await coordinator(cluster, asked) == expected


async def _serves(cluster: MemoryCluster, broker_id: int) -> bool:
    """Whether the broker knows about the group: it says that there is no such member, and not that it is elsewhere."""
    request = HeartbeatRequest(group_id="readers", generation_id=1, member_id="unknown")
    code: int = (await cluster.ask(broker_id, request, 3)).error_code
    return code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_others_say_that_they_are_not_the_coordinator(autojump_clock: trio.testing.MockClock) -> None:
    async with running(*ALL) as cluster:
        await cluster.create(OFFSETS, [2])
        await until_true(lambda: _coordinates(cluster, 1, 2))
        await until_true(lambda: _serves(cluster, 2))
        for broker_id in (1, 3):
            assert (await cluster.ask(broker_id, join(), 3)).error_code == ErrorCode.NOT_COORDINATOR
