"""The coordinator as a whole: loading, moving, waiting for commits, stalls, timers under a simulated clock."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ottla.base.errors import ErrorCode, KafkaError
from ottla.replication.coordinator_log import java_hash
from ottla.wire.records import RecordsBuilder


def code_of(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


@pytest.mark.parametrize(
    "text",
    ["", "a", "console-consumer-12345", "grüppe-日本-😀"],
)
def test_java_hash_is_an_int32_that_agrees_with_the_definition(text):
    units = memoryview(text.encode("utf-16-be")).tolist()
    pairs = [high << 8 | low for high, low in zip(units[::2], units[1::2], strict=True)]
    expected = sum(unit * 31 ** (len(pairs) - 1 - index) for index, unit in enumerate(pairs)) & 0xFFFFFFFF
    assert java_hash(text) & 0xFFFFFFFF == expected
    assert -(1 << 31) <= java_hash(text) < 1 << 31


async def test_a_group_goes_to_kafkas_partition(memory_log, make_world):
    groups = make_world(offsets_topic_num_partitions=50).groups
    # "polygenelubricants" is the well-known string whose hash is the smallest int32.
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert groups.partition_for("polygenelubricants") == 0
    assert groups.partition_for("a") == 97 % 50
    memory_log.count = 7
    assert groups.partition_for("a") == 97 % 7, "the topic has another number of partitions than the setting says"


async def test_a_partition_that_is_not_led_here_is_not_coordinated_here(make_world):
    world = make_world()
    with pytest.raises(KafkaError) as error:
        await world.commit(1)
    assert code_of(error) is ErrorCode.NOT_COORDINATOR
    assert await world.groups.list_groups((), (), world.flush) == []


async def test_while_a_partition_loads_clients_are_told_so_and_heartbeats_pass(memory_log, make_world):
    world = make_world()
    memory_log.load_gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.groups.load, 0, 1)
        await wait_all_tasks_blocked()
        for request in (world.commit(1), world.fetch(), world.join(), world.groups.list_groups((), (), world.flush)):
            with pytest.raises(KafkaError) as error:
                await request
            assert code_of(error) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert await world.heartbeat("m", 1) == ErrorCode.NONE
        memory_log.load_gate.set()
    assert await world.commit(1) == ErrorCode.NONE


async def test_a_partition_that_moves_on_while_it_loads_is_not_taken(memory_log, make_world):
    world = make_world()
    memory_log.load_gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.groups.load, 0, 1)
        await wait_all_tasks_blocked()
        world.groups.unload(0)
        memory_log.load_gate.set()
    with pytest.raises(KafkaError) as error:
        await world.commit(1)
    assert code_of(error) is ErrorCode.NOT_COORDINATOR


async def test_a_load_that_begins_too_late_takes_nothing(memory_log, make_world):
    world = make_world()
    memory_log.led = False
    await world.groups.load(0, 1)
    assert await world.groups.list_groups((), (), world.flush) == []
    with pytest.raises(KafkaError) as error:
        await world.commit(1)
    assert code_of(error) is ErrorCode.NOT_COORDINATOR


async def test_a_rebalance_goes_on_when_the_coordinator_is_elected_again(make_world, autojump_clock):
    world = make_world()
    await world.groups.load(0, 1)
    first = await world.enter()
    second = (await world.join()).member_id
    answers = []

    async def join() -> None:
        answers.append((await world.join(second)).error_code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(join)
        await wait_all_tasks_blocked()
        await world.groups.load(0, 2)
        await wait_all_tasks_blocked()
        assert answers == []
        nursery.start_soon(world.join, first)
    assert answers == [ErrorCode.NONE]


async def test_damaged_records_leave_the_partition_without_a_coordinator_here(memory_log, make_world):
    world = make_world()
    memory_log.partitions[0] = [b"\0" * 70]
    await world.groups.load(0, 1)
    with pytest.raises(KafkaError) as error:
        await world.commit(1)
    assert code_of(error) is ErrorCode.NOT_COORDINATOR


async def test_batch_with_a_wrong_crc_is_not_read_over_and_the_log_says_how_to_get_out(memory_log, make_world, caplog):
    world = make_world()
    await world.groups.load(0, 1)
    await world.commit(1)
    await world.commit(2)
    world.groups.unload(0)
    memory_log.partitions[0][1] = flipped(memory_log.partitions[0][1])
    await world.groups.load(0, 2)
    with pytest.raises(KafkaError) as error:
        await world.fetch()
    assert code_of(error) is ErrorCode.NOT_COORDINATOR, "an offset of 1 would be an older state"
    (line,) = (record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert line.startswith(
        "Group coordinator: __consumer_offsets-0 cannot be loaded, and is not served: CORRUPT_MESSAGE: the batch of offsets 1 to "
        "1 is damaged: "
    )
    assert "ottla verify" in line
    assert "ottla set-aside" in line


def flipped(batch: bytes) -> bytes:
    """The batch with another last byte."""
    return batch[:-1] + bytes([batch[-1] ^ 1])


async def test_records_that_cannot_be_understood_are_one_line_and_the_others_are_served(memory_log, make_world, caplog):
    world = make_world()
    await world.groups.load(0, 1)
    await world.commit(1)
    builder = RecordsBuilder(base_offset=1)
    for _ in range(500):
        builder.append(b"\0\x63", b"of a type that is unknown", 1)
    memory_log.append(0, builder.build())
    await world.commit(2)
    world.groups.unload(0)
    caplog.clear()
    await world.groups.load(0, 2)
    assert await world.fetch() == 2
    (line,) = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
    assert line == (
        "Group coordinator: of __consumer_offsets-0 500 records could not be understood and were left out; "
        "the first is at offset 1: the record type 99 is unknown"
    )


async def test_another_coordinator_goes_on_from_the_same_log(make_world):
    first = make_world()
    await first.groups.load(0, 1)
    member = await first.enter()
    await first.sync(member, 1, {member: b"all"})
    await first.commit(5, group="simple")
    first.groups.unload(0)
    second = make_world()
    await second.groups.load(0, 2)
    assert await second.heartbeat(member, 1) == ErrorCode.NONE
    assert await second.fetch("simple") == 5
    listed = await second.groups.list_groups((), (), second.flush)
    assert {(group.group_id, group.protocol_type, group.group_state, group.group_type) for group in listed} == {
        ("g", "consumer", "Stable", "classic"),
        ("simple", "", "Empty", "classic"),
    }


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ((), (), {"g", "simple"}),
        (("Stable",), (), {"g"}),
        (("empty", "dead"), (), {"simple"}),
        (("nonsense",), (), set()),
        ((), ("Classic",), {"g", "simple"}),
        ((), ("consumer",), set()),
        (("STABLE",), ("classic", "share"), {"g"}),
    ],
)
async def test_groups_are_listed_by_state_and_type(make_world, states, types, expected):
    world = make_world()
    await world.groups.load(0, 1)
    member = await world.enter()
    await world.sync(member, 1, {})
    await world.commit(5, group="simple")
    listed = await world.groups.list_groups(states, types, world.flush)
    assert {group.group_id for group in listed} == expected


async def test_an_unknown_group_is_dead_and_from_version_6_an_error(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    old = await world.groups.describe_group("unknown", 5, world.flush)
    assert (old.group_state, old.error_code, old.error_message) == ("Dead", ErrorCode.NONE, None)
    new = await world.groups.describe_group("unknown", 6, world.flush)
    assert (new.group_state, new.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert new.error_message


async def test_group_ids_and_session_timeouts_are_checked(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    with pytest.raises(KafkaError) as error:
        await world.join(group="")
    assert code_of(error) is ErrorCode.INVALID_GROUP_ID
    with pytest.raises(KafkaError) as error:
        await world.heartbeat("m", 1, group="")
    assert code_of(error) is ErrorCode.INVALID_GROUP_ID
    for session in (5_999, 1_800_001):
        with pytest.raises(KafkaError) as error:
            await world.join(session=session)
        assert code_of(error) is ErrorCode.INVALID_SESSION_TIMEOUT
    assert await world.commit(3, group="") == ErrorCode.NONE
    assert await world.fetch("") == 3


async def test_delete_groups_answers_each_group_once(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    member = await world.enter()
    await world.commit(1, group="simple")
    results = await world.groups.delete_groups(["g", "simple", "unknown", "simple"], world.flush)
    assert [(result.group_id, result.error_code) for result in results] == [
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("simple", ErrorCode.NONE),
        ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert await world.heartbeat(member, 1) == ErrorCode.NONE


# Waiting for commits


async def test_every_answer_waits_until_what_it_depends_on_is_committed(memory_log, make_world):
    world = make_world()
    await world.groups.load(0, 1)
    member = await world.enter()
    done: list[str] = []

    async def note(name: str, awaitable: Any) -> None:
        await awaitable
        done.append(name)

    memory_log.held = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(note, "sync", world.sync(member, 1, {member: b"x"}))
        await wait_all_tasks_blocked()
        nursery.start_soon(note, "heartbeat", world.heartbeat(member, 1))
        nursery.start_soon(note, "describe", world.state())
        nursery.start_soon(note, "fetch", world.fetch())
        nursery.start_soon(note, "list", world.groups.list_groups((), (), world.flush))
        nursery.start_soon(note, "commit of another group", world.commit(1, group="simple"))
        await wait_all_tasks_blocked()
        assert done == []
        assert world.flushes == 6, "each one sent the connection's answers before it waited"
        memory_log.release()
    assert len(done) == 6


async def test_a_group_does_not_wait_for_records_of_another(memory_log, make_world):
    world = make_world()
    await world.groups.load(0, 1)
    await world.commit(1, group="quick")
    memory_log.held = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.commit, 1, "slow")
        await wait_all_tasks_blocked()
        assert await world.fetch("quick") == 1
        memory_log.release()


async def test_who_waits_for_a_commit_when_leadership_is_lost_is_sent_away(memory_log, make_world):
    world = make_world()
    await world.groups.load(0, 1)
    memory_log.held = True

    async def expect(code: ErrorCode) -> None:
        with pytest.raises(KafkaError) as error:
            await world.commit(1)
        assert code_of(error) is code

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect, ErrorCode.NOT_COORDINATOR)
        await wait_all_tasks_blocked()
        world.groups.unload(0)
        memory_log.lose(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))


async def test_who_waits_to_join_when_leadership_is_lost_is_sent_away(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    member = await world.enter()
    await world.sync(member, 1, {})

    async def expect() -> None:
        with pytest.raises(KafkaError) as error:
            await world.join(version=3)
        assert code_of(error) is ErrorCode.NOT_COORDINATOR

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect)
        await wait_all_tasks_blocked()
        world.groups.stop()


def test_a_commit_that_takes_too_long_is_answered_with_an_error(memory_log, make_world):
    async def main() -> None:
        world = make_world(offsets_commit_timeout_ms=700)
        await world.groups.load(0, 1)
        memory_log.held = True
        with pytest.raises(KafkaError) as error:
            await world.commit(1)
        assert code_of(error) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert trio.current_time() == pytest.approx(0.7)

    trio.run(main, clock=MockClock(autojump_threshold=0))


# Waiting for others


async def test_a_join_that_waits_sends_earlier_answers_first_and_one_that_does_not_wait_does_not(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    member = await world.enter()
    await world.sync(member, 1, {})
    assert world.flushes == 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            world.join,
            "",
        )
        nursery.start_soon(lambda: world.join(version=3))
        await wait_all_tasks_blocked()
        assert world.flushes == 1
        nursery.cancel_scope.cancel()


async def test_a_connection_lost_while_it_joins_does_not_wedge_the_group(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    member = await world.enter()
    await world.sync(member, 1, {})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: world.join(version=3))
        await wait_all_tasks_blocked()
        assert await world.heartbeat(member, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        nursery.cancel_scope.cancel()
    assert (await world.join(member)).generation_id == 2
    assert len((await world.groups.describe_group("g", 6, world.flush)).members) == 1


async def test_a_connection_lost_while_it_syncs_does_not_wedge_the_group(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    leader = await world.enter()
    joined: dict[str, Any] = {}

    async def second() -> None:
        joined["second"] = await world.join(version=3)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(second)
        await wait_all_tasks_blocked()
        await world.join(leader)
    follower = joined["second"].member_id
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.sync, follower, 2)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert (await world.sync(leader, 2, {leader: b"x", follower: b"y"})).assignment == b"x"
    assert (await world.sync(follower, 2)).assignment == b"y"


async def test_a_connection_that_breaks_on_sending_is_no_longer_waited_for(make_world):
    world = make_world()
    await world.groups.load(0, 1)
    member = await world.enter()
    await world.sync(member, 1, {})

    async def broken() -> None:
        raise OSError("gone")

    world.flush = broken  # type: ignore[method-assign]
    with pytest.raises(OSError, match="gone"):
        await world.join(version=3)
    assert (await world.join(member)).generation_id == 2
