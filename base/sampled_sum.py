"""The sum of the values recorded in the last few time windows, from which quota rates are calculated.

A sample is what was recorded within one window, which begins with the first record after the window before it has ended. A
sample counts until its last record is older than all windows together (Kafka's SampledStat with a WindowedSum). Times may have
any unit, of a clock that never goes back.
"""

from __future__ import annotations

from collections import deque


class SampledSum:
    """The sum over the last ``samples`` windows of the length ``window``."""

    __slots__ = ("_samples", "lifetime", "window")

    def __init__(self, samples: int, window: float) -> None:
        self.window = window
        self.lifetime = samples * window
        self._samples: deque[_Sample] = deque(maxlen=samples + 1)  # the oldest may have begun before the first window

    @property
    def is_empty(self) -> bool:
        """Whether there are no samples; call ``total`` first, which drops old ones."""
        return not self._samples

    @property
    def began(self) -> float:
        """When the oldest sample began."""
        return self._samples[0].began

    @property
    def ended(self) -> float:
        """The time of the last record."""
        return self._samples[-1].ended

    def record(self, amount: float, now: float) -> None:
        """Add ``amount``; a negative one takes back what was recorded before."""
        samples = self._samples
        if not samples or now - samples[-1].began >= self.window:
            self._drop_old(now)
            samples.append(_Sample(now))
        latest = samples[-1]
        latest.amount += amount
        latest.ended = now

    def total(self, now: float) -> float:
        """The sum of the samples that count now."""
        self._drop_old(now)
        return sum(sample.amount for sample in self._samples)

    def _drop_old(self, now: float) -> None:
        samples = self._samples
        while samples and now - samples[0].ended >= self.lifetime:
            samples.popleft()


class _Sample:
    """What was recorded within one window, with the times of the first and the last record."""

    __slots__ = ("amount", "began", "ended")

    def __init__(self, now: float) -> None:
        self.began = self.ended = now
        self.amount: float = 0
