"""The assignor ``simple``: partitions with as many readers as others, equal members, and few moves."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ottla.group_coordinator.assignors.assignor import MemberSubscription, Target, finished
from ottla.group_coordinator.assignors.simple import SimpleAssignor

from ..helpers.groups_of_members import Group, pairs, sizes, topic_id

T, U = topic_id(1), topic_id(2)
SIMPLE = SimpleAssignor()


def shared(group: Group) -> Target:
    """A new target, which holds what all do, in whatever order the members come."""
    assignable = {topic: frozenset(range(count)) for topic, count in group.counts.items()}
    target = finished(SIMPLE.steps(group.members, assignable, subscribed_alike=group.is_homogeneous))
    assert set(target) == set(group.members)
    for member_id, topics in target.items():
        for topic, partitions in topics.items():
            assert partitions and topic in group.members[member_id].topic_ids
            assert partitions <= assignable[topic]
    names = list(group.members)
    group.chance.shuffle(names)
    shuffled = {name: group.members[name] for name in names}
    assert finished(SIMPLE.steps(shuffled, assignable, subscribed_alike=group.is_homogeneous)) == target
    return target


def readers(target: Target) -> Counter[tuple[bytes, int]]:
    """How many members have each partition."""
    return Counter(pair for topics in target.values() for pair in pairs(topics))


@pytest.mark.parametrize("seed", range(80))
def test_members_that_read_the_same(seed: int) -> None:
    group = Group(random.Random(seed), is_homogeneous=True)
    for _ in range(8):
        group.change()
        target = shared(group)
        if not group.members:
            continue
        topics = next(iter(group.members.values())).topic_ids
        wanted = {(topic, number) for topic in topics for number in range(group.counts[topic])}
        counts = readers(target)
        assert set(counts) == wanted
        if wanted:
            sharing = -(-len(group.members) // len(wanted))
            assert max(counts.values()) <= sharing
            highest = -(-sharing * len(wanted) // len(group.members))
            assert max(sizes(target)) <= highest
            # Few are short of a reader: those that all members with room had already.
            assert sum(counts.values()) > sharing * len(wanted) - sharing
        group.follow(target)
        assert shared(group) == target


@pytest.mark.parametrize("seed", range(80))
def test_members_that_read_different_topics(seed: int) -> None:
    group = Group(random.Random(seed), is_homogeneous=False)
    for _ in range(8):
        group.change()
        target = shared(group)
        counts = readers(target)
        subscribers = Counter(topic for member in group.members.values() for topic in member.topic_ids)
        assert set(counts) == {(topic, number) for topic in subscribers for number in range(group.counts[topic])}
        for topic, count in subscribers.items():
            sharing = -(-count // group.counts[topic])
            assert max(counts[topic, number] for number in range(group.counts[topic])) <= sharing
            held = [len(target[name].get(topic, ())) for name, one in group.members.items() if topic in one.topic_ids]
            assert max(held) <= -(-sharing * group.counts[topic] // count)
        group.follow(target)
        assert shared(group) == target


def test_nothing_moves_that_need_not() -> None:
    """One member of three goes: the others keep what they have, and get the rest."""
    counts = {T: frozenset(range(6))}
    members = {name: MemberSubscription(frozenset({T}), {}) for name in "abc"}
    first = finished(SIMPLE.steps(members, counts))
    left = {name: MemberSubscription(frozenset({T}), first[name]) for name in "ac"}
    second = finished(SIMPLE.steps(left, counts))
    assert all(pairs(first[name]) <= pairs(second[name]) for name in "ac")
    assert sizes(second) == [3, 3]


def test_more_members_than_partitions() -> None:
    members = {f"m{number}": MemberSubscription(frozenset({T}), {}) for number in range(5)}
    target = finished(SIMPLE.steps(members, {T: frozenset({0, 1})}))
    assert sorted(readers(target).values()) == [3, 3]
    assert sorted(sizes(target)) == [1, 1, 1, 1, 2]


def test_only_what_is_assignable_is_assigned() -> None:
    members = {"a": MemberSubscription(frozenset({T, U}), {U: frozenset({0})})}
    assert finished(SIMPLE.steps(members, {T: frozenset({3})})) == {"a": {T: frozenset({3})}}
    assert finished(SIMPLE.steps(members, {})) == {"a": {}}
    assert finished(SIMPLE.steps({}, {})) == {}


def test_a_step_is_short() -> None:
    """A thousand members, and ten thousand partitions."""
    members = {f"m{number}": MemberSubscription(frozenset({T}), {}) for number in range(1000)}
    for count in (1, 1000, 10_000):
        steps = SIMPLE.steps(members, {T: frozenset(range(count))})
        assert sum(1 for _ in steps) >= max(count, 1000) // 1000
