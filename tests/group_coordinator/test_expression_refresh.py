"""Regular expressions of a consumer group: when their topics are looked up, and what that changes."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest

from ottla.group_coordinator.consumer_group import ConsumerGroup, ResolvedExpression
from ottla.group_coordinator.consumer_group_member import ConsumerGroupMember
from ottla.group_coordinator.consumer_group_records import ConsumerGroupChange
from ottla.group_coordinator.expression_refresh import (
    ExpressionUpdate,
    expression_update,
    is_refresh_due,
    resolved_change,
)

from .helpers.consumer_groups import encoded, replayed, told

NOW = 1_700_000_000_000
VERSION = 50
INTERVAL = 600_000


def hash_of(topics: AbstractSet[str]) -> int:
    return sum(sum(topic.encode()) for topic in topics)


def group_of(
    members: dict[str, str], resolved: dict[str, set[str]], names: AbstractSet[str] = frozenset()
) -> ConsumerGroup:
    """Members with their expressions; ``names`` are the topics that one more member names."""
    subscriptions = [
        ConsumerGroupMember(member, has_subscription=True, expression=expression)
        for member, expression in members.items()
    ]
    if names:
        subscriptions.append(ConsumerGroupMember("named", has_subscription=True, topic_names=frozenset(names)))
    used = {*members.values()}
    topics = set(names).union(*(topics for expression, topics in resolved.items() if expression in used))
    change = ConsumerGroupChange(
        "g",
        subscriptions=subscriptions,
        expressions={each: ResolvedExpression(frozenset(resolved[each]), VERSION, NOW) for each in resolved},
        epoch=(7, hash_of(topics)),
    )
    return after(ConsumerGroup("g"), change)


def after(group: ConsumerGroup, change: ConsumerGroupChange) -> ConsumerGroup:
    return replayed(map(encoded, change.records()), group)


def is_due(group: ConsumerGroup, after_ms: int, version: int = VERSION) -> bool:
    return is_refresh_due(group, group.expression_subscribers.keys(), NOW + after_ms, version, INTERVAL)


# --- when --------------------------------------------------------------------------------------------------------------


def test_a_group_without_expressions_needs_no_refresh() -> None:
    assert not is_due(group_of({"A": ""}, {}, names={"t"}), 2 * INTERVAL, VERSION + 1)


def test_the_first_expression_is_looked_up_at_once() -> None:
    assert is_due(group_of({"A": "a.*"}, {}), 0)
    group = group_of({}, {})
    assert is_refresh_due(group, {"a.*"}, NOW, 0, INTERVAL)  # of a member whose record comes with this heartbeat


def test_nothing_is_looked_up_again_without_a_reason() -> None:
    group = group_of({"A": "a.*", "B": "b.*"}, {"a.*": {"a1"}, "b.*": set()})
    assert not is_due(group, 10_001)
    assert not is_due(group, INTERVAL)


@pytest.mark.parametrize("reason", ["a new expression", "a new topic"])
def test_ten_seconds_are_between_two_refreshes(reason: str) -> None:
    expressions = {"A": "a.*", "B": "b.*"} if reason == "a new expression" else {"A": "a.*"}
    group = group_of(expressions, {"a.*": {"a1"}})
    version = VERSION + (reason == "a new topic")
    assert not is_due(group, 0, version)
    assert not is_due(group, 10_000, version)
    assert is_due(group, 10_001, version)


def test_an_expression_without_topics_is_looked_up_even_where_others_are_gone() -> None:
    """There are as many resolved expressions as members have, but not the same ones."""
    group = group_of({"B": "b.*"}, {"a.*": {"a1"}})
    assert is_due(group, 10_001)


def test_topics_that_the_search_has_seen_are_no_reason() -> None:
    group = group_of({"A": "a.*"}, {"a.*": {"a1"}})
    assert not is_due(group, 10_001, VERSION)
    assert not is_due(group, 10_001, VERSION - 1)


def test_the_interval_is_a_reason() -> None:
    group = group_of({"A": "a.*"}, {"a.*": {"a1"}})
    assert is_due(group, INTERVAL + 1)


def test_a_clock_that_was_set_back_delays_nothing() -> None:
    group = group_of({"A": "a.*"}, {"a.*": {"a1"}})
    assert is_due(group, -3_600_000, VERSION + 1)
    assert not is_due(group, -3_600_000)


# --- a member's expression ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", ExpressionUpdate()),
        ("a.*", "a.*", ExpressionUpdate()),
        ("", "new.*", ExpressionUpdate(is_new=True)),
        ("", "a.*", ExpressionUpdate(bumps_epoch=True)),
        ("", "pending.*", ExpressionUpdate()),
        ("a.*", "", ExpressionUpdate(bumps_epoch=True)),
        ("b.*", "", ExpressionUpdate(removed="b.*", bumps_epoch=True)),
        ("b.*", "a.*", ExpressionUpdate(removed="b.*", bumps_epoch=True)),
        ("b.*", "new.*", ExpressionUpdate(removed="b.*", is_new=True)),
        ("a.*", "pending.*", ExpressionUpdate()),
    ],
)
def test_a_member_changes_its_expression(old: str, new: str, expected: ExpressionUpdate) -> None:
    members = {"A": "a.*", "B": "a.*", "C": "b.*", "D": "pending.*"}
    group = group_of(members, {"a.*": {"a1"}, "b.*": set(), "gone.*": {"g1"}})
    assert expression_update(group, old, new) == expected


def test_an_expression_of_members_that_are_gone_is_new() -> None:
    group = group_of({"A": "a.*"}, {"a.*": {"a1"}, "gone.*": {"g1"}})
    assert expression_update(group, "", "gone.*") == ExpressionUpdate(is_new=True)


# --- what it changes ---------------------------------------------------------------------------------------------------


def test_first_topics_bump_the_epoch() -> None:
    group = group_of({"A": "a.*"}, {}, names={"t"})
    change = resolved_change(group, {"a.*": frozenset({"a1", "a2"})}, VERSION + 3, NOW + 5, hash_of)
    assert told(change.records()) == "16 3(8)"
    group = after(group, change)
    assert group.expressions["a.*"] == ResolvedExpression(frozenset({"a1", "a2"}), VERSION + 3, NOW + 5)
    assert (group.epoch, group.metadata_hash) == (8, hash_of({"t", "a1", "a2"}))


def test_the_same_topics_are_noted_and_bump_nothing() -> None:
    group = group_of({"A": "a.*", "B": "b.*"}, {"a.*": {"a1"}, "b.*": set()})
    change = resolved_change(group, {"a.*": {"a1"}, "b.*": set()}, VERSION + 3, NOW + 5, hash_of)
    assert told(change.records()) == "16 16"
    assert after(group, change).expressions["b.*"] == ResolvedExpression(frozenset(), VERSION + 3, NOW + 5)


def test_an_expression_without_any_topic_bumps_nothing() -> None:
    change = resolved_change(group_of({"A": "a.*"}, {}), {"a.*": frozenset()}, VERSION, NOW, hash_of)
    assert told(change.records()) == "16"


def test_topics_that_another_member_has_already_bump_the_epoch() -> None:
    """The hash is the same, but the target is not."""
    group = group_of({"A": "a.*", "B": "b.*"}, {"a.*": {"a1"}})
    change = resolved_change(group, {"a.*": {"a1"}, "b.*": {"a1"}}, VERSION, NOW, hash_of)
    assert told(change.records()) == "16 16 3(8)"
    assert change.epoch == (8, group.metadata_hash)


def test_topics_that_have_changed_bump_the_epoch() -> None:
    """The names are the same, but not the partitions."""
    group = group_of({"A": "a.*"}, {"a.*": {"a1"}})
    change = resolved_change(group, {"a.*": {"a1"}}, VERSION, NOW, lambda _: 5)
    assert change.epoch == (8, 5)


def test_topics_that_are_gone_bump_the_epoch() -> None:
    group = group_of({"A": "a.*"}, {"a.*": {"a1", "a2"}})
    change = resolved_change(group, {"a.*": {"a2"}}, VERSION, NOW, hash_of)
    assert change.epoch == (8, hash_of({"a2"}))


def test_an_expression_that_nobody_has_any_more_is_left_out() -> None:
    group = group_of({"A": "a.*"}, {"a.*": {"a1"}})
    change = resolved_change(group, {"a.*": {"a1"}, "gone.*": {"g1"}}, VERSION, NOW, hash_of)
    assert change.expressions.keys() == {"a.*"}
    assert change.epoch is None


def test_an_expression_that_came_meanwhile_keeps_its_topics_in_the_hash() -> None:
    group = group_of({"A": "a.*", "B": "b.*"}, {"a.*": {"a1"}, "b.*": {"b1"}})
    change = resolved_change(group, {"a.*": {"a2"}}, VERSION, NOW, hash_of)
    assert change.epoch == (8, hash_of({"a2", "b1"}))


def test_an_expression_that_cannot_be_read_keeps_its_topics() -> None:
    group = group_of({"A": "a.*", "B": "["}, {"a.*": {"a1"}, "[": {"b1"}})
    change = resolved_change(group, {"a.*": {"a1"}, "[": None}, VERSION + 1, NOW + 1, hash_of)
    assert change.epoch is None
    assert change.expressions["["] == ResolvedExpression(frozenset({"b1"}), VERSION + 1, NOW + 1)
    group = group_of({"B": "["}, {})
    change = resolved_change(group, {"[": None}, VERSION, NOW, hash_of)
    assert told(change.records()) == "16"
    assert not is_due(after(group, change), 10_001)


def test_after_a_refresh_the_next_one_is_due_when_a_reason_comes() -> None:
    group = group_of({"A": "a.*"}, {})
    change = resolved_change(group, {"a.*": {"a1"}}, VERSION, NOW, hash_of)
    group = after(group, change)
    assert not is_due(group, 10_001)
    assert is_due(group, 10_001, VERSION + 1)
    assert group.topics_of(group.members["A"]) == {"a1"}
