"""A count of values per bucket, from which the histogram metrics are made."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

TIME_BOUNDS_MS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0, 30000.0)
"""For times in milliseconds: from requests with a response at once to those that wait for as long as is allowed."""


class Distribution:
    """Counts of values by bucket: those up to its bound and above the bound before it."""

    __slots__ = ("_buckets", "bounds", "sum")

    def __init__(self, bounds: Sequence[float] = TIME_BOUNDS_MS) -> None:
        self.bounds = bounds
        self.sum = 0.0
        """The sum of all values so far."""
        self._buckets = [0] * (len(bounds) + 1)

    def note(self, value: float) -> None:
        self._buckets[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add(self, other: Distribution) -> None:
        """Count the values of another one with the same bounds, too."""
        self._buckets = [mine + its for mine, its in zip(self._buckets, other._buckets, strict=True)]
        self.sum += other.sum

    def cumulative(self) -> list[int]:
        """How many values were at most each bound, and last how many there were."""
        return list(accumulate(self._buckets))
