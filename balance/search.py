"""The search for a plan: goal by goal, from the broker that is furthest outside its bounds, one change or two at a time.

Invariants: a change is done only if it lowers the measure that it is for and no hard or earlier one rises (``State.effects``),
so the search ends, and can be ended after any change. Where several changes would do, the one with the fewest bytes to copy for
what it brings is taken, and of these the one that helps later goals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from .candidates import Candidates
from .goals import Goal
from .model import Replicas
from .state import Change, Measure, State
from .why import FOR_RACKS

_TRIED = 12
_TARGETS = 6
_PASSES = 4
_PARTNERS = 4
_MIDDLES = 12
_LARGE = 1000

Score = tuple[float, ...]
Found = tuple[Score, Sequence[Change]]
Note = Callable[[int, str], None]
"""Is told why a partition changes."""


def search(state: State, may_go_on: Callable[[], bool], note: Note) -> None:
    """Change ``state`` for the better, for each goal in turn."""
    _Search(state, may_go_on, note).run()


def replaced(replicas: Replicas, broker: int, by: int) -> Replicas:
    """The new replica takes the old one's place in the order."""
    return tuple(by if each == broker else each for each in replicas)


def led_by(replicas: Replicas, broker: int) -> Replicas:
    """The first replica and another one change places."""
    return tuple({broker: replicas[0], replicas[0]: broker}.get(each, each) for each in replicas)


