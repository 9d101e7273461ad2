"""The movable partitions of a broker, sorted by weight and searched by bisection for those near a wanted weight."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from .model import Replicas
from .state import Measure, State

_SEEN = 200
Entry = tuple[int, int, int]
"""Weight, bytes and index of a partition."""


class Candidates:
    """Partitions by broker, sorted by what they weigh there, then by bytes. It is told of every change."""

    def __init__(self, state: State, measure: Measure) -> None:
        self._state, self._measure = state, measure
        self._by_broker: dict[int, list[Entry]] = {broker: [] for broker in measure.load}
        for partition, replicas in enumerate(state.replicas):
            if not state.fixed[partition]:
                for entry, broker in self._entries(partition, replicas):
                    self._by_broker[broker].append(entry)
        for entries in self._by_broker.values():
            entries.sort()

    def _entries(self, partition: int, replicas: Replicas) -> Iterator[tuple[Entry, int]]:
        for place, broker in enumerate(replicas):
            weight = self._measure.weight(partition, leads=place == 0)
            if weight:
                yield (weight, self._state.sizes[partition], partition), broker

    def moved(self, partition: int, old: Replicas, new: Replicas) -> None:
        """A partition has other replicas."""
        for entry, broker in self._entries(partition, old):
            entries = self._by_broker[broker]
            del entries[bisect_left(entries, entry)]
        for entry, broker in self._entries(partition, new):
            insort(self._by_broker[broker], entry)

    def near(self, broker: int, weight: int, size: int) -> Iterator[int]:
        """Partitions of a broker, the nearest to this weight and these bytes first, from above and below in turn."""
        entries = self._by_broker[broker]
        above = bisect_left(entries, (weight, size, -1))
        below = above - 1
        for _ in range(_SEEN):
            if above >= len(entries) and below < 0:
                return
            if above < len(entries):
                yield entries[above][2]
                above += 1
            if below >= 0:
                yield entries[below][2]
                below -= 1
