"""Division of a plan into steps that are carried out one after another.

Of every step is true: a broker sends, and gets, at most so many partitions at once; and nowhere is a volume fuller than its
limit, not even while both the old and the new replicas are there. A move that finds no room is left out, and named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .goals import ANY, capacity_of
from .model import ClusterModel
from .plan import BalancePlan, PlannedMove

LEADERS_AT_ONCE = 500
"""How many partitions get only another leader in one step, for which nothing is copied."""


class Steps(NamedTuple):
    """The moves of a plan in the order in which they can be done."""

    steps: list[tuple[PlannedMove, ...]]
    """The moves of a step are done at the same time."""
    without_room: tuple[PlannedMove, ...]
    """Those that can only be done when something else has made room."""


def steps_of(cluster: ClusterModel, plan: BalancePlan, at_once: int) -> Steps:
    """Moves in the plan's order as far as goes; those that copy nothing are last."""
    used = {broker_id: load.bytes for broker_id, load in plan.before.items()}
    limits = {
        broker_id: capacity_of(broker, used[broker_id], cluster.disk_limit)
        for broker_id, broker in cluster.by_id.items()
    }
    waiting: Sequence[PlannedMove] = [move for move in plan.moves if move.adding]
    steps: list[tuple[PlannedMove, ...]] = []
    while waiting:
        step, waiting = _step(waiting, used, limits, at_once)
        if not step:
            break
        steps.append(step)
        for move in step:
            for broker in move.removing:
                used[broker] -= move.size
    orders = [move for move in plan.moves if not move.adding]
    steps += [tuple(orders[start : start + LEADERS_AT_ONCE]) for start in range(0, len(orders), LEADERS_AT_ONCE)]
    return Steps(steps, tuple(waiting))


def _step(
    waiting: Sequence[PlannedMove], used: dict[int, int], limits: dict[int, int], at_once: int
) -> tuple[tuple[PlannedMove, ...], list[PlannedMove]]:
    """What can be done now, which counts as used from now on, and what waits on."""
    step: list[PlannedMove] = []
    later: list[PlannedMove] = []
    busy: Counter[int] = Counter()
    for number, move in enumerate(waiting):
        # New replicas are copied from the leader, for which the first replica stands here.
        taking_part = {move.before[0], *move.adding}
        has_room = all(limits[b] == ANY or used[b] + move.size <= limits[b] for b in move.adding)
        if has_room and all(busy[broker] < at_once for broker in taking_part):
            step.append(move)
            busy.update(taking_part)
            for broker in move.adding:
                used[broker] += move.size
        else:
            later.append(move)
            if len(later) > 20 * at_once * len(used):
                later += waiting[number + 1 :]
                break
    return tuple(step), later