class _Search:
    def __init__(self, state: State, may_go_on: Callable[[], bool], note: Note) -> None:
        self._state, self._may_go_on, self._note = state, may_go_on, note
        self._candidates: Candidates | None = None
        self._may_copy = True
        self._is_large = len(state.partitions) >= _LARGE

    def run(self) -> None:
        by_goal = {measure.goal: number for number, measure in enumerate(self._state.measures)}
        for goal in self._state.goals:
            if goal is Goal.RACKS:
                self._spread_over_racks()
            else:
                self._even_out(by_goal[goal])

    # Racks.

    def _spread_over_racks(self) -> None:
        for partition, replicas in enumerate(self._state.replicas):
            while not self._state.fixed[partition] and self._state.rack_lack(replicas) > 0 and self._may_go_on():
                best = self._best_rack(partition, replicas)
                if best is None:
                    break
                new = best[1][0][1]
                self._apply(best[1], FOR_RACKS)
                replicas = new

    def _best_rack(self, partition: int, replicas: Replicas) -> Found | None:
        state = self._state
        lack = state.rack_lack(replicas)
        taken = {state.racks[broker] for broker in replicas}
        targets = [broker for broker in self._by_room(state.measures[0]) if state.racks[broker] not in taken]
        found: list[Found] = []
        for broker in replicas:
            for target in targets[:_TARGETS]:
                change = (partition, replaced(replicas, broker, target))
                if state.rack_lack(change[1]) < lack and state.may(*change):
                    effects = state.effects([change], -1)
                    if effects is not None:
                        found.append(((-self._harm(effects, -1),), [change]))
        return max(found, default=None)

    # Loads.

    def _even_out(self, number: int) -> None:
        measure = self._state.measures[number]
        if not measure.cost:
            return
        self._candidates = Candidates(self._state, measure)
        for way in range(_PASSES):
            self._may_copy = measure.replica is not None or way > 0  # leaders first change without a copy
            stuck: set[int] = set()  # for this pass only: changes of other brokers may make room for them
            has_moved = False
            while self._may_go_on():
                broker = max(
                    (b for b in measure.load if b not in stuck), key=lambda b: abs(measure.outside(b)), default=None
                )
                if broker is None or not measure.outside(broker):
                    break
                found = (
                    self._best_single(number, broker, is_wide=False)
                    or self._best_single(number, broker, is_wide=True)
                    or self._best_pair(number, broker)
                )
                if found is None:
                    stuck.add(broker)
                    continue
                self._apply(found[1], _reason(measure, broker))
                has_moved = True
            if not has_moved and self._may_copy:
                break
        self._candidates = None

    def _best_single(self, number: int, broker: int, *, is_wide: bool) -> Found | None:
        """One change, to or from the few brokers where it helps most, or else to or from any."""
        measure = self._state.measures[number]
        best: Found | None = None
        for high, low in self._ways(measure, broker, is_wide=is_wide):
            for change in self._changes(measure, high, low, _PARTNERS if is_wide or self._is_large else _TRIED):
                best = self._better(best, number, [change])
                if best is not None and self._is_large and self._is_good_enough(best[0], measure, change, high, low):
                    return best
            if best is not None and (best[0][0] == math.inf or is_wide):
                break
        return best

    def _is_good_enough(self, score: Score, measure: Measure, change: Change, high: int, low: int) -> bool:
        """Nothing could bring more for its bytes, and no later goal is harmed: in a large cluster the search is over then."""
        _, helped, gain, _ = score
        weight = self._weight(measure, change[0], high)
        most = min(weight, max(measure.outside(high), 0)) + min(weight, max(-measure.outside(low), 0))
        return helped >= 0 and gain >= most

    def _best_pair(self, number: int, broker: int) -> Found | None:
        """Two changes that help together: an exchange, or one that makes room for the other."""
        measure = self._state.measures[number]
        for high, low in self._ways(measure, broker):
            best: Found | None = None
            wanted = self._wanted(measure, high, low)
            for change in self._changes(measure, high, low, _TRIED, spread=True):
                there = self._weight(measure, change[0], high)
                back = self._changes(measure, low, high, _PARTNERS, weight=max(there - wanted, 1))
                for other in back:
                    if other[0] != change[0]:
                        best = self._better(best, number, [change, other])
                if best is not None and self._is_large:
                    return best
            if best is not None:
                return best
        return self._best_chain(number, broker) if measure.leader and not measure.replica else None

    def _best_chain(self, number: int, broker: int) -> Found | None:
        """Leadership goes on from a broker in between, where no replica of the one is on the other."""
        measure = self._state.measures[number]
        for high, low in self._ways(measure, broker):
            for middle in self._by_room(measure)[:_MIDDLES]:
                if middle not in (high, low):
                    for change in self._changes(measure, high, middle, _PARTNERS):
                        for other in self._changes(measure, middle, low, _PARTNERS):
                            if other[0] != change[0]:
                                best = self._better(None, number, [change, other])
                                if best is not None:
                                    return best
        return None

    def _better(self, best: Found | None, number: int, changes: Sequence[Change]) -> Found | None:
        state, measure = self._state, self._state.measures[number]
        if not all(state.may(*change) for change in changes):
            return best
        effects = state.effects(changes, number)
        if effects is None:
            return best
        copied = state.more_bytes(changes)
        gain = self._gain(measure, changes)
        # For bytes, what is gained per byte copied counts first. For other measures, what copies nothing comes first, and then
        # what harms no later goal.
        if measure.replica is state.sizes:
            ratio = math.inf if copied <= 0 else round(gain / copied, 2)
            score: Score = (ratio, -self._harm(effects, number), gain, effects[number] / -1)
        else:
            score = (math.inf if copied <= 0 else 0, -max(self._harm(effects, number), 0), gain, -copied)
        return max(best, (score, changes)) if best is not None else (score, changes)

    def _gain(self, measure: Measure, changes: Sequence[Change]) -> int:
        """By how much less brokers are outside their bounds."""
        gain = 0
        moved: dict[int, int] = {}
        for partition, new in changes:
            for broker, change in measure.changes(partition, self._state.replicas[partition], new):
                moved[broker] = moved.get(broker, 0) + change
        for broker, change in moved.items():
            before = abs(measure.outside(broker))
            measure.load[broker] += change
            gain += before - abs(measure.outside(broker))
            measure.load[broker] -= change
        return gain

    def _harm(self, effects: Sequence[int], number: int) -> float:
        """What changes do to later goals, each by its own scale."""
        total = 0.0
        for later in range(number + 1, len(effects)):
            if effects[later]:
                measure = self._state.measures[later]
                scale = max(measure.lower[self._state.receivers[0]], 1)
                total += effects[later] / (scale * scale)
        return round(total, 6)

    def _ways(self, measure: Measure, broker: int, *, is_wide: bool = False) -> Iterator[tuple[int, int]]:
        """From which broker to which: from one above its bounds to those with room, to one below from those with most."""
        order = self._by_room(measure)
        if measure.outside(broker) > 0:
            yield from ((broker, low) for low in (order if is_wide else self._some(order)) if low != broker)
        elif broker in self._state.receivers:
            order.reverse()
            yield from ((high, broker) for high in (order if is_wide else self._some(order)) if high != broker)

    def _some(self, order: list[int]) -> Iterable[int]:
        """The first few, and the first of each rack."""
        racks: dict[str | None, int] = {}
        for broker in order:
            racks.setdefault(self._state.racks[broker], broker)
        return dict.fromkeys([*order[:_TARGETS], *list(racks.values())[:_TARGETS]])

    def _by_room(self, measure: Measure) -> list[int]:
        """Where the most room is first; of those that are alike, where the fewest replicas are."""
        load = self._state.measures[0].load
        return sorted(self._state.receivers, key=lambda b: (measure.load[b] - measure.upper[b], load[b], b))

    def _wanted(self, measure: Measure, high: int, low: int) -> int:
        """How much would best go from one broker to the other: what brings both inside their bounds."""
        if measure.goal in (Goal.LEAVING, Goal.REPLICAS, Goal.LEADERS):
            return 1  # what each weighs
        need = max(measure.outside(high), -measure.outside(low), 1)
        room = min(measure.load[high] - measure.lower[high], measure.upper[low] - measure.load[low])
        return max(min(need, room), 1)

    def _changes(
        self, measure: Measure, high: int, low: int, limit: int, *, weight: int | None = None, spread: bool = False
    ) -> Iterator[Change]:
        """A few changes that take something from one broker to another, of about the weight that is wanted."""
        assert self._candidates is not None
        wanted = self._wanted(measure, high, low) if weight is None else weight
        weights = [wanted, 4 * wanted] if spread else [wanted]
        for weight in weights:
            given = 0
            for partition in self._candidates.near(high, weight, self._wanted_bytes(measure, high, low)):
                new = self._change(measure, partition, high, low)
                if new is not None:
                    yield partition, new
                    given += 1
                    if given >= limit:
                        break

    def _change(self, measure: Measure, partition: int, high: int, low: int) -> Replicas | None:
        replicas = self._state.replicas[partition]
        if low not in replicas:
            return replaced(replicas, high, low) if self._may_copy else None
        if measure.leader is not None and replicas[0] == high:
            return led_by(replicas, low)
        return None

    def _weight(self, measure: Measure, partition: int, broker: int) -> int:
        return measure.weight(partition, leads=self._state.replicas[partition][0] == broker)

    def _wanted_bytes(self, measure: Measure, high: int, low: int) -> int:
        """Where replicas are counted: how large they would best be, for the bytes to get even, too."""
        for other in self._state.measures:
            if other.goal is Goal.BYTES and measure.replica is not other.replica:
                need = min(max(other.outside(high), 0), max(other.upper[low] - other.load[low], 0))
                count = max(min(measure.outside(high), -measure.outside(low)), 1)
                average = other.load[high] // max(self._state.measures[0].load[high], 1)
                return min(need // count, average)
        return 0

    def _apply(self, changes: Sequence[Change], reason: str) -> None:
        old = [(partition, self._state.replicas[partition]) for partition, _ in changes]
        self._state.apply(changes)
        for (partition, before), (_, new) in zip(old, changes, strict=True):
            if before == self._state.before[partition]:
                self._note(partition, reason)  # the first reason is that of the most important goal
            if self._candidates is not None:
                self._candidates.moved(partition, before, new)


def _reason(measure: Measure, broker: int) -> str:
    load, outside = measure.load[broker], measure.outside(broker)
    if measure.goal is Goal.LEAVING:
        return f"leaving: broker {broker} is to have nothing"
    if outside > 0:
        return f"{measure.goal}: broker {broker} has {load}, above {measure.upper[broker]}"
    return f"{measure.goal}: broker {broker} has {load}, below {measure.lower[broker]}"
