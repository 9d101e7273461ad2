"""The value of a share group: what its records make of it, in whatever parts they come; its timeline; large targets."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.group_coordinator.conversion import removal
from ottla.group_coordinator.records import CoordinatorRecord, read_batch
from ottla.group_coordinator.share_group import ShareGroup
from ottla.group_coordinator.share_state_partitions import NamedPartitions, StatePartitions
from ottla.group_coordinator.target_assignments import MOST_AT_ONCE
from ottla.replication.coordinator_loading import SkippedRecords
from ottla.wire.coordinator_records import encode_coordinator_record
from ottla.wire.records import RecordBatch

from .helpers.share_groups import ShareMembers, share_groups, topic_id

T, U = topic_id("t"), topic_id("u")


def records_of(beat: ShareMembers) -> list[CoordinatorRecord]:
    """All records of the log."""
    found = []
    for raw in beat.world.log.partitions[0]:
        for _, record in read_batch(RecordBatch(bytearray(raw)), SkippedRecords()):
            assert record is not None
            found.append(record)
    return found


def made_of(records: list[CoordinatorRecord]) -> ShareGroup:
    group = ShareGroup("g")
    for record in records:
        group = group.with_record(record.key, record.value)
    return group


def key_of(record: CoordinatorRecord) -> bytes:
    return encode_coordinator_record(record.key, 0)


async def test_any_compacted_part_of_the_log_makes_the_same_group(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A", "B", "C")
        await beat("B", -1)
        beat.topic("t", 3)
        await beat.stable("A", "C")
        records = records_of(beat)
        chance = random.Random(5)
        for _ in range(30):
            superseded = [
                index
                for index, record in enumerate(records)
                if any(key_of(later) == key_of(record) for later in records[index + 1 :])
            ]
            gone = set(chance.sample(superseded, chance.randrange(len(superseded) + 1)))
            left = [record for index, record in enumerate(records) if index not in gone]
            group = made_of(left)
            assert group == beat.group
            assert dict(group.topic_subscribers) == {"t": 2}


async def test_tombstones_of_all_records_leave_nothing(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A", "B")
        group = beat.group
        for record in removal(group):
            assert group.exists
            group = group.with_record(record.key, None)
        assert not group.exists
        assert dict(group.topic_subscribers) == {}


def test_states_of_partitions() -> None:
    states = StatePartitions(is_written=True)
    both = NamedPartitions("t", frozenset({0, 1}))
    waiting = states.with_initializing({T: both})
    # Only what is waited for becomes initialized.
    begun = waiting.with_initialized({T: {0, 7}, U: {0}})
    assert (begun.initializing, begun.of(T)) == ({T: NamedPartitions("t", frozenset({1}))}, frozenset({0}))
    assert begun.without_initializing({T: {1}}).initializing == {}
    deleting = begun.with_deleting({T: "t"})
    assert (deleting.initializing, deleting.initialized, deleting.deleting) == ({}, {}, {T: "t"})
    # A topic that members read again is deleted no more.
    assert deleting.with_initializing({T: both}).deleting == {}
    assert deleting.without_topics({T}) == states
    for each in (waiting, begun, deleting):
        assert StatePartitions.from_record(each.to_record()) == each
    assert StatePartitions.from_record(None) == StatePartitions()


async def test_the_timeline(make_world: Any, autojump_clock: MockClock) -> None:
    async with share_groups(make_world) as beat:
        await beat.stable("A")
        await beat("B", 0)
        await trio.sleep(1)
        await beat("B", -1)
        await beat("A", -1)
        events = beat.world.groups.timeline.of("g")
        told = [(event.kind.value, event.member_id) for event in events]
        assert told[:3] == [
            ("joined", "A"),
            ("epoch of the share group begins", ""),
            ("target assignment is made", ""),
        ]
        assert told[-3:] == [("left", "A"), ("epoch of the share group begins", ""), ("group is empty", "")]
        assert ("joined", "B") in told and ("left", "B") in told
        details = [event.detail for event in events]
        assert "reads t" in details
        assert any(detail.startswith("simple, for 1 member") for detail in details)
        assert "partitions wait for members, or topics of the group were created or deleted" in details


@pytest.mark.parametrize("count", [MOST_AT_ONCE // 2, 8 * MOST_AT_ONCE])
async def test_a_large_target_is_written_in_parts(make_world: Any, autojump_clock: MockClock, count: int) -> None:
    """Its epoch comes last, and the heartbeat that makes it has its part already."""
    async with share_groups(make_world) as beat:
        beat.topic("t", count)
        for member in "ABCD":
            await beat(member, 0)
        await beat.next_target()
        beat.written()
        epoch, assigned = await beat("A", 0)
        assert assigned is not None
        assert len(assigned["t"]) == count // 4
        batches = beat.written().split(" | ")
        with_epoch = [index for index, batch in enumerate(batches) if f"12({epoch})" in batch]
        with_parts = [index for index, batch in enumerate(batches) if "13" in batch]
        assert len(with_epoch) == 1
        assert with_parts[-1] <= with_epoch[0]
        assert (len(batches) > 1) == (count > MOST_AT_ONCE)
        sizes = {len((await beat(member, 0))[1]["t"]) for member in "ABCD"}  # type: ignore[index]
        assert sizes == {count // 4}
