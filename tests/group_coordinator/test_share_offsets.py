"""Start offsets of share groups for tools: described, altered, deleted."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator.share_offsets import ShareStart
from ottla.share_coordinator.state import SharePartitionKey
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)

from .helpers.share_groups import ShareMembers, share_groups, topic_id

NONE, ABSENT = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
REFUSED = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def altered(beat: ShareMembers, group: str = "g", **topics: dict[int, int]) -> list[tuple[str, int, int]]:
    """Topic, partition and error code of each, in the order of the response."""
    request = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in topics.items()
        ],
    )
    response = await beat.world.groups.alter_share_group_offsets(request, beat.world.flush)
    return [
        (topic.topic_name, partition.partition_index, partition.error_code)
        for topic in response.responses
        for partition in topic.partitions
    ]


async def deleted(beat: ShareMembers, *topics: str, group: str = "g") -> dict[str, int]:
    """Error code by topic."""
    request = DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    )
    response = await beat.world.groups.delete_share_group_offsets(request, beat.world.flush)
    return {topic.topic_name: topic.error_code for topic in response.responses}


async def starts(beat: ShareMembers) -> dict[int, ShareStart]:
    """Of the partitions of ``t`` that are initialized."""
    partitions = await beat.world.groups.initialized_share_partitions("g", beat.world.flush)
    found = await beat.world.groups.share_starts("g", partitions)
    return {key.partition: start for key, start in found.items()}


async def refused(awaitable: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        await awaitable
    return error.value.code


async def test_start_offsets_are_altered(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        epoch = (await beat.stable("A"))["A"]
        assert await refused(altered(beat, t={0: 7})) is ErrorCode.NON_EMPTY_GROUP
        await beat("A", -1)
        beat.written()
        assert await altered(beat, t={0: 7, 2: 1}, absent={0: 1}) == [
            ("t", 0, NONE),
            ("t", 2, ABSENT),
            ("absent", 0, ABSENT),
        ]
        assert beat.written() == "15(t[0];t[0,1];) | 15(;t[0,1];)"
        state = beat.states.states[SharePartitionKey("g", topic_id("t"), 0)]
        assert (state.state_epoch, state.start_offset) == (epoch + 1, 7)
        assert await starts(beat) == {0: ShareStart(7, 0, -1), 1: ShareStart(-1, 0, -1)}


async def test_an_alteration_makes_a_group(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        assert await altered(beat, t={1: 5}) == [("t", 1, NONE)]
        assert (beat.group.state_name, beat.group.epoch) == ("Empty", 1)
        # The offset is kept when members come.
        await beat.stable("A")
        assert (await starts(beat))[1] == ShareStart(5, 0, -1)


async def test_an_alteration_that_the_share_coordinator_refuses(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.states.error, beat.states.refuses = REFUSED, lambda key: key.partition == 1
        assert await altered(beat, t={0: 5, 1: 5}) == [("t", 0, NONE), ("t", 1, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
        assert beat.written() == "15(t[0,1];;) | 15(;t[0];)"


async def test_offsets_are_deleted(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        beat.topic("u", 1)
        await beat.stable("A")
        assert await refused(deleted(beat, "t")) is ErrorCode.NON_EMPTY_GROUP
        await beat("A", -1)
        beat.written()
        assert await deleted(beat, "t", "u", "absent") == {"t": NONE, "u": ABSENT, "absent": ABSENT}
        assert beat.written() == "15(;;t) | 15(;;)"
        assert (beat.states.states, await starts(beat)) == ({}, {})
        assert beat.group.is_empty


async def test_a_deletion_that_fails_is_taken_up(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A")
        await beat("A", -1)
        beat.states.error = REFUSED
        assert await deleted(beat, "t") == {"t": ErrorCode.COORDINATOR_NOT_AVAILABLE}
        beat.states.error = None
        assert await deleted(beat, "t") == {"t": NONE}
        assert beat.states.states == {}


async def test_groups_that_are_not_there(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.world.commit(5, "classic")
        assert await refused(altered(beat, "classic", t={0: 1})) is ErrorCode.GROUP_ID_NOT_FOUND
        assert await refused(deleted(beat, "t", group="classic")) is ErrorCode.GROUP_ID_NOT_FOUND
        assert await refused(deleted(beat, "t")) is ErrorCode.GROUP_ID_NOT_FOUND
        assert await refused(altered(beat, "", t={0: 1})) is ErrorCode.INVALID_GROUP_ID
        assert await starts(beat) == {}


async def test_a_share_coordinator_that_does_not_answer(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await altered(beat, t={0: 5})
        beat.states.error = REFUSED
        assert await starts(beat) == {0: ShareStart(-1, 0, -1)}
