"""Targets of large groups, which are made in steps, and expressions, whose topics are looked up beside the requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.client import Client
from ottla.group_coordinator.records import read_batch
from ottla.group_coordinator.target_assignments import MOST_AT_ONCE
from ottla.group_coordinator.topics import TopicSize
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.tests.group_coordinator.helpers.embedded_protocol import subscribed
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.consumer_group_records import ConsumerGroupTargetAssignmentMetadataKey
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.records import RecordBatch

pytest.importorskip("re2")

LARGE = MOST_AT_ONCE + 1
SECOND = 1.001


class Members:
    """Members of the group ``g`` at a running coordinator."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.epochs: dict[str, int] = {}

    def topic(self, name: str, count: int) -> None:
        self.world.topics.put(name, TopicSize(name.encode().ljust(16, b"."), count))

    async def beat(self, member: str, names: list[str] | None = None, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """A heartbeat of a member, which joins with its first one, and has nothing to give up."""
        epoch = self.epochs.get(member, 0)
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member,
            member_epoch=fields.pop("epoch", epoch),
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=names,
            topic_partitions=[],
            **fields,
        )
        may_describe = self.world.may_describe
        client = Client("c", "/127.0.0.1", 1)
        response = await self.world.groups.consumer_group_heartbeat(request, client, self.world.flush, may_describe)
        self.epochs[member] = response.member_epoch
        assert isinstance(response, ConsumerGroupHeartbeatResponse)
        return response

    async def join(self, member: str) -> JoinGroupResponse:
        """JoinGroup of a classic member, which has nothing to give up."""
        request = JoinGroupRequest(
            group_id="g",
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscribed("t"))],
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
        )
        return await self.world.groups.join_group(request, Client("c", "/127.0.0.1", 9), self.world.flush)

    def group(self) -> Any:
        return self.world.groups.find("g").group

    async def many(self) -> None:
        """Eight members, which the next heartbeat gives a target: it takes a batch for each."""
        self.topic("t", 8 * LARGE)
        for member in "ABCDEFGH":
            await self.beat(member, ["t"])
        await trio.sleep(SECOND)

    async def wait_begun(self) -> None:
        """Return while the target is being made."""
        while not self.world.groups._targets._under_way:
            await trio.lowlevel.checkpoint()


def count_of(response: ConsumerGroupHeartbeatResponse) -> int:
    assert response.assignment is not None
    return sum(len(topic.partitions) for topic in response.assignment.topic_partitions)


@asynccontextmanager
async def running(make_world: Any) -> AsyncIterator[Members]:
    world = make_world()
    world.may_describe = None
    await world.groups.load(0, 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.groups.run)
        await wait_all_tasks_blocked()
        yield Members(world)
        nursery.cancel_scope.cancel()


