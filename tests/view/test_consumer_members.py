"""How far members of consumer groups have come, in rows; what of them a visitor may see; and how long the loop is held up."""

from __future__ import annotations

import dataclasses
import time

import pytest

from ottla.group_coordinator.consumer_group import ConsumerGroup
from ottla.group_coordinator.consumer_group_member import AssignedPartitions, ConsumerGroupMember
from ottla.group_coordinator.consumer_group_records import ConsumerGroupChange
from ottla.view.consumer_members import consumer_progress
from ottla.view.own.groups import member_rows
from ottla.view.pace import UNITS_PER_SLICE, Pace
from ottla.view.rows import ExpressionRow, GroupDetail, GroupPartitionRow, GroupRow, MemberRow

TOPIC = b"t" * 16


@pytest.mark.parametrize(
    ("epoch", "held", "target", "state", "to_give_up", "awaited"),
    [
        (3, {"t": {0, 1}}, {"t": {0, 1}}, "stable", (), ()),
        (2, {"t": {0, 1, 2}}, {"t": {0}}, "gives up partitions", (("t", (1, 2)),), ()),
        (2, {"t": {0}}, {"u": {7}}, "gives up partitions", (("t", (0,)),), (("u", (7,)),)),
        (3, {"t": {0}}, {"t": {0, 1}, "u": {5}}, "waits for partitions", (), (("t", (1,)), ("u", (5,)))),
        (2, {"t": {0}}, {"t": {0}}, "comes to epoch 3", (), ()),
        (-2, {"t": {0}}, {}, "away, and expected back", (("t", (0,)),), ()),
    ],
)
def test_a_member_is_somewhere_on_its_way(epoch, held, target, state, to_give_up, awaited) -> None:
    found = consumer_progress(epoch, 3, held, target, ["t"], "", is_classic=False)
    assert (found.state, found.to_give_up, found.awaited) == (state, to_give_up, awaited)


def test_whatever_is_of_other_topics_is_left_out() -> None:
    both = {"seen": {0}, "hidden": {0}}
    progress = consumer_progress(2, 3, both, {"seen": {1}, "hidden": {1}}, ["seen", "hidden"], "x", is_classic=False)
    given = (("hidden", (0,)), ("seen", (0,)))
    row = GroupRow("g", "consumer", "Stable", "consumer", "uniform", 3, 3, 1, 2, 2, None, None, 0, 0, None)
    partition = GroupPartitionRow("hidden", 0, 1, 0, 1, 0, 0, False, None, "", "m")
    detail = GroupDetail(
        row,
        [MemberRow("m", None, "c", "/h", None, given, progress), MemberRow("n", None, "c", "/h", None, None)],
        [partition, dataclasses.replace(partition, topic="seen")],
        [ExpressionRow("x", 1, ("hidden", "seen"), 5), ExpressionRow("y", 1, None, None)],
    )
    assert detail.topics() == {"seen", "hidden"}
    left = detail.of_topics({"seen"})
    assert left.topics() == {"seen"}
    assert "hidden" not in repr(left)
    assert (left.members[0].assigned, left.members[1].assigned) == ((("seen", (0,)),), None)
    assert [each.topics for each in left.expressions] == [("seen",), None]


async def test_a_group_of_very_many_members_is_read_in_slices() -> None:
    members, partitions = 2000, 5
    change = ConsumerGroupChange("g", target_epoch=(2, 1))
    for number in range(members):
        numbers = range(number * partitions, (number + 1) * partitions)
        assigned = AssignedPartitions({TOPIC: dict.fromkeys(numbers, 2)})
        member = ConsumerGroupMember(f"m{number}", has_subscription=True, topic_names=frozenset("t"))
        change.subscriptions.append(member)
        change.targets[member.member_id] = {TOPIC: frozenset(numbers)}
        change.assignments.append(dataclasses.replace(member, epoch=2, previous_epoch=2, assigned=assigned))
    group = ConsumerGroup("g")
    for record in change.records():
        group = group.with_record(record.key, record.value)
    pace = Pace(time.monotonic)
    rows = await member_rows(group, {TOPIC: "t"}.get, pace)
    assert len(rows) == members
    assert {row.consumer.state for row in rows if row.consumer is not None} == {"stable"}
    assert pace.slices > 20
    assert pace.largest < 2 * UNITS_PER_SLICE
