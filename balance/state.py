"""The state of the search for a plan: current replicas, the measure of each goal, and the effects of a change.

Each goal is a ``Measure``: loads of brokers with bounds, and how far outside of them they are as a sum of squares, so that
it is always better to take from the most loaded. Numbers are whole, hence every change that lowers a measure lowers it by one at
least, and a search that only does such changes ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .goals import ANY, Goal, capacity_of, even, in_order, racks_of
from .model import ClusterModel, Replicas, why_fixed

Change = tuple[int, Replicas]
"""A partition's index, and the replicas it is to have."""

_Split = tuple[int, list[int], list[int], tuple[int, int] | None]
"""A partition's index, who gets it, who loses it, and who leads it instead of whom."""


class Measure:
    """One goal as a load of brokers: what a replica weighs on its broker, or what a leader does, by partition."""

    def __init__(self, goal: Goal, replica: list[int] | None, leader: list[int] | None, brokers: Sequence[int]) -> None:
        assert (replica is None) != (leader is None)
        self.goal, self.replica, self.leader = goal, replica, leader
        self.load = dict.fromkeys(brokers, 0)
        """What each broker has now."""
        self.lower = dict.fromkeys(brokers, 0)
        """The least that each broker is to have."""
        self.upper = dict.fromkeys(brokers, ANY)
        """The most that each broker is to have."""

    def weight(self, partition: int, *, leads: bool) -> int:
        """What this partition weighs on a broker that has it."""
        if self.replica is not None:
            return self.replica[partition]
        return self.leader[partition] if leads and self.leader else 0

    def outside(self, broker: int) -> int:
        """How far a broker is outside its bounds: above 0 over them, below 0 under them."""
        load = self.load[broker]
        if load > self.upper[broker]:
            return load - self.upper[broker]
        return min(load - self.lower[broker], 0)

    def cost_of(self, broker: int, change: int) -> int:
        """By how much the sum of squares changes when a broker's load does."""
        load, lower, upper = self.load[broker], self.lower[broker], self.upper[broker]
        before = load - upper if load > upper else lower - load if load < lower else 0
        load += change
        after = load - upper if load > upper else lower - load if load < lower else 0
        return after * after - before * before

    @property
    def cost(self) -> int:
        return sum(self.outside(broker) ** 2 for broker in self.load)

    def changes(self, partition: int, old: Replicas, new: Replicas) -> list[tuple[int, int]]:
        """Brokers and what is added to their load when a partition gets other replicas."""
        if self.replica is not None:
            weight = self.replica[partition]
            found = [(broker, -weight) for broker in old if broker not in new]
            return found + [(broker, weight) for broker in new if broker not in old]
        if self.leader is not None and old[0] != new[0]:
            return [(old[0], -self.leader[partition]), (new[0], self.leader[partition])]
        return []


