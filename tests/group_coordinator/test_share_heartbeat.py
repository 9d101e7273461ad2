"""Members of share groups (KIP-932): joining, epochs, fences, leaving, sessions. Expectations were seen on Apache Kafka 4.3.1."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode

from .helpers.share_groups import SECOND, share_groups


async def test_the_first_member_gets_its_partitions_once_their_state_is_kept(
    make_world: Any, autojump_clock: MockClock
) -> None:
    async with share_groups(make_world) as beat:
        assert await beat("A", 0) == (2, {})
        assert beat.written() == "10A 11(2) 13A 12(2) 14A(2) 15(t[0,1];;)"
        await beat.asked()
        assert beat.written() == "15(;t[0,1];)"
        # The interval is not over: the epoch is the next one, the target the old one.
        assert await beat("A", 2) == (2, None)
        assert beat.written() == "11(3)"
        await trio.sleep(SECOND)
        assert await beat("A", 2) == (3, {"t": [0, 1]})
        assert beat.written() == "13A 12(3) 14A(3)"
        assert await beat("A", 3) == (3, None)
        assert beat.written() == ""


async def test_members_share_partitions(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A", "B", "C", "D")
        parts = [(await beat(member, 0))[1] for member in "ABCD"]
        assert sorted(map(str, parts)) == ["{'t': [0]}", "{'t': [0]}", "{'t': [1]}", "{'t': [1]}"]


async def test_another_member_takes_its_part(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A"))["A"]
        assert await beat("B", 0) == (epoch + 1, {"t": [1]})
        assert await beat("A", epoch) == (epoch + 1, {"t": [0]})
        assert await beat("A", epoch + 1) == (epoch + 1, None)
        # A target has just been made: the next member waits for another one.
        assert await beat("C", 0) == (epoch + 1, {})
        await trio.sleep(SECOND)
        assert (await beat("C", epoch + 1))[0] == epoch + 2


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("", 0), "MemberId can't be empty."),
        (("", 0, [], {"group": ""}), "MemberId can't be empty."),
        (("A", 0, [], {"group": ""}), "GroupId can't be empty."),
        (("A", 0, [], {"rack_id": ""}), "RackId can't be empty."),
        (("A", 0, []), "SubscribedTopicNames must be set in first request."),
        (("A", -2), "MemberEpoch is invalid."),
    ],
)
async def test_requests_that_are_refused(
    make_world: Any, autojump_clock: MockClock, arguments: tuple[Any, ...], why: str
) -> None:
    *plain, fields = (*arguments, {}) if not isinstance(arguments[-1], dict) else arguments
    async with share_groups(make_world) as beat:
        with pytest.raises(Exception, match=why) as refused:
            await beat(*plain, **fields)
        assert refused.value.code is ErrorCode.INVALID_REQUEST  # type: ignore[attr-defined]


async def test_fences(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        assert await beat.refused("A", 1) is ErrorCode.GROUP_ID_NOT_FOUND
        assert await beat.refused("A", -1) is ErrorCode.GROUP_ID_NOT_FOUND
        epoch = (await beat.stable("A"))["A"]
        assert await beat.refused("B", 1) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await beat.refused("B", -1) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await beat.refused("A", epoch + 1) is ErrorCode.FENCED_MEMBER_EPOCH
        await beat("B", 0)
        await trio.sleep(SECOND)
        assert (await beat("A", epoch))[0] == epoch + 1
        # The response may have been lost: the epoch before is as good, without conditions.
        assert (await beat("A", epoch))[0] == epoch + 1
        assert await beat.refused("A", epoch - 1) is ErrorCode.FENCED_MEMBER_EPOCH


async def test_a_known_member_that_joins_again_keeps_its_part(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A"))["A"]
        beat.written()
        assert await beat("A", 0) == (epoch, {"t": [0, 1]})
        assert await beat("A", epoch, ["t"]) == (epoch, {"t": [0, 1]})  # a full request
        assert beat.written() == ""


async def test_a_member_leaves(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A", "B"))["A"]
        beat.written()
        response = await beat.send("B", -1)
        assert (response.member_id, response.member_epoch, response.assignment) == ("B", -1, None)
        assert beat.written() == f"t14B t13B t10B 11({epoch + 1})"
        await trio.sleep(SECOND)
        assert await beat("A", epoch) == (epoch + 1, {"t": [0, 1]})
        await beat("A", -1)
        assert (beat.group.state_name, beat.group.epoch) == ("Empty", epoch + 2)


async def test_a_session_ends(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A", "B"))["A"]
        await trio.sleep(30)
        await beat("A", epoch)
        await trio.sleep(16)
        assert list(beat.group.members) == ["A"]
        assert await beat("A", epoch) == (epoch + 1, {"t": [0, 1]})
        assert await beat.refused("B", epoch) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_session_is_ended_by_hand(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A", "B"))["A"]
        assert beat.world.groups.expire_sessions("g", "A") == ["A"]
        assert await beat.refused("A", epoch) is ErrorCode.UNKNOWN_MEMBER_ID
        assert beat.world.groups.expire_sessions("g", None) == ["B"]
        assert beat.group.is_empty


async def test_a_rebalance_is_held_up(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A"))["A"]
        beat.world.groups.holds.hold("g", lambda: None)
        assert await beat("B", 0) == (epoch, {})
        await trio.sleep(60)
        assert beat.group.target.epoch == epoch
        beat.world.groups.holds.release("g")
        assert (await beat("B", 0))[0] > epoch


async def test_the_times_of_a_group(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world, heartbeat_interval_ms=7000, session_timeout_ms=50_000) as beat:
        assert (await beat.send("A", 0)).heartbeat_interval_ms == 7000
        await trio.sleep(49)
        assert beat.group.member_count == 1
        await trio.sleep(2)
        assert beat.group.member_count == 0


async def test_a_group_that_is_full(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world, max_size=1) as beat:
        await beat("A", 0)
        assert await beat.refused("B", 0) is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert (await beat("A", 0))[0] == 2
        await beat("A", -1)
        await beat("B", 0)


async def test_a_member_reads_other_topics(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.topic("u", 1)
        epoch = (await beat.stable("A"))["A"]
        await beat("B", 0)
        # A target has just been made. What is read no more is taken away at once, and the rest comes with the next.
        assert await beat("B", epoch + 1, ["u"]) == (epoch + 1, {})
        await beat.next_target()
        assert await beat("B", epoch + 1) == (epoch + 2, {"u": [0]})


async def test_a_topic_that_nobody_reads_any_more(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.topic("u", 1)
        epoch = (await beat.stable("A"))["A"]
        beat.topic("t", 5)
        await beat("A", epoch, ["u"])
        assert beat.written().endswith("15(u[0];t[0,1];)")
        await beat.next_target()
        epoch, assigned = await beat("A", epoch + 1)
        assert assigned == {"u": [0]}
        for _ in range(3):
            await trio.sleep(SECOND)
            assert await beat("A", epoch) == (epoch, None)


async def test_a_lost_response_to_a_change_without_a_new_target(make_world: Any, autojump_clock: MockClock) -> None:
    """The epoch before stays the one before."""
    async with share_groups(make_world) as beat:
        beat.topic("u", 1)
        epoch = (await beat.stable("A"))["A"]
        assert (await beat("B", 0))[0] == epoch + 1
        assert (await beat("A", epoch))[0] == epoch + 1
        assert await beat("A", epoch + 1, ["u"]) == (epoch + 1, {})
        assert await beat("A", epoch, ["u"]) == (epoch + 1, {})


async def test_members_with_different_topics_of_which_one_does_not_exist(
    make_world: Any, autojump_clock: MockClock
) -> None:
    """They do not read the same, so each topic is distributed by itself."""
    async with share_groups(make_world) as beat:
        beat.topic("one", 1)
        beat.topic("two", 1)
        await beat("A", 0, ["one", "two"])
        await beat("B", 0, ["one", "two", "absent"])
        for _ in range(2):
            await beat.next_target()
            assigned = [(await beat("A", 0, ["one", "two"]))[1], (await beat("B", 0, ["one", "two", "absent"]))[1]]
        assert assigned == [{"one": [0], "two": [0]}] * 2


async def test_a_topic_that_does_not_exist(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        assert await beat("A", 0, ["absent"]) == (2, {})
        assert beat.written() == "10A 11(2) 13A 12(2) 14A(2)"
        beat.topic("absent", 1)
        await trio.sleep(SECOND)
        assert await beat("A", 2) == (3, None)
        await beat.next_target()
        assert await beat("A", 3) == (4, {"absent": [0]})


async def test_a_coordinator_takes_over(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A", "B"))["A"]
        before = beat.group
        async with share_groups(make_world, beat.states) as after:
            assert after.group == before
            assert await after("A", epoch) == (epoch, None)
            await trio.sleep(46)
            assert after.group.is_empty  # everybody had a session from the load on


async def test_a_response_waits_for_the_log(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.world.log.held = True
        with trio.move_on_after(1) as waiting:
            await beat("A", 0)
        assert waiting.cancelled_caught
        # Nobody is asked for a state before it is sure that it is known that it was asked for.
        assert beat.states.asked == []
        beat.world.log.release()
        await beat.asked()
        assert len(beat.states.asked) == 2
