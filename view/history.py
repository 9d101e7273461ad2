"""Time series of the last hour: a value for every second, and a mean for every minute.

A value may be ``NOT_KNOWN``: it is part of no mean, and a minute without any other is not known either. Memory is taken once, at
the start: eight bytes for each value.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

SECONDS = 3600
MINUTES = 60
NOT_KNOWN = math.nan


class Ring:
    """The last ``size`` points of several series; a point's time is in ms since the epoch."""

    def __init__(self, names: Sequence[str], size: int) -> None:
        self._size = size
        self._times = array("d", bytes(8 * size))
        self._values = {name: array("d", bytes(8 * size)) for name in names}
        self._count = 0

    @property
    def nbytes(self) -> int:
        """What the points take of memory."""
        return (1 + len(self._values)) * 8 * self._size

    def note(self, at_ms: float, values: Mapping[str, float]) -> None:
        """Add a point, which takes the place of the oldest one."""
        place = self._count % self._size
        self._times[place] = at_ms
        for name, ring in self._values.items():
            ring[place] = values[name]
        self._count += 1

    def points(self, names: Sequence[str], most: int) -> list[tuple[float, ...]]:
        """The newest ``most`` points, oldest first: the time, and the values of these series."""
        columns = [self._times, *(self._values[name] for name in names)]
        first = max(self._count - min(most, self._size), 0)
        return [tuple(column[n % self._size] for column in columns) for n in range(first, self._count)]

    def newest(self, name: str) -> float:
        """The last value; 0 before there is one."""
        return self._values[name][(self._count - 1) % self._size] if self._count else 0.0


class History:
    """An hour of several series. A minute's point has the time of its end."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.seconds = Ring(names, SECONDS)
        self.minutes = Ring(names, MINUTES)
        self._sums = dict.fromkeys(names, 0.0)
        self._known = dict.fromkeys(names, 0)
        self._noted = 0

    def note(self, at_ms: float, values: Mapping[str, float]) -> None:
        """Add what was measured for the last second."""
        self.seconds.note(at_ms, values)
        for name in self.names:
            if not math.isnan(values[name]):
                self._sums[name] += values[name]
                self._known[name] += 1
        self._noted += 1
        if self._noted == 60:
            self.minutes.note(at_ms, {name: self._mean(name) for name in self.names})
            self._sums = dict.fromkeys(self.names, 0.0)
            self._known = dict.fromkeys(self.names, 0)
            self._noted = 0

    def _mean(self, name: str) -> float:
        return self._sums[name] / self._known[name] if self._known[name] else NOT_KNOWN

    @property
    def nbytes(self) -> int:
        return self.seconds.nbytes + self.minutes.nbytes