class State:
    """Everything that a search looks at and changes."""

    def __init__(self, cluster: ClusterModel, goals: Sequence[Goal], tolerance: float) -> None:
        self.cluster = cluster
        self.partitions = cluster.partitions
        self.brokers = cluster.by_id
        self.receivers = [broker.broker_id for broker in cluster.brokers if broker.receives]
        """The brokers that replicas may go to."""
        self.before: list[Replicas] = [partition.replicas for partition in cluster.partitions]
        """The replicas of each partition at the start, by its index."""
        self.replicas: list[Replicas] = list(self.before)
        """The replicas of each partition in the plan so far."""
        self.sizes = [partition.size for partition in cluster.partitions]
        self.fixed = [why_fixed(partition, self.brokers) is not None for partition in cluster.partitions]
        self.racks = racks_of(cluster)
        self._rack_count = len({self.racks[broker] for broker in self.receivers})
        self.goals = in_order(goals)
        self.measures = [self._measure(goal, tolerance) for goal in self._measured()]
        self.hard = sum(measure.goal.is_hard for measure in self.measures)
        """How many of the first ``measures`` are of hard goals."""
        self.changed: set[int] = set()
        """The partitions whose replicas are other than ``before``."""

    def _measured(self) -> list[Goal]:
        """Goals that are loads; the hard ones are kept up even if they were not chosen."""
        return [Goal.LEAVING, Goal.CAPACITY, *(goal for goal in self.goals if not goal.is_hard)]

    def _measure(self, goal: Goal, tolerance: float) -> Measure:
        measure = Measure(goal, *self._weights(goal), list(self.brokers))
        for partition, replicas in enumerate(self.replicas):
            for place, broker in enumerate(replicas):
                measure.load[broker] += measure.weight(partition, leads=place == 0)
        if goal is Goal.LEAVING:
            measure.upper |= {broker_id: 0 for broker_id, broker in self.brokers.items() if broker.is_leaving}
        elif goal is Goal.CAPACITY:
            for broker in self.receivers:
                measure.upper[broker] = capacity_of(self.brokers[broker], measure.load[broker], self.cluster.disk_limit)
        elif self.receivers:
            counted = [broker for broker, known in self.brokers.items() if known.receives or known.is_leaving]
            bounds = even(sum(measure.load[broker] for broker in counted), len(self.receivers), tolerance)
            for broker in self.receivers:
                measure.lower[broker], measure.upper[broker] = bounds
        return measure

    def _weights(self, goal: Goal) -> tuple[list[int] | None, list[int] | None]:
        ones = [1] * len(self.partitions)
        if goal in (Goal.LEAVING, Goal.REPLICAS):
            return ones, None
        if goal in (Goal.CAPACITY, Goal.BYTES):
            return self.sizes, None
        if goal is Goal.LEADERS:
            return None, ones
        if goal is Goal.NETWORK_IN:
            return [partition.written for partition in self.partitions], None
        assert goal is Goal.NETWORK_OUT
        return None, [p.read + p.written * (len(p.replicas) - 1) for p in self.partitions]

    def rack_lack(self, replicas: Replicas) -> int:
        """In how many more racks these replicas could be."""
        if self._rack_count == 1:
            return 0
        there = {self.racks[broker] for broker in replicas if self.brokers[broker].receives}
        return min(len(replicas), self._rack_count) - len(there)

    def may(self, partition: int, new: Replicas) -> bool:
        """Whether a partition may have these replicas, whatever that means for loads: racks, and who can lead."""
        if self.fixed[partition] or self.rack_lack(new) > self.rack_lack(self.replicas[partition]):
            return False
        return new[0] == self.before[partition][0] or self.may_lead(partition, new[0])

    def may_lead(self, partition: int, broker: int) -> bool:
        """Whether a broker that has a replica, or gets one, can lead: one that was there already has to be in sync."""
        return broker not in self.before[partition] or broker in self.partitions[partition].isr

    def effects(self, changes: Sequence[Change], upto: int) -> list[int] | None:
        """What changes together mean for each measure; None if they may not be done for the sake of measure ``upto``.

        They may if no broker gets above a hard bound, or further above, no measure before that one gets worse, and that one
        gets better.
        """
        found = []
        looked_at = [self._split(*change) for change in changes]
        for number, measure in enumerate(self.measures):
            total = 0
            for broker, change in self._moved(measure, looked_at):
                if change > 0 and number < self.hard and measure.load[broker] + change > measure.upper[broker]:
                    return None
                total += measure.cost_of(broker, change)
            if (total > 0 and number < max(upto, self.hard)) or (number == upto and total >= 0):
                return None
            found.append(total)
        return found

    def _split(self, partition: int, new: Replicas) -> _Split:
        """This is done once for all measures, because it is done for every change that is considered."""
        old = self.replicas[partition]
        gone = [broker for broker in old if broker not in new]
        come = [broker for broker in new if broker not in old]
        return partition, come, gone, (new[0], old[0]) if new[0] != old[0] else None

    def _moved(self, measure: Measure, changes: Sequence[_Split]) -> Iterable[tuple[int, int]]:
        """What is added to loads by changes together, each broker once."""
        found: list[tuple[int, int]] = []
        for partition, come, gone, leaders in changes:
            if measure.replica is not None:
                weight = measure.replica[partition]
                found += [(broker, weight) for broker in come]
                found += [(broker, -weight) for broker in gone]
            elif leaders is not None and measure.leader is not None:
                weight = measure.leader[partition]
                found += [(leaders[0], weight), (leaders[1], -weight)]
        if len(changes) == 1:
            return found
        sums: dict[int, int] = {}
        for broker, change in found:
            sums[broker] = sums.get(broker, 0) + change
        return sums.items()

    def moved_bytes(self, partition: int, new: Replicas) -> int:
        """Bytes that are copied to brokers for a partition to have these replicas."""
        return self.sizes[partition] * sum(broker not in self.before[partition] for broker in new)

    def more_bytes(self, changes: Sequence[Change]) -> int:
        """How many more bytes are to be copied after these changes than now; below 0: fewer."""
        return sum(self.moved_bytes(p, new) - self.moved_bytes(p, self.replicas[p]) for p, new in changes)

    def apply(self, changes: Sequence[Change]) -> None:
        """Do it."""
        for partition, new in changes:
            old = self.replicas[partition]
            for measure in self.measures:
                for broker, change in measure.changes(partition, old, new):
                    measure.load[broker] += change
            self.replicas[partition] = new
            if new == self.before[partition]:
                self.changed.discard(partition)
            else:
                self.changed.add(partition)
