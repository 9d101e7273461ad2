"""What was recorded within the last few windows of time: the sum behind every rate that a quota is checked against.

A sample is what was recorded within one window, which begins with the first record after the last one was full. A sample
counts until its last record is older than all windows together (Kafka's SampledStat with a WindowedSum). Times are numbers
of any one unit that never go back.
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
        """Whether nothing counts; ask for the ``total`` first."""
        return not self._samples

    @property
    def began(self) -> float:
        """When the oldest sample that counts began."""
        return self._samples[0].began

    @property
    def ended(self) -> float:
        """When something was recorded last."""
        return self._samples[-1].ended

    def record(self, amount: float, now: float) -> None:
        """``amount`` may be negative: what was recorded before is taken back."""
        samples = self._samples
        if not samples or now - samples[-1].began >= self.window:
            self._drop_old(now)
            samples.append(_Sample(now))
        latest = samples[-1]
        latest.amount += amount
        latest.ended = now

    def total(self, now: float) -> float:
        """The sum of what counts now."""
        self._drop_old(now)
        return sum(sample.amount for sample in self._samples)

    def _drop_old(self, now: float) -> None:
        samples = self._samples
        while samples and now - samples[0].ended >= self.lifetime:
            samples.popleft()


class _Sample:
    """What was recorded within one window, and when the first and the last of it."""

    __slots__ = ("amount", "began", "ended")

    def __init__(self, now: float) -> None:
        self.began = self.ended = now
        self.amount: float = 0
