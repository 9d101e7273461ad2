"""The reason for a partition's change: the goal that would be further away without it."""

from __future__ import annotations

from .goals import Goal
from .model import Replicas
from .state import Measure, State

FOR_RACKS = "racks: it is in another rack than its other replicas then"


def why_changed(state: State, partition: int) -> str:
    """The first goal that would be further away if this partition alone stayed as it was."""
    before = state.before[partition]
    for goal in state.goals:
        if goal is Goal.RACKS and state.rack_lack(state.replicas[partition]) < state.rack_lack(before):
            return FOR_RACKS
        for measure in state.measures:
            if measure.goal is goal and (why := _why(state, measure, partition, before)) is not None:
                return why
    return "it costs fewer bytes than another move"


def _why(state: State, measure: Measure, partition: int, before: Replicas) -> str | None:
    """What a broker would have, if that is worse for a measure."""
    changes = measure.changes(partition, state.replicas[partition], before)
    if sum(measure.cost_of(broker, change) for broker, change in changes) <= 0:
        return None
    broker, change = max(changes, key=lambda each: measure.cost_of(*each))
    if measure.goal is Goal.LEAVING:
        return f"leaving: broker {broker} is to have nothing"
    load, lower, upper = measure.load[broker] + change, measure.lower[broker], measure.upper[broker]
    bound = f"above {upper}" if load > upper else f"below {lower}"
    return f"{measure.goal}: broker {broker} would have {load} without it, {bound}"
