"""Replication quotas (KIP-73): measured rates in bytes per second, and their limits.

There are three quotas in a broker: of what it sends as a leader, of what it fetches as a follower, and of what it moves
between its log directories. The first two are for the replicas that a topic lists (``leader.replication.throttled.replicas``,
``follower.…``), the third is for all. What exceeds a quota is delayed, never refused, and counted when it is moved.

Rules (Kafka's ReplicationQuotaManager, SimpleRate, SampledStat):

- A rate is over the last ``samples`` windows in which anything was moved; over one window at least.
- Replicas in sync are never delayed. What they move counts, so that less is left for those that catch up.
- The rates are measured without a limit, too.
"""

from __future__ import annotations

from ..base.sampled_sum import SampledSum
from ..log.settings import LONG_MAX
from .settings import QuotaSettings

NO_LIMIT = LONG_MAX


class ByteRate:
    """Bytes per second over the last windows. ``now`` is in seconds that never go back."""

    __slots__ = ("_sizes",)

    def __init__(self, samples: int, window_seconds: float) -> None:
        self._sizes = SampledSum(samples, window_seconds)

    def record(self, size: int, now: float) -> None:
        """``size`` bytes were moved."""
        self._sizes.record(size, now)

    def per_second(self, now: float) -> float:
        """The rate; 0 when nothing was moved for long enough."""
        return self._sizes.total(now) / self._elapsed(now)

    def seconds_above(self, limit: float, now: float) -> float:
        """For how long the rate stays above ``limit`` if nothing more is moved; 0: it is not."""
        sizes = self._sizes
        size = sizes.total(now)
        if size <= limit * self._elapsed(now):
            return 0.0
        until_forgotten = sizes.ended + sizes.lifetime - now
        return min(sizes.began + size / limit - now, until_forgotten) if limit else until_forgotten

    def _elapsed(self, now: float) -> float:
        sizes = self._sizes
        return sizes.window if sizes.is_empty else max(now - sizes.began, sizes.window)


class Quota:
    """A limit on replication traffic."""

    __slots__ = ("_rate", "limit")

    def __init__(self, samples: int, window_seconds: float) -> None:
        self.limit = NO_LIMIT
        """In bytes per second; it may change at any time."""
        self._rate = ByteRate(samples, window_seconds)

    def record(self, size: int, now: float) -> None:
        """``size`` bytes were moved."""
        self._rate.record(size, now)

    def is_exceeded(self, now: float) -> bool:
        """Whether what can be delayed has to wait."""
        return self.seconds_exceeded(now) > 0

    def seconds_exceeded(self, now: float) -> float:
        """For how many seconds what can be delayed has to wait; 0: not at all."""
        return 0.0 if self.limit == NO_LIMIT else self._rate.seconds_above(self.limit, now)

    def rate(self, now: float) -> float:
        """Bytes per second over the last windows."""
        return self._rate.per_second(now)


class ReplicationQuotas:
    """The quotas of one broker."""

    def __init__(self, settings: QuotaSettings) -> None:
        replication = settings.replication_quota_window_num, settings.replication_quota_window_size_seconds
        self.leader = Quota(*replication)
        self.follower = Quota(*replication)
        self.log_dirs = Quota(
            settings.alter_log_dirs_replication_quota_window_num,
            settings.alter_log_dirs_replication_quota_window_size_seconds,
        )
        self.update(settings)

    def update(self, settings: QuotaSettings) -> None:
        """Set other limits; the windows stay those of the start."""
        self.leader.limit = settings.leader_replication_throttled_rate
        self.follower.limit = settings.follower_replication_throttled_rate
        self.log_dirs.limit = settings.replica_alter_log_dirs_io_max_bytes_per_second
