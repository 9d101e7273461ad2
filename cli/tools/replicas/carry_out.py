"""Execution of replica moves: they are throttled, begun, waited for and reported.

The cluster moves by itself, so a command that ends before the moves do has only to be given again: it waits for what is under
way, and does what is left. A throttle is removed when the moves it was for are done: those of this command, or of the one
before that it takes up. Where other replicas are on their way meanwhile, the brokers' limits stay, because they are for
these, too.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....base.wording import counted
from ..client import Admin
from ..cluster_view import Key, find_topics
from ..output import OutputColumn, as_object, print_rows
from ..running import ToolError
from .move_progress import wait
from .moves import ClusterLayout, submit, under_way
from .replica_plan import Replicas
from .replication_throttle import throttle, unthrottle

COLUMNS = (
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("before"),
    OutputColumn("replicas"),
    OutputColumn("outcome"),
)
_DONE, _ON_ITS_WAY, _CANCELLED = "moved", "on its way", "cancelled"
_SETTLE_S = 10.0
_PAUSE_S = 0.05


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of a reassignment."""

    throttle: int | None = None
    """In bytes per second; None for none."""
    timeout_ms: int | None = None
    """For the wait; None for as long as it takes."""


@dataclasses.dataclass(frozen=True)
class ReassignmentReport:
    """The outcome of a reassignment."""

    rows: Sequence[Sequence[Any]]
    """One of ``COLUMNS`` for each partition."""
    keeps_throttle: bool
    """Whether the brokers' limits stay, for other moves."""

    @property
    def as_objects(self) -> list[dict[str, Any]]:
        """The rows as JSON has them."""
        return [as_object(COLUMNS, row) for row in self.rows]

    def show(self) -> None:
        """A table, and what is to be known of the throttle."""
        if self.rows:
            print_rows(COLUMNS, self.rows)
        if self.keeps_throttle:
            print("The limits of the brokers stay, because other replicas are on their way.")

    def check(self) -> None:
        """Raises ToolError unless everything is where it was to go."""
        outcomes = [row[-1] for row in self.rows]
        if on_their_way := outcomes.count(_ON_ITS_WAY):
            raise ToolError(
                f"still on the way: {counted(on_their_way, 'partition')} of {len(outcomes)}; the cluster continues, "
                "and the same command waits again"
            )
        if cancelled := outcomes.count(_CANCELLED):
            raise ToolError(
                f"{counted(cancelled, 'move')} of {len(outcomes)} ended elsewhere: another move was requested"
            )


def carry_out(
    admin: Admin, layout: ClusterLayout, targets: Mapping[Key, Replicas], limits: Limits
) -> ReassignmentReport:
    """Have partitions get these replicas; return when they have, or the time has ended. Raises ToolError.

    One that is on its way there already is waited for.
    """
    new = {key: target for key, target in targets.items() if layout.targets[key] != target}
    begun = {key for key in targets if key in layout.moves}
    is_throttled = limits.throttle is not None or bool(begun)
    # Before the moves begin; and for those that are under way already, because a broker has one limit for all of them.
    if limits.throttle is not None and targets:
        moves = layout.moves | {key: layout.move_to(key, target) for key, target in new.items()}
        throttle(admin, moves, limits.throttle, layout.racks.keys())
    left: Mapping[Key, Any] = {}
    keeps = False
    try:
        if new:
            submit(admin, new)
        left = wait(admin, targets.keys(), math.inf if limits.timeout_ms is None else limits.timeout_ms / 1000)
    except KeyboardInterrupt:
        print("ottla: the cluster continues; the same command waits for the end again", file=sys.stderr)
        raise
    except ToolError:
        # Moves that did begin go on, and need their limit: the next run with these partitions removes it.
        if is_throttled and not any(key in targets for key in under_way(admin)):
            remove_throttle(admin, targets)
        raise
    if is_throttled and not left:
        keeps = remove_throttle(admin, targets)
    now = _settled(admin, {key: target for key, target in targets.items() if key not in left})
    rows = [
        (*key, list(layout.partitions[key].replicas), list(target), _outcome(key in left, now.get(key), target))
        for key, target in sorted(targets.items())
    ]
    return ReassignmentReport(rows, keeps)


def remove_throttle(admin: Admin, keys: Iterable[Key]) -> bool:
    """After the moves of these partitions; whether the brokers' limits stay, for moves of others. Raises ToolError."""
    others = under_way(admin)
    there = {topic.name for topic in find_topics(admin, None)}
    topics = {topic for topic, _ in keys} & there - {topic for topic, _ in others}
    live = [broker["broker_id"] for broker in admin.describe_cluster()["brokers"]]  # others can't be told
    unthrottle(admin, topics, () if others else live)
    return bool(others)


def _settled(admin: Admin, targets: Mapping[Key, Replicas]) -> Mapping[Key, Replicas]:
    """Which replicas clients are told of, once that is what was asked for, or as they are told after a while."""
    until = time.monotonic() + _SETTLE_S
    while True:
        now = {(topic.name, p.number): p.replicas for topic in find_topics(admin, None) for p in topic.partitions}
        if all(now.get(key) == target for key, target in targets.items()) or time.monotonic() >= until:
            return now
        time.sleep(_PAUSE_S)


def _outcome(is_left: bool, now: Replicas | None, target: Replicas) -> str:
    if is_left:
        return _ON_ITS_WAY
    return _DONE if now == target else _CANCELLED
