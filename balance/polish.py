"""Refinement of a plan: fewer bytes copied for the same outcome, by undoing or replacing changes.

Every step lowers what is compared, measures in their order and then bytes and changes, so this ends; and it may be ended after
any step. A small cluster is looked through in pairs of changes, a large one only for single changes to take back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from .search import Note, led_by, replaced
from .state import Change, State
from .why import why_changed

_MOST_TRIED = 40_000
_MOST_PAIRS = 20_000


def polish(state: State, may_go_on: Callable[[], bool], note: Note) -> None:
    """Take back what can be, then look for something cheaper."""
    for partition in sorted(state.changed, key=lambda p: (-state.moved_bytes(p, state.replicas[p]), p)):
        if not may_go_on():
            return
        for new in _nearer(state, partition):
            if _is_better(state, [(partition, new)]):
                state.apply([(partition, new)])
                break
    if not any(measure.cost for measure in state.measures) and not state.changed:
        return
    _try_pairs(state, may_go_on, note)


def _nearer(state: State, partition: int) -> Iterator[tuple[int, ...]]:
    """What a partition had before; and that with the leader it has now."""
    before, now = state.before[partition], state.replicas[partition]
    yield before
    if now[0] in before[1:]:
        yield led_by(before, now[0])
    for old in set(before) - set(now):
        for new in set(now) - set(before):
            yield replaced(now, new, old)


def _try_pairs(state: State, may_go_on: Callable[[], bool], note: Note) -> None:
    movable = [partition for partition in range(len(state.partitions)) if not state.fixed[partition]]
    options = sum(1 for partition in movable[:1000] for _ in _alternatives(state, partition))
    if len(movable) > 1000 or options * (options + 1) // 2 > _MOST_PAIRS:
        return
    tries = itertools.count()

    def goes_on() -> bool:
        return next(tries) < _MOST_TRIED and may_go_on()

    while (changes := _first_better(state, movable, goes_on)) is not None:
        new = [partition for partition, _ in changes if partition not in state.changed]
        state.apply(changes)
        for partition in new:
            note(partition, why_changed(state, partition))


def _first_better(state: State, movable: Sequence[int], may_go_on: Callable[[], bool]) -> Sequence[Change] | None:
    singles = [(partition, new) for partition in movable for new in _alternatives(state, partition)]
    singles = [change for change in singles if state.may(*change)]
    found: Iterator[tuple[Change, ...]] = itertools.chain(
        ((change,) for change in singles),
        (pair for pair in itertools.combinations(singles, 2) if pair[0][0] != pair[1][0]),
    )
    for changes in found:
        if not may_go_on():
            return None
        if _is_better(state, changes):
            return changes
    return None


def _alternatives(state: State, partition: int) -> Iterator[tuple[int, ...]]:
    now, before = state.replicas[partition], state.before[partition]
    if now != before:
        yield before
    for broker in now:
        if broker != now[0]:
            yield led_by(now, broker)
        for target in state.receivers:
            if target not in now:
                yield replaced(now, broker, target)


def _is_better(state: State, changes: Sequence[Change]) -> bool:
    """Whether measures in their order, then bytes, then the number of changes are lower; a hard one is never higher."""
    if not all(state.may(*change) for change in changes):
        return False
    effects = state.effects(changes, -1)
    if effects is None:
        return False
    changed = sum((new != state.before[p]) - (state.replicas[p] != state.before[p]) for p, new in changes)
    return (*effects, state.more_bytes(changes), changed) < (0,) * (len(effects) + 2)
