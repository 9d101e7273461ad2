"""The way of a consumer group's members (KIP-848) to the target assignment, for the broker's own view and a remote one.

Both know of a member its epoch, the partitions that it has, and those that the target gives it. The rest follows from these, so
both views say the same. A partition that a member is to give up counts as its own until the client has said that it is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from .rows import AssignedTopics, ConsumerProgress

LEFT_STATIC_EPOCH = -2
"""Epoch of a static member that has left and is expected back."""


def consumer_progress(
    epoch: int,
    assignment_epoch: int,
    held: Mapping[str, AbstractSet[int]],
    target: Mapping[str, AbstractSet[int]],
    topics: Iterable[str],
    expression: str,
    *,
    is_classic: bool,
) -> ConsumerProgress:
    """How far a member has come. ``held`` and ``target`` are by topic; ``assignment_epoch`` is that of the target."""
    to_give_up, awaited = _without(held, target), _without(target, held)
    if epoch == LEFT_STATIC_EPOCH:
        state = "away, and expected back"
    elif to_give_up:
        state = "gives up partitions"
    elif awaited:
        state = "waits for partitions"
    elif epoch != assignment_epoch:
        state = f"comes to epoch {assignment_epoch}"
    else:
        state = "stable"
    return ConsumerProgress(
        epoch, state, to_give_up, awaited, in_order(target), tuple(sorted(topics)), expression, is_classic
    )


def in_order(partitions: Mapping[str, Iterable[int]]) -> AssignedTopics:
    """Numbers by topic, as rows have them."""
    return tuple(sorted((topic, tuple(sorted(numbers))) for topic, numbers in partitions.items()))


def _without(some: Mapping[str, AbstractSet[int]], others: Mapping[str, AbstractSet[int]]) -> AssignedTopics:
    left = {topic: numbers - others.get(topic, frozenset()) for topic, numbers in some.items()}
    return in_order({topic: numbers for topic, numbers in left.items() if numbers})
