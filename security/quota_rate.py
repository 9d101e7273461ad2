"""The arithmetic of client quotas: how fast a client is, and for how long it is to be held up.

Rules (Kafka's Rate, TokenBucket, QuotaUtils, StrictControllerMutationQuota):

- A rate is the sum of the samples over the time since the oldest of them began; where that is less than ``samples - 1`` whole
  windows, the missing windows are added, so that a client that has just begun is not taken for a fast one.
- The client is held up until, with nothing more recorded, the average would be down at its limit: the excess over the limit,
  as a share of the limit, of the time that the rate has ended. Under a limit of 0 that has no end: it is the longest time where
  there is one, and none at all where there is not, because in Kafka the number overflows.
- A token bucket holds as many tokens as the limit allows in all windows together, and is refilled at the limit's pace. It may
  be overdrawn by one request, and is then exhausted until it is refilled to 0. Under a limit of 0 or less that is never: the
  client is held up for no time at all, again because Kafka's number overflows, or is negative.

Amounts are bytes, percents of a thread's time, or partitions; limits are the same per second. Times are milliseconds, whole
ones as in Kafka, that never go back.
"""

from __future__ import annotations

import math

from ..base.sampled_sum import SampledSum

_LONGEST_MS = 2**31 - 1
"""What the field of an answer can say."""


class QuotaRate:
    """An amount per second, of late."""

    __slots__ = ("_full_windows", "_sum", "_window")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._sum = SampledSum(samples, window_ms)
        self._window = window_ms
        self._full_windows = samples - 1

    def record(self, amount: float, now_ms: int) -> None:
        """A negative amount takes back what was recorded."""
        self._sum.record(amount, now_ms)

    def per_second(self, now_ms: int) -> float:
        """The rate."""
        total = self._sum.total(now_ms)
        return total * 1000 / self.elapsed_ms(now_ms)

    def elapsed_ms(self, now_ms: int) -> int:
        """Over how much time the rate is."""
        self._sum.total(now_ms)
        elapsed = 0 if self._sum.is_empty else now_ms - int(self._sum.began)
        missing = self._full_windows - elapsed // self._window
        return max(elapsed + max(missing, 0) * self._window, 1)

    def throttle_ms(self, limit: float, now_ms: int, most_ms: int | None = None) -> int:
        """For how long the client is to be held up, at most for so long; 0: it is within its limit."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        if limit <= 0:
            return (most_ms or 0) if limit == 0 else 0
        throttle = _rounded((rate - limit) / limit * self.elapsed_ms(now_ms))
        return min(throttle, _LONGEST_MS if most_ms is None else most_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing was recorded for so long that nothing is left to remember."""
        self._sum.total(now_ms)
        return self._sum.is_empty


class TokenBucket:
    """Tokens that are used up by what is recorded. One that is new is full."""

    __slots__ = ("_burst_seconds", "_filled_at", "_tokens")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._burst_seconds = samples * window_ms / 1000
        self._tokens = math.inf
        self._filled_at = 0

    def take(self, tokens: float, limit: float, now_ms: int) -> None:
        """Use up tokens, even such as are not there."""
        self._tokens = self.left(limit, now_ms) - tokens

    def left(self, limit: float, now_ms: int) -> float:
        """How many tokens there are; fewer than none when it is overdrawn."""
        passed = max(now_ms - self._filled_at, 0) / 1000
        self._tokens = min(self._burst_seconds * limit, self._tokens + limit * passed)
        self._filled_at = now_ms
        return self._tokens

    def is_full(self, limit: float, now_ms: int) -> bool:
        """Whether nothing is to be remembered of what was taken."""
        return self.left(limit, now_ms) >= self._burst_seconds * limit

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """For how long the bucket stays exhausted; 0: it is not, or for ever."""
        left = self.left(limit, now_ms)
        if left >= 0 or limit <= 0:
            return 0
        return min(_rounded(-left / limit * 1000), _LONGEST_MS)


def _rounded(milliseconds: float) -> int:
    """As Java's Math.round does it."""
    return _LONGEST_MS if math.isinf(milliseconds) else math.floor(milliseconds + 0.5)
