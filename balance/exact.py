"""The optimal plan for clusters small enough for an exhaustive search (branch and bound).

Best is what is lowest by the goals in their order, then by the bytes to copy, then by the partitions that change. First each
partition's brokers are chosen, the heaviest partition first, then who leads each; bytes depend on the former alone. A branch is
left where even the least that can come of it, each number for itself, is no better than the best plan known. That is at first
what the search by single changes has found, so this may be ended at any time.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from .goals import Goal
from .model import Replicas
from .search import Note, led_by, replaced
from .state import Change, Measure, State
from .why import why_changed

_MOST_PARTITIONS = 12
_MOST_PLACEMENTS = 50_000
_MOST_LOOKED_AT = 100_000
_ASKED_EVERY = 100

RACKS, BYTES_COPIED, CHANGED = range(3)
"""What adds up partition by partition, beside the loads."""


def perfect(state: State, may_go_on: Callable[[], bool], note: Note) -> None:
    """Change ``state`` into the best there is, if it is a small one."""
    movable = [partition for partition in range(len(state.partitions)) if not state.fixed[partition]]
    if len(movable) > _MOST_PARTITIONS:
        return
    if math.prod(_count_of_placements(state, partition) for partition in movable) > _MOST_PLACEMENTS:
        return
    found = _Exact(state, movable, may_go_on).run()
    state.apply([change for change in found if change[1] != state.replicas[change[0]]])
    for partition, _ in found:
        if partition in state.changed:
            note(partition, why_changed(state, partition))


def _count_of_placements(state: State, partition: int) -> int:
    return math.comb(len(_possible(state, partition)), len(state.before[partition]))


def _possible(state: State, partition: int) -> list[int]:
    """Brokers that may have a replica: those that have, and those that get any."""
    return sorted({*state.receivers, *state.before[partition]})


@dataclasses.dataclass(frozen=True)
class _PlacementChoice:
    """The brokers of one partition."""

    brokers: Replicas
    """Its replicas, or its leader alone."""
    added: tuple[int, int, int]
    """What the choice adds to RACKS, BYTES_COPIED and CHANGED."""


class _Load:
    """A measure while partitions are given out: what brokers have, and what is still to be given."""

    def __init__(self, measure: Measure, limits: dict[int, float]) -> None:
        self.load = dict.fromkeys(measure.load, 0)
        self.rest: list[int] = []
        """What is still to be given at each level."""
        self.floor = 0
        """What the measure costs in any case."""
        self._bounds = [(broker, measure.lower[broker], measure.upper[broker]) for broker in measure.load]
        self._may_lack = max(sum(lower > 0 for _, lower, _ in self._bounds), 1)
        self._limits = limits

    def is_above_limit(self, brokers: Sequence[int]) -> bool:
        return any(self.load[broker] > self._limits[broker] for broker in brokers if broker in self._limits)

    def least(self, level: int) -> int:
        """The least cost that can come of it: loads only grow, and what is lacking is filled as evenly as may be."""
        over = lack = 0
        for broker, lower, upper in self._bounds:
            load = self.load[broker]
            if load > upper:
                over += (load - upper) ** 2
            elif load < lower:
                lack += lower - load
        lack = max(lack - self.rest[level], 0)
        # The sum of squares is smallest where the lack is spread evenly over all brokers that may have one.
        return max(self.floor, over + (lack * lack // self._may_lack if self.rest[level] else self._exact_lack()))

    def _exact_lack(self) -> int:
        return sum(max(lower - self.load[broker], 0) ** 2 for broker, lower, _ in self._bounds)


def _floor(measure: Measure, load: _Load, weights: Sequence[int]) -> int:
    """The least cost if any broker could lead any partition. Brokers have the same bounds, so their order does not matter."""
    reached = {tuple(sorted(load.load.values()))}
    for weight in sorted(weights, reverse=True):
        reached = {
            tuple(sorted((*loads[:place], loads[place] + weight, *loads[place + 1 :])))
            for loads in reached
            for place in range(len(loads))
        }
    broker = next(iter(measure.load))
    lower, upper = measure.lower[broker], measure.upper[broker]
    return min(sum(max(each - upper, lower - each, 0) ** 2 for each in loads) for loads in reached)


class _Exact:
    def __init__(self, state: State, movable: Sequence[int], may_go_on: Callable[[], bool]) -> None:
        self._state, self._may_go_on = state, may_go_on
        self._order = sorted(movable, key=lambda partition: -state.sizes[partition] * len(state.before[partition]))
        self._placements = [self._placements_of(partition) for partition in self._order]
        self._loads = [(measure, self._load_of(measure)) for measure in state.measures]
        self._sums = [0, 0, 0]
        self._parts = self._in_order()
        self._best_vector = self._vector_now()
        self._best: list[Replicas] | None = None
        self._path: list[_PlacementChoice] = []
        self._looked_at = 0
        self._is_over = False

    def run(self) -> list[Change]:
        """What partitions are to have for the best plan; nothing if that is known already."""
        self._descend(0)
        return [] if self._best is None else list(zip(self._order, self._best, strict=True))

    def _in_order(self) -> list[_Load | int]:
        """What is compared: loads, and places in the sums."""
        loads: dict[Goal, _Load | int] = {measure.goal: load for measure, load in self._loads}
        goals: dict[Goal, _Load | int] = {**loads, Goal.RACKS: RACKS}
        return [*(goals[goal] for goal in self._state.goals), BYTES_COPIED, CHANGED]

    def _vector_now(self) -> list[int]:
        state = self._state
        sums = {
            RACKS: sum(state.rack_lack(state.replicas[p]) for p in self._order),
            BYTES_COPIED: sum(state.moved_bytes(p, state.replicas[p]) for p in self._order),
            CHANGED: len(state.changed),
        }
        costs = {id(load): measure.cost for measure, load in self._loads}
        return [sums[part] if isinstance(part, int) else costs[id(part)] for part in self._parts]

    def _load_of(self, measure: Measure) -> _Load:
        """With the partitions that stay as they are, and what is to come by level: brokers first, leaders then."""
        state = self._state
        limits: dict[int, float] = {}
        if measure.goal is Goal.CAPACITY:
            limits = {broker: max(measure.upper[broker], self._before(measure, broker)) for broker in measure.load}
        load = _Load(measure, limits)
        movable = set(self._order)
        for partition, replicas in enumerate(state.before):
            if partition not in movable:
                for place, broker in enumerate(replicas):
                    load.load[broker] += measure.weight(partition, leads=place == 0)
        if measure.replica is not None:
            steps = [measure.replica[p] * len(state.before[p]) for p in self._order] + [0] * len(self._order)
        else:
            steps = [0] * len(self._order) + [measure.weight(p, leads=True) for p in self._order]
        total = sum(steps)
        load.rest = [total - given for given in itertools.accumulate(steps, initial=0)]
        is_few = len(state.brokers) ** len(self._order) <= _MOST_PLACEMENTS
        if measure.leader is not None and is_few and len(state.receivers) == len(state.brokers):
            load.floor = _floor(measure, load, [measure.leader[partition] for partition in self._order])
        return load

    def _before(self, measure: Measure, broker: int) -> int:
        return sum(
            measure.weight(partition, leads=replicas[0] == broker)
            for partition, replicas in enumerate(self._state.before)
            if broker in replicas
        )

    # What can be chosen.

    def _placements_of(self, partition: int) -> list[_PlacementChoice]:
        """Those that copy least first."""
        state = self._state
        before = state.before[partition]
        allowed = state.rack_lack(before)
        found = []
        for brokers in itertools.combinations(_possible(state, partition), len(before)):
            lack = state.rack_lack(brokers)
            if lack <= allowed:
                is_new = set(brokers) != set(before)
                found.append(_PlacementChoice(brokers, (lack, state.moved_bytes(partition, brokers), int(is_new))))
        return sorted(found, key=lambda choice: (choice.added[BYTES_COPIED:], choice.brokers))

    def _choices(self, level: int) -> Iterator[_PlacementChoice]:
        if level < len(self._order):
            yield from self._placements[level]
            return
        partition = self._order[level - len(self._order)]
        before = self._state.before[partition]
        placed = self._path[level - len(self._order)]
        for leader in sorted(placed.brokers, key=lambda broker: broker != before[0]):
            if leader == before[0] or (
                self._state.brokers[leader].receives and self._state.may_lead(partition, leader)
            ):
                yield _PlacementChoice((leader,), (0, 0, int(not placed.added[CHANGED] and leader != before[0])))

    # The search.

    def _descend(self, level: int) -> None:
        if level == 2 * len(self._order):
            self._best_vector = [self._least(part, level) for part in self._parts]
            self._best = [self._replicas(place) for place in range(len(self._order))]
            return
        for choice in self._choices(level):
            self._looked_at += 1
            if self._is_over or self._has_to_end():
                return
            self._give(level, choice, 1)
            if not self._is_hopeless(level, choice):
                self._path.append(choice)
                self._descend(level + 1)
                self._path.pop()
            self._give(level, choice, -1)

    def _has_to_end(self) -> bool:
        if self._looked_at > _MOST_LOOKED_AT or (self._looked_at % _ASKED_EVERY == 1 and not self._may_go_on()):
            self._is_over = True
        return self._is_over

    def _give(self, level: int, choice: _PlacementChoice, sign: int) -> None:
        """Give a partition to its brokers, or its lead to one; or take it back."""
        is_lead = level >= len(self._order)
        partition = self._order[level % len(self._order)]
        for measure, load in self._loads:
            weights = measure.leader if is_lead else measure.replica
            if weights is not None:
                for broker in choice.brokers:
                    load.load[broker] += sign * weights[partition]
        for number, added in enumerate(choice.added):
            self._sums[number] += sign * added

    def _is_hopeless(self, level: int, choice: _PlacementChoice) -> bool:
        if level < len(self._order) and any(load.is_above_limit(choice.brokers) for _, load in self._loads):
            return True
        for part, best in zip(self._parts, self._best_vector, strict=True):
            least = self._least(part, level + 1)
            if least != best:
                return least > best
        return True  # at best as good as the plan that is known

    def _least(self, part: _Load | int, level: int) -> int:
        return self._sums[part] if isinstance(part, int) else part.least(level)

    def _replicas(self, place: int) -> Replicas:
        """Each new replica in the place of one that goes, then the leader first."""
        replicas = self._state.before[self._order[place]]
        brokers, (leader,) = self._path[place].brokers, self._path[place + len(self._order)].brokers
        come = [broker for broker in brokers if broker not in replicas]
        gone = [broker for broker in replicas if broker not in brokers]
        for old, new in zip(gone, come, strict=True):
            replicas = replaced(replicas, old, new)
        return replicas if leader == replicas[0] else led_by(replicas, leader)
