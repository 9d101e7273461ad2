"""Plans of replica assignments: to empty a broker, to add replicas, to spread topics.

Pure: no I/O.

Of every plan is true:

- A partition has as many replicas as before, or more where they are added; none is on a broker twice.
- What can stay where it is stays. A replica that replaces another takes its place in the order, so that what was preferred
  to lead is so still.
- A new replica goes into a rack that has none of the partition where there is one, as new topics are laid out (KIP-36); of
  the brokers there to the one with the fewest replicas, and then with the lowest id. Racks count where every broker names one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..cluster_view import Key

Replicas = tuple[int, ...]
Assignment = Mapping[Key, Replicas]
Racks = Mapping[int, str | None]
"""Of the brokers that are alive."""


class ReplicaPlan(NamedTuple):
    """A plan of new replicas."""

    changes: dict[Key, Replicas]
    """The future replicas of those partitions that change."""
    stuck: list[Key]
    """Partitions for which there are too few brokers for another replica."""


def without_broker(assignment: Assignment, broker_id: int, racks: Racks) -> ReplicaPlan:
    """Every replica of one broker goes to another one. ``assignment`` is of all partitions."""
    brokers = _Brokers({other: rack for other, rack in racks.items() if other != broker_id}, assignment)
    plan = ReplicaPlan({}, [])
    for key, replicas in sorted(assignment.items()):
        if broker_id in replicas:
            found = brokers.beside([replica for replica in replicas if replica != broker_id])
            if found is None:
                plan.stuck.append(key)
            else:
                plan.changes[key] = _replaced(replicas, broker_id, found)
    return plan


def with_factor(assignment: Assignment, chosen: Iterable[Key], factor: int, racks: Racks) -> ReplicaPlan:
    """The chosen partitions get as many replicas, unless they have more. ``assignment`` is of all partitions."""
    brokers = _Brokers(racks, assignment)
    plan = ReplicaPlan({}, [])
    for key in sorted(chosen):
        replicas = assignment[key]
        while len(replicas) < factor and (found := brokers.beside(replicas)) is not None:
            replicas = (*replicas, found)
        if len(replicas) < factor:
            plan.stuck.append(key)
        elif replicas != assignment[key]:
            plan.changes[key] = replicas
    return plan


def spread(assignment: Assignment, racks: Racks) -> ReplicaPlan:
    """All these partitions go to the brokers of ``racks``, with as many replicas on each, and leaders, as goes."""
    brokers = _Brokers(racks, {key: [r for r in replicas if r in racks] for key, replicas in assignment.items()})
    now: dict[Key, Replicas] = {}
    stuck = []
    for key, replicas in sorted(assignment.items()):
        for replica in replicas:
            if replica not in racks:
                found = brokers.beside([other for other in replicas if other != replica])
                if found is None:
                    stuck.append(key)
                    break
                replicas = _replaced(replicas, replica, found)
        else:
            now[key] = replicas
    while (change := _evener(now, brokers)) is not None:
        key, replicas = change
        now[key] = replicas
    while (change := _better_led(now, brokers)) is not None:
        key, replicas = change
        now[key] = replicas
    return ReplicaPlan({key: replicas for key, replicas in now.items() if replicas != assignment[key]}, stuck)


class _Brokers:
    """The brokers that replicas can go to, and how many each has by now."""

    def __init__(self, racks: Racks, assignment: Mapping[Key, Collection[int]]) -> None:
        self._racks = racks if None not in racks.values() else dict.fromkeys(racks)
        self.load = Counter(dict.fromkeys(racks, 0))
        self.load.update(replica for replicas in assignment.values() for replica in replicas if replica in racks)

    def beside(self, replicas: Collection[int]) -> int | None:
        """Where another replica goes, which counts from now on; None where there is no broker for it."""
        taken = {self._racks.get(replica) for replica in replicas}
        candidates = [broker for broker in self._racks if broker not in replicas]
        if not candidates:
            return None
        found = min(candidates, key=lambda broker: (self._racks[broker] in taken, self.load[broker], broker))
        self.load[found] += 1
        return found

    def rack_count(self, replicas: Replicas) -> int:
        """In how many racks these are."""
        return len({self._racks.get(replica) for replica in replicas})


def _replaced(replicas: Replicas, replica: int, by: int) -> Replicas:
    return tuple(by if each == replica else each for each in replicas)


def _pairs(counts: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Brokers of which one has more than the other by at least two; the largest differences first.

    With one step from the first to the second the sum of the squares is lower, so steps come to an end.
    """
    order = sorted(counts, key=lambda broker: (counts[broker], broker))
    for high in reversed(order):
        for low in order:
            if counts[high] - counts[low] < 2:
                break
            yield high, low


def _evener(now: Assignment, brokers: _Brokers) -> tuple[Key, Replicas] | None:
    """One replica on a broker with fewer of them, where that costs no rack; None when they are even."""
    for high, low in _pairs(brokers.load):
        for key, replicas in now.items():
            if high in replicas and low not in replicas:
                moved = _replaced(replicas, high, low)
                if brokers.rack_count(moved) >= brokers.rack_count(replicas):
                    brokers.load[high] -= 1
                    brokers.load[low] += 1
                    return key, moved
    return None


def _better_led(now: Assignment, brokers: _Brokers) -> tuple[Key, Replicas] | None:
    """The same replicas of a partition in another order, so that a broker leads that leads less; None when they are even."""
    led = Counter(dict.fromkeys(brokers.load, 0))
    led.update(replicas[0] for replicas in now.values())
    for high, low in _pairs(led):
        for key, replicas in now.items():
            if replicas[0] == high and low in replicas:
                return key, tuple({high: low, low: high}.get(each, each) for each in replicas)
    return None