async def test_a_large_target_is_there_with_the_heartbeat_that_makes_it(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        members.topic("t", LARGE)
        assert count_of(await members.beat("A", ["t"])) == LARGE
        group = members.group()
        assert (group.epoch, group.target.epoch, group.state_name) == (2, 2, "Stable")
        assert len(members.world.log.partitions[0]) >= 4, "several batches"


async def test_heartbeats_of_the_group_wait_for_the_target_and_others_do_not(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        await members.many()
        ended: list[str] = []

        async def beat(member: str) -> None:
            await members.beat(member)
            ended.append(member)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(beat, "A")
            await members.wait_begun()
            nursery.start_soon(beat, "B")
            assert await members.world.commit(1, group="other") == ErrorCode.NONE
            ended.append("other")
        assert ended[0] == "other"
        assert members.epochs["B"] == members.group().target.epoch == members.group().epoch == 9


async def test_a_member_that_leaves_meanwhile_has_no_part_of_the_target(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        await members.many()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(members.beat, "A")
            await members.wait_begun()
            await members.beat("B", epoch=-1)
        group = members.group()
        assert group.target.epoch == group.epoch == 10
        assert set(group.target.members) == set("ACDEFGH")
        parts = [group.target.of(member)[b"t".ljust(16, b".")] for member in group.target.members]
        assert sum(map(len, parts)) == len(frozenset().union(*parts)) == 8 * LARGE


async def test_a_member_that_is_removed_while_its_target_is_made_is_told_so(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        await members.many()
        async with trio.open_nursery() as nursery:

            async def refused() -> None:
                with pytest.raises(KafkaError) as error:
                    await members.beat("A")
                assert error.value.code is ErrorCode.UNKNOWN_MEMBER_ID

            nursery.start_soon(refused)
            await members.wait_begun()
            await members.beat("A", epoch=-1)
        assert "A" not in members.group().members
        assert "A" not in members.group().target.members


async def test_joins_of_classic_members_wait_for_the_target(make_world: Any, autojump_clock: MockClock) -> None:
    async with running(make_world) as members:
        await members.many()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(members.beat, "A")
            await members.wait_begun()
            response = await members.join("z")
            assert members.group().target.epoch == 9
        assert (response.error_code, response.generation_id) == (ErrorCode.NONE, 9), "the one before its own"
        await trio.sleep(SECOND)
        response = await members.join("z")
        group = members.group()
        assert response.generation_id == group.target.epoch == group.epoch == 10
        assert len(group.target.of("z")) == 1


async def test_a_classic_member_that_is_removed_while_its_target_is_made_is_told_so(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        await members.many()
        async with trio.open_nursery() as nursery:

            async def refused() -> None:
                response = await members.join("z")
                assert (response.error_code, response.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")

            nursery.start_soon(refused)
            await members.wait_begun()
            identity = MemberIdentity(member_id="z")
            left = await members.world.groups.leave_group(
                LeaveGroupRequest(group_id="g", members=[identity]), members.world.flush
            )
            assert left.members[0].error_code == ErrorCode.NONE
        assert "z" not in members.group().members


async def test_a_group_that_is_downgraded_while_its_target_is_made(make_world: Any, autojump_clock: MockClock) -> None:
    async with running(make_world) as members:
        members.topic("t", 8 * LARGE)
        await members.beat("A", ["t"])
        await trio.sleep(SECOND)
        async with trio.open_nursery() as nursery:

            async def told() -> None:
                assert (await members.join("z")).error_code == ErrorCode.UNKNOWN_MEMBER_ID

            nursery.start_soon(told)
            await members.wait_begun()
            await members.beat("A", epoch=-1)
            assert members.group().type_name == "classic"
        response = await members.join("z")
        assert (response.error_code, response.leader) == (ErrorCode.NONE, "z")


async def test_a_join_that_cannot_be_written(make_world: Any, autojump_clock: MockClock) -> None:
    async with running(make_world) as members:
        members.topic("t", 1)
        await members.beat("A", ["t"])
        members.world.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert (await members.join("z")).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "z" not in members.group().members


async def test_a_join_is_answered_when_it_is_committed(make_world: Any, autojump_clock: MockClock) -> None:
    async with running(make_world) as members:
        members.topic("t", 1)
        await members.beat("A", ["t"])
        members.world.log.held = True
        async with trio.open_nursery() as nursery:
            answered: list[JoinGroupResponse] = []

            async def join() -> None:
                answered.append(await members.join("z"))

            nursery.start_soon(join)
            await wait_all_tasks_blocked()
            assert "z" in members.group().members
            assert not answered
            members.world.log.release()
        assert answered


async def test_a_target_that_was_cut_off_is_made_by_the_next_heartbeat(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        await members.many()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(members.beat, "A")
            await members.wait_begun()
            nursery.cancel_scope.cancel()
        group = members.group()
        assert (group.target.epoch, group.epoch) == (2, 9)
        await members.beat("B")
        assert members.group().target.epoch == 9


async def test_the_topics_of_an_expression_come_with_a_later_heartbeat(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        members.topic("orders-eu", 2)
        members.topic("orders-us", 3)
        members.topic("other", 5)
        assert count_of(await members.beat("A", subscribed_topic_regex="orders-.*")) == 0
        await wait_all_tasks_blocked()
        assert count_of(await members.beat("A")) == 5
        members.topic("orders-as", 1)
        await members.beat("A")
        await wait_all_tasks_blocked()
        assert (await members.beat("A")).assignment is None, "it was looked up less than 10 seconds ago"
        await trio.sleep(10.1)
        await members.beat("A")
        await wait_all_tasks_blocked()
        assert count_of(await members.beat("A")) == 6


async def test_a_member_does_not_read_what_it_may_not_describe(make_world: Any, autojump_clock: MockClock) -> None:
    async with running(make_world) as members:
        members.world.may_describe = lambda name: name != "orders-us"
        members.topic("orders-eu", 2)
        members.topic("orders-us", 3)
        await members.beat("A", subscribed_topic_regex="orders-.*")
        await wait_all_tasks_blocked()
        assert count_of(await members.beat("A")) == 2


async def test_what_is_no_expression_is_refused_and_changes_nothing(make_world: Any, autojump_clock: MockClock) -> None:
    async with running(make_world) as members:
        with pytest.raises(KafkaError) as error:
            await members.beat("A", subscribed_topic_regex="orders-[")
        assert error.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert members.world.groups.find("g") is None


async def test_an_unknown_group_comes_before_what_is_wrong_with_the_expression(make_world: Any) -> None:
    async with running(make_world) as members:
        with pytest.raises(KafkaError) as error:
            await members.beat("A", epoch=5, subscribed_topic_regex="orders-[")
        assert error.value.code is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_member_whose_target_is_refused_has_a_session_that_ends(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with running(make_world) as members:
        members.topic("t", LARGE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refused, members)
            await members.wait_begun()
            members.world.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert members.group().member_count == 1
        await trio.sleep(47)
        assert members.group().member_count == 0


async def refused(members: Members) -> None:
    with pytest.raises(KafkaError):
        await members.beat("A", ["t"])


async def test_a_shard_that_has_moved_away_writes_nothing_more(
    make_world: Any, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(make_world) as members:
        log, groups = members.world.log, members.world.groups
        append = log.append

        def lose_with_the_target(partition: int, batch: bytearray) -> int:
            end: int = append(partition, batch)
            records = read_batch(RecordBatch(batch), SkippedRecords())
            if any(isinstance(each.key, ConsumerGroupTargetAssignmentMetadataKey) for _, each in records if each):
                groups.unload(0)
            return end

        monkeypatch.setattr(log, "append", lose_with_the_target)
        members.topic("t", LARGE)
        with pytest.raises(KafkaError) as moved:
            await members.beat("A", ["t"])
        assert moved.value.code is ErrorCode.NOT_COORDINATOR
        await groups.load(0, 2)
        group = members.group()
        assert (group.target.epoch, group.members["A"].epoch) == (2, 0), "the member has not come to its target"


async def test_half_a_target_is_finished_whatever_the_clock_says(make_world: Any, autojump_clock: MockClock) -> None:
    async with running(make_world) as members:
        await members.many()
        world = members.world
        before = len(world.log.partitions[0])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refused, members)
            while len(world.log.partitions[0]) == before:
                await trio.lowlevel.checkpoint()
            world.log.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert members.group().target.epoch == 2
        world.clock.start_ms -= 500
        await members.beat("B")
        assert members.group().target.epoch == members.epochs["B"] == 9
