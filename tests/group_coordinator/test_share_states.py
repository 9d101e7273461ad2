"""The share coordinator has to begin with a partition before members of a share group get it, and to delete what it keeps."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode, KafkaError
from ottla.share_coordinator.state import NOT_BEGUN, SharePartitionKey

from .helpers.share_groups import MemoryStates, ShareMembers, share_groups, topic_id

REFUSED = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def key(partition: int, topic: str = "t") -> SharePartitionKey:
    return SharePartitionKey("g", topic_id(topic), partition)


async def deleted(beat: ShareMembers, group: str = "g") -> ErrorCode:
    results = await beat.world.groups.delete_groups([group], beat.world.flush)
    return ErrorCode(results[0].error_code)


async def test_states_begin_at_the_epoch_of_the_group(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat("A", 0)
        await beat.asked()
        state = beat.states.states[key(1)]
        assert (state.state_epoch, state.start_offset) == (2, NOT_BEGUN)


async def test_what_is_refused_is_asked_for_by_the_next_heartbeat(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.states.error, beat.states.refuses = REFUSED, lambda refused: refused.partition == 1
        await beat("A", 0)
        await beat.next_target()
        assert beat.written().endswith("15(t[0,1];;) | 15(;t[0];)")
        assert await beat("A", 2) == (3, {"t": [0]})
        await beat.asked()
        beat.states.error = None
        await beat("A", 3)
        await beat.next_target()
        assert await beat("A", 3) == (4, {"t": [0, 1]})
        assert [what for what, _ in beat.states.asked] == ["initialize"] * 4


async def test_heartbeats_do_not_wait_and_do_not_ask_twice(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.states.gate = trio.Event()
        await beat("A", 0)
        beat.written()
        for member in "ABC":
            await beat(member, 0)
        assert "15(" not in beat.written()
        await beat.asked()
        assert len(beat.states.asked) == 2
        beat.states.gate.set()
        await beat.next_target()
        await beat("A", 0)
        assert len(beat.states.asked) == 2


async def test_an_answer_that_does_not_come_is_asked_for_again(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.states.gate = trio.Event()
        await beat("A", 0)
        await trio.sleep(29)
        await beat("A", 2)
        assert len(beat.states.asked) == 2
        await trio.sleep(2)
        beat.states.gate.set()
        await beat("A", 2)
        await beat.next_target()
        assert len(beat.states.asked) == 4
        assert (await beat("A", 2))[1] == {"t": [0, 1]}


async def test_a_topic_gets_partitions(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A"))["A"]
        state = beat.states.states[key(0)]
        beat.topic("t", 3)
        assert (await beat("A", epoch))[0] == epoch + 1  # the topics have changed
        assert beat.written().endswith("15(t[2];t[0,1];)")
        await beat.next_target()
        assert await beat("A", epoch + 1) == (epoch + 2, {"t": [0, 1, 2]})
        assert beat.states.states[key(0)] is state


async def test_a_topic_is_deleted_and_made_again(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.topic("u", 1)
        epoch = (await beat.stable("A", names=["t", "u"]))["A"]
        beat.topic("u", None)
        beat.world.groups.delete_topics(["u"])
        assert beat.written().endswith("15(;t[0,1];)")
        assert await beat("A", epoch) == (epoch + 1, {"t": [0, 1]})
        beat.world.topics.put(
            "u", beat.world.topics.find("t")._replace(topic_id=b"another u       ", partition_count=1)
        )
        await beat.next_target()
        epoch = (await beat("A", epoch + 1))[0]
        await beat.next_target()
        beat.world.groups.delete_topics(["u"])  # of the topic that was there before
        response = await beat.send("A", epoch)
        assert {each.topic_id for each in response.assignment.topic_partitions} == {topic_id("t"), b"another u       "}


async def test_a_new_coordinator_asks_for_what_waits(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.states.gate = trio.Event()
        await beat("A", 0)
        states = MemoryStates()
        async with share_groups(make_world, states) as after:
            await after("A", 2)
            await after.next_target()
            assert len(states.states) == 2
            assert await after("A", 2) == (3, {"t": [0, 1]})


async def test_what_moves_away_writes_no_more(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.states.gate = trio.Event()
        await beat("A", 0)
        await beat.asked()
        beat.written()
        beat.world.groups.unload(0)
        beat.states.gate.set()
        await beat.asked()
        assert beat.written() == ""


async def test_a_group_is_deleted_with_its_states(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A")
        assert await deleted(beat) is ErrorCode.NON_EMPTY_GROUP
        assert len(beat.states.states) == 2
        await beat("A", -1)
        beat.written()
        assert await deleted(beat) is ErrorCode.NONE
        assert beat.written() == "15(;;t) | t12 t15 t11"
        assert (beat.states.states, beat.group) == ({}, None)
        assert await deleted(beat) is ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_deletion_that_fails_is_taken_up(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A")
        await beat("A", -1)
        beat.states.error = REFUSED
        assert await deleted(beat) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (beat.group.is_empty, len(beat.states.states)) == (True, 2)
        beat.states.error = None
        assert await deleted(beat) is ErrorCode.NONE
        assert beat.states.states == {}


async def test_a_member_joins_while_its_group_is_deleted(make_world: Any, autojump_clock: MockClock) -> None:
    """The states are begun after they have been deleted, and the group stays."""
    async with share_groups(make_world) as beat, trio.open_nursery() as nursery:
        await beat.stable("A")
        await beat("A", -1)
        beat.states.gate = trio.Event()
        codes: list[ErrorCode] = []

        async def delete() -> None:
            codes.append(await deleted(beat))

        nursery.start_soon(delete)
        await beat.asked()
        count = len(beat.states.asked)
        epoch, _ = await beat("B", 0)
        await beat.asked()
        assert len(beat.states.asked) == count
        beat.states.gate.set()
        await beat.next_target()
        assert codes == [ErrorCode.NON_EMPTY_GROUP]
        assert await beat("B", epoch) == (epoch + 1, {"t": [0, 1]})
        assert {state.state_epoch for state in beat.states.states.values()} == {epoch}


async def test_a_group_without_states_is_deleted(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat("A", 0, ["absent"])
        await beat("A", -1)
        assert await deleted(beat) is ErrorCode.NONE
        assert beat.states.asked == []


async def test_a_group_without_members_does_not_expire(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A")
        await beat("A", -1)
        await trio.sleep(30 * 24 * 3600)
        await beat.world.groups.expire_offsets()
        assert beat.group.is_empty


async def test_other_groups_keep_a_group_id(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.world.commit(5)
        assert await beat.refused("A", 0) is ErrorCode.GROUP_ID_NOT_FOUND
        await beat("A", 0, group="s")
        assert (await beat.world.join(group="s")).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
