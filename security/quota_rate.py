"""The arithmetic of client quotas: a client's rate and its throttle time.

Rules (Kafka's Rate, TokenBucket, QuotaUtils, StrictControllerMutationQuota):

- A rate is the sum of the samples over the time since the oldest of them began; where that is less than ``samples - 1`` whole
  windows, the missing windows are added, so that a client that has just begun is not taken for a fast one.
- The client is throttled until, with nothing more recorded, the rate would be down at its limit: that is the time that the rate
  covers, multiplied by (rate - limit) / limit. With a limit of 0 that is for ever: it is the longest time allowed if there is
  one, otherwise 0, because in Kafka the number overflows.
- A token bucket holds as many tokens as the limit allows in all windows together, and is refilled at the limit's pace. It may
  be overdrawn by one request, and is then exhausted until it is refilled to 0. With a limit of 0 or less that never happens: the
  client is throttled for 0 ms, again because Kafka's number overflows, or is negative.

Amounts are bytes, percents of a thread's time, or partitions; limits are the same per second. Times are whole milliseconds, as
in Kafka, of a clock that never goes back.
"""

from __future__ import annotations

import math

from ..base.sampled_sum import SampledSum

_LONGEST_MS = 2**31 - 1
"""The largest value of the field in a response."""


class QuotaRate:
    """An amount per second, over the last windows."""

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
        """The time that the rate covers."""
        self._sum.total(now_ms)
        elapsed = 0 if self._sum.is_empty else now_ms - int(self._sum.began)
        # As Kafka's Rate: windows that are missing count as full ones without any use. Otherwise the first use after a
        # pause would be a burst within no time, and be throttled.
        missing = self._full_windows - elapsed // self._window
        return max(elapsed + max(missing, 0) * self._window, 1)

    def throttle_ms(self, limit: float, now_ms: int, most_ms: int | None = None) -> int:
        """For how long, at most ``most_ms``, the client is to be throttled; 0 if it is within its limit."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        if limit <= 0:
            return (most_ms or 0) if limit == 0 else 0
        throttle = _rounded((rate - limit) / limit * self.elapsed_ms(now_ms))
        return min(throttle, _LONGEST_MS if most_ms is None else most_ms)

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing was recorded in the last windows."""
        self._sum.total(now_ms)
        return self._sum.is_empty


class TokenBucket:
    """Tokens, of which each change takes some. A new bucket is full."""

    __slots__ = ("_burst_seconds", "_filled_at", "_tokens")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._burst_seconds = samples * window_ms / 1000
        self._tokens = math.inf
        self._filled_at = 0

    def take(self, tokens: float, limit: float, now_ms: int) -> None:
        """Take tokens, even more than there are."""
        self._tokens = self.left(limit, now_ms) - tokens

    def left(self, limit: float, now_ms: int) -> float:
        """How many tokens there are; negative when it is overdrawn."""
        passed = max(now_ms - self._filled_at, 0) / 1000
        self._tokens = min(self._burst_seconds * limit, self._tokens + limit * passed)
        self._filled_at = now_ms
        return self._tokens

    def is_full(self, limit: float, now_ms: int) -> bool:
        """Whether it has as many tokens as it can hold."""
        return self.left(limit, now_ms) >= self._burst_seconds * limit

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """For how long the bucket stays exhausted; 0 if it is not, or stays so for ever."""
        left = self.left(limit, now_ms)
        if left >= 0 or limit <= 0:
            return 0
        return min(_rounded(-left / limit * 1000), _LONGEST_MS)


def _rounded(milliseconds: float) -> int:
    """As Java's Math.round does it."""
    return _LONGEST_MS if math.isinf(milliseconds) else math.floor(milliseconds + 0.5)
