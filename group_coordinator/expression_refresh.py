"""Rules for the regular expressions of a consumer group (KIP-848): when their topics are looked up, and what that changes.

All expressions of a group are looked up together, so that new topics make one rebalance and not one for each expression. It is
done besides the requests: a member with an expression that nobody had before gets its partitions with a later heartbeat.

The functions are those of Kafka's GroupMetadataManager (maybeUpdateRegularExpressions, handleRegularExpressionsResult), with two
differences. An expression that this broker cannot read keeps its topics, where Kafka takes them away. A clock that was set back
delays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from .consumer_group import ConsumerGroup, ResolvedExpression
from .consumer_group_records import ConsumerGroupChange

SHORTEST_INTERVAL_MS = 10_000
"""From one refresh to the next. A topic that was just created waits that long at most, and a heartbeat."""


@dataclass(frozen=True, slots=True)
class ExpressionUpdate:
    """The effects of a member that changes its expression."""

    removed: str | None = None
    """The expression that nobody has any more: its record gets a tombstone."""
    is_new: bool = False
    """Whether nobody has had the expression: only then is it checked."""
    bumps_epoch: bool = False
    """Whether the member reads other topics at once. An expression without topics yet leaves that to ``resolved_change``."""


def expression_update(group: ConsumerGroup, old: str, new: str) -> ExpressionUpdate:
    """The effects of a member going from one expression to another one; "" is none. ``group`` is that of before."""
    if old == new:
        return ExpressionUpdate()
    subscribers = group.expression_subscribers.newest()
    is_new = bool(new) and new not in subscribers
    return ExpressionUpdate(
        removed=old if subscribers.get(old) == 1 else None,
        is_new=is_new,
        bumps_epoch=not new or (not is_new and new in group.expressions.newest()),
    )


def is_refresh_due(
    group: ConsumerGroup,
    subscribed_expressions: AbstractSet[str],
    now_ms: int,
    newest_topics_version: int,
    refresh_interval_ms: int,
) -> bool:
    """Whether the topics of the expressions are to be looked up now. The caller asks only while no refresh of the group runs.

    ``subscribed_expressions``: those of the members after the heartbeat. ``newest_topics_version``: the version of the metadata
    with which a topic was created last. ``refresh_interval_ms``: ``group.consumer.regex.refresh.interval.ms``.
    """
    if not subscribed_expressions:
        return False
    resolved = group.expressions.newest()
    if not resolved:
        return True
    last = next(iter(resolved.values()))  # of the last refresh, as all of them are
    if 0 <= now_ms - last.timestamp_ms <= SHORTEST_INTERVAL_MS:
        return False
    if not subscribed_expressions <= resolved.keys():
        return True
    return last.version < newest_topics_version or now_ms - last.timestamp_ms > refresh_interval_ms


def resolved_change(
    group: ConsumerGroup,
    topics_of: Mapping[str, AbstractSet[str] | None],
    version: int,
    timestamp_ms: int,
    hash_of: Callable[[AbstractSet[str]], int],
) -> ConsumerGroupChange:
    """The change that a refresh makes: a record for each expression, and a new epoch if topics or the metadata hash are others.

    ``topics_of``: by expression; None keeps its topics. ``version`` and ``timestamp_ms``: of the metadata that was searched, and
    the wall time, both from the start of the refresh. Members may have gone since: an expression that nobody has any more is
    left out. ``hash_of``: the metadata hash of the topics with these names.
    """
    change = ConsumerGroupChange(group.group_id)
    present = group.expressions.newest()
    subscribed = group.expression_subscribers.newest()
    has_changed = False
    for expression in sorted(topics_of.keys() & subscribed.keys()):
        before = present[expression].topics if expression in present else frozenset()
        found = topics_of[expression]
        topics = before if found is None else frozenset(found)
        has_changed |= topics != before
        change.expressions[expression] = ResolvedExpression(topics, version, timestamp_ms)
    metadata_hash = hash_of(_subscribed_topics(group, change.expressions))
    if has_changed or metadata_hash != group.metadata_hash:
        change.epoch = group.epoch + 1, metadata_hash
    return change


def _subscribed_topics(group: ConsumerGroup, newer: Mapping[str, ResolvedExpression | None]) -> set[str]:
    present = group.expressions.newest()
    topics = set(group.topic_subscribers.newest())
    for expression in group.expression_subscribers.newest():
        resolved = newer.get(expression) or present.get(expression)
        if resolved is not None:
            topics |= resolved.topics
    return topics
