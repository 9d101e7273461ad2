"""The assignor ``range``: contiguous ranges, static members first."""

from __future__ import annotations

import random

import pytest

from ottla.group_coordinator.assignors.assignor import MemberSubscription, finished
from ottla.group_coordinator.assignors.range import RangeAssignor

from ..helpers.groups_of_members import Group, assigned, topic_id

T, U = topic_id(1), topic_id(2)
RANGE = RangeAssignor()


def member(*topics: bytes, instance_id: str | None = None) -> MemberSubscription:
    return MemberSubscription(frozenset(topics), {}, instance_id)


def test_the_first_members_have_one_more() -> None:
    members = {name: member(T, U) for name in ("b", "c", "a")}
    assert finished(RANGE.steps(members, {T: 7, U: 2})) == {
        "a": {T: {0, 1, 2}, U: {0}},
        "b": {T: {3, 4}, U: {1}},
        "c": {T: {5, 6}},
    }


def test_static_members_come_first_by_instance_id() -> None:
    members = {"a": member(T), "b": member(T, instance_id="y"), "c": member(T, instance_id="x")}
    assert finished(RANGE.steps(members, {T: 3})) == {"c": {T: {0}}, "b": {T: {1}}, "a": {T: {2}}}


def test_a_topic_is_for_those_who_read_it() -> None:
    members = {"a": member(T), "b": member(T, U), "c": member()}
    assert finished(RANGE.steps(members, {T: 2, U: 2})) == {"a": {T: {0}}, "b": {T: {1}, U: {0, 1}}, "c": {}}


def test_nobody() -> None:
    assert finished(RANGE.steps({}, {T: 2})) == {}


@pytest.mark.parametrize("seed", range(60))
def test_ranges_are_contiguous_and_differ_by_one(seed: int) -> None:
    group = Group(random.Random(seed), is_homogeneous=seed % 2 == 0)
    for _ in range(6):
        group.change()
        target = assigned(RANGE, group)
        for topic, count in group.counts.items():
            readers = [name for name, one in group.members.items() if topic in one.topic_ids]
            found = [target[name].get(topic, frozenset()) for name in readers]
            assert all(max(one) - min(one) + 1 == len(one) for one in found if one)
            if readers:
                assert {len(one) for one in found} <= {count // len(readers), -(-count // len(readers))}
        group.follow(target)
