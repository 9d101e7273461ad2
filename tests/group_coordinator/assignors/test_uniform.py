"""The assignor ``uniform``: equal numbers of partitions, and few moves."""

from __future__ import annotations

import random

import pytest

from ottla.group_coordinator.assignors.assignor import MemberSubscription, finished
from ottla.group_coordinator.assignors.uniform import UniformAssignor

from ..helpers.groups_of_members import Group, assigned, every_partition_once, pairs, sizes, topic_id

T, U = topic_id(1), topic_id(2)
UNIFORM = UniformAssignor()


def member(*topics: bytes, **held: dict[bytes, frozenset[int]]) -> MemberSubscription:
    return MemberSubscription(frozenset(topics), held.get("held", {}))


def moves(group: Group, target: dict[str, dict[bytes, frozenset[int]]]) -> int:
    """Partitions that are taken from members that still read them."""
    count = 0
    for name, one in group.members.items():
        lost = pairs(one.target) - pairs(target[name])
        count += sum(topic in one.topic_ids for topic, _ in lost)
    return count


@pytest.mark.parametrize("seed", range(60))
def test_members_that_read_the_same(seed: int) -> None:
    """Within one of each other, and no partition moves that need not."""
    group = Group(random.Random(seed), is_homogeneous=True)
    for _ in range(8):
        group.change()
        target = assigned(UNIFORM, group)
        if group.members:
            assert max(sizes(target)) - min(sizes(target)) <= 1
            assert moves(group, target) == fewest_moves(group)
        group.follow(target)
        assert assigned(UNIFORM, group) == target


def fewest_moves(group: Group) -> int:
    """What is above the quotas, where the higher ones go to those who have the most."""
    topics = next(iter(group.members.values())).topic_ids
    quota, extra = divmod(sum(group.counts[topic] for topic in topics), len(group.members))
    held = [sum(topic in topics for topic, _ in pairs(one.target)) for one in group.members.values()]
    above = [count - quota for count in held if count > quota]
    return sum(above) - min(extra, len(above))


@pytest.mark.parametrize("seed", range(60))
def test_members_that_read_different_topics(seed: int) -> None:
    """Readers of a topic differ by one at most where the one with more has partitions of it."""
    group = Group(random.Random(seed), is_homogeneous=False)
    for _ in range(8):
        group.change()
        target = assigned(UNIFORM, group)
        count = dict(zip(target, sizes(target), strict=True))
        for topic in group.counts:
            readers = [name for name, one in group.members.items() if topic in one.topic_ids]
            givers = [count[name] for name in readers if topic in target[name]]
            assert not givers or max(givers) - min(count[name] for name in readers) <= 1
        group.follow(target)
        assert moves(group, assigned(UNIFORM, group)) == 0


def test_a_member_that_leaves_moves_only_its_own() -> None:
    members = {"a": member(T, held={T: frozenset({0, 3})}), "b": member(T, held={T: frozenset({1, 4})})}
    target = finished(UNIFORM.steps(members, {T: 6}))
    assert target == {"a": {T: {0, 2, 3}}, "b": {T: {1, 4, 5}}}


def test_the_higher_quota_is_for_who_has_it_already() -> None:
    members = {"a": member(T, held={T: frozenset({0})}), "b": member(T, held={T: frozenset({1, 2})})}
    assert finished(UNIFORM.steps(members, {T: 3})) == {"a": {T: {0}}, "b": {T: {1, 2}}}


def test_a_member_above_its_quota_keeps_its_first_partitions() -> None:
    members = {"a": member(T, U, held={T: frozenset({0, 1, 2}), U: frozenset({0})}), "b": member(T, U)}
    assert finished(UNIFORM.steps(members, {T: 3, U: 1})) == {"a": {T: {0, 1}}, "b": {T: {2}, U: {0}}}


def test_members_that_name_different_topics_may_read_the_same() -> None:
    members = {"a": member(T), "b": member(T)}
    assert finished(UNIFORM.steps(members, {T: 4})) == {"a": {T: {0, 1}}, "b": {T: {2, 3}}}
    target = finished(UNIFORM.steps(members, {T: 4}, subscribed_alike=False))
    assert target == {"a": {T: {0, 2}}, "b": {T: {1, 3}}}


@pytest.mark.parametrize("more", [(), (U,)], ids=["the same topics", "different topics"])
@pytest.mark.parametrize("second", [{1, 2, 3}, {3, 9}], ids=["two owners", "a partition that is not known here yet"])
def test_an_old_target_that_cannot_be(second: set[int], more: tuple[bytes, ...]) -> None:
    members = {
        "a": member(T, held={T: frozenset({0, 1, 2}), U: frozenset({0})}),
        "b": member(T, *more, held={T: frozenset(second)}),
    }
    counts = {T: 6, U: 2}
    target = finished(UNIFORM.steps(members, counts))
    every_partition_once(members, counts, target)
    assert target["a"][T] >= {0, 1, 2} and target["b"][T] >= {3}


def test_nobody_and_nothing() -> None:
    assert finished(UNIFORM.steps({}, {})) == {}
    assert finished(UNIFORM.steps({"a": member(held={T: frozenset({0})})}, {})) == {"a": {}}


@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_the_work_is_in_steps(is_homogeneous: bool) -> None:
    """A caller can go on with other things at least once for each member and for every thousand partitions."""
    topics = [topic_id(number) for number in range(1, 5)]
    members = {f"m{n}": member(*topics[: 4 if is_homogeneous else 3 + n % 2]) for n in range(100)}
    assert sum(1 for _ in UNIFORM.steps(members, dict.fromkeys(topics, 3000))) >= 112
