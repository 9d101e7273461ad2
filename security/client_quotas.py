"""The quotas of users and client ids, as one broker applies them to its clients (KIP-13, 55, 124, 599).

There are four kinds: bytes a second that are produced, and fetched; how much of one thread's time requests take, in percent;
and partitions a second that are created or deleted. Each broker counts for itself. All clients that share a quota are counted in
one ``SharedQuota``. It exists while it is used: where nothing was recorded for the length of all windows, there is nothing left
to count, and it is dropped when there are many. Clients without a quota are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from ..base.sampled_sum import SampledSum
from .quota_precedence import QuotaEntity, find, limit_of
from .quota_rate import QuotaRate, TokenBucket
from .quota_settings import ClientQuotaSettings

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"

_MANY = 1_000
_MOST = 10_000
_MOST_REMEMBERED = 10_000
_THROTTLE_SAMPLES, _THROTTLE_WINDOW_MS = 2, 30_000
"""Kafka's default windows of a metric."""


class SharedQuota:
    """The use that clients make of a quota that they share. Times are of a clock that never goes back."""

    def __init__(self, sharing: QuotaEntity, samples: int, window_ms: int) -> None:
        self.sharing = sharing
        self.limit = 0.0
        """Per second. It may change."""
        self.rate = QuotaRate(samples, window_ms)
        self._most_at_once = (samples - 1) * window_ms / 1000
        self._throttled: SampledSum | None = None  # made when needed: most clients are never throttled
        self._throttled_count: SampledSum | None = None

    @property
    def most_at_once(self) -> float:
        """The most that can be used at once without being throttled, after a time without any use."""
        return self.limit * self._most_at_once

    def use(self, amount: float, now_ms: int, most_ms: int | None = None) -> int:
        """Count ``amount``; returns for how many milliseconds, at most ``most_ms``, the client is to be throttled."""
        self.rate.record(amount, now_ms)
        return self.rate.throttle_ms(self.limit, now_ms, most_ms)

    def note_throttled(self, throttle_ms: int, now_ms: int) -> None:
        """Count that a client is throttled because of this quota."""
        if self._throttled is None or self._throttled_count is None:
            self._throttled = SampledSum(_THROTTLE_SAMPLES, _THROTTLE_WINDOW_MS)
            self._throttled_count = SampledSum(_THROTTLE_SAMPLES, _THROTTLE_WINDOW_MS)
        self._throttled.record(throttle_ms, now_ms)
        self._throttled_count.record(1, now_ms)

    def average_throttle_ms(self, now_ms: int) -> float:
        """For how long clients were throttled in the last windows, on average over these times; 0 if none was."""
        if self._throttled is None or self._throttled_count is None:
            return 0.0
        count = self._throttled_count.total(now_ms)
        return self._throttled.total(now_ms) / count if count else 0.0

    def is_idle(self, now_ms: int) -> bool:
        """Whether there is nothing left to count, so that it can be dropped."""
        return self.rate.is_idle(now_ms)


class SharedMutationQuota(SharedQuota):
    """The quota of changes at the controller, which is also counted in tokens."""

    def __init__(self, sharing: QuotaEntity, samples: int, window_ms: int) -> None:
        super().__init__(sharing, samples, window_ms)
        self._bucket = TokenBucket(samples, window_ms)

    def take(self, partitions: int, now_ms: int) -> None:
        """Count partitions that are created or deleted."""
        self.rate.record(partitions, now_ms)
        self._bucket.take(partitions, self.limit, now_ms)

    def is_exhausted(self, now_ms: int) -> bool:
        """Whether more tokens were taken than there were."""
        return self._bucket.left(self.limit, now_ms) < 0

    def exhausted_ms(self, now_ms: int) -> int:
        """For how long the client is to be throttled because of that; 0: not at all."""
        return self._bucket.throttle_ms(self.limit, now_ms)

    def tokens(self, now_ms: int) -> float:
        """How many tokens are left."""
        return self._bucket.left(self.limit, now_ms)

    def is_idle(self, now_ms: int) -> bool:
        return super().is_idle(now_ms) and self._bucket.is_full(self.limit, now_ms)


S = TypeVar("S", bound=SharedQuota)


class QuotasOfKind(Generic[S]):
    """All quotas of one kind, and what was used of them."""

    def __init__(self, key: str, make: Callable[[QuotaEntity], S]) -> None:
        self.key = key
        self._make = make
        self._limits: dict[QuotaEntity, float] = {}
        self._shared: dict[QuotaEntity, S] = {}
        self._found: dict[tuple[str, str], S | None] = {}
        self._many = _MANY

    @property
    def is_on(self) -> bool:
        """Whether a quota of this kind is set for anyone."""
        return bool(self._limits)

    def set_limit(self, entity: QuotaEntity, limit: float | None) -> None:
        """Set an entity's ``limit`` per second; None removes it."""
        if limit == self._limits.get(entity):
            return
        if limit is None:
            del self._limits[entity]
        else:
            self._limits[entity] = limit
        # Another quota may apply to a client now. What was used of the others goes on counting, under the new limit.
        self._found.clear()
        for sharing, shared in list(self._shared.items()):
            now = limit_of(self._limits, sharing)
            if now is None:
                del self._shared[sharing]
            else:
                shared.limit = now

    def of(self, user: str, client_id: str, now_ms: int) -> S | None:
        """The quota that applies to a client, None where none does."""
        client = user, client_id
        try:
            return self._found[client]
        except KeyError:
            pass
        if len(self._found) >= _MOST_REMEMBERED:
            self._found.clear()
        found = find(self._limits, user, client_id)
        shared = None if found is None else self._share(*found, now_ms)
        self._found[client] = shared
        return shared

    def in_use(self) -> Iterator[S]:
        """The quotas that clients have used recently."""
        return iter(list(self._shared.values()))

    def _share(self, sharing: QuotaEntity, limit: float, now_ms: int) -> S:
        shared = self._shared.get(sharing)
        if shared is None:
            if len(self._shared) >= self._many:
                self._drop(now_ms)
            shared = self._shared[sharing] = self._make(sharing)
        shared.limit = limit
        return shared

    def _drop(self, now_ms: int) -> None:
        """Drop what is idle, and the oldest where clients have used too many names."""
        for sharing, shared in list(self._shared.items()):
            if shared.is_idle(now_ms):
                del self._shared[sharing]
        while len(self._shared) > _MOST // 2:
            del self._shared[next(iter(self._shared))]
        self._many = max(_MANY, 2 * len(self._shared))
        self._found.clear()


class ClientQuotas:
    """The client quotas of one broker."""

    def __init__(self, settings: ClientQuotaSettings) -> None:
        samples, window_ms = settings.quota_window_num, settings.quota_window_size_seconds * 1000
        mutation_samples = settings.controller_quota_window_num
        mutation_window_ms = settings.controller_quota_window_size_seconds * 1000
        self.longest_request_throttle_ms = window_ms
        self.produce = QuotasOfKind(PRODUCER_BYTE_RATE, lambda sharing: SharedQuota(sharing, samples, window_ms))
        self.fetch = QuotasOfKind(CONSUMER_BYTE_RATE, lambda sharing: SharedQuota(sharing, samples, window_ms))
        self.request = QuotasOfKind(REQUEST_PERCENTAGE, lambda sharing: SharedQuota(sharing, samples, window_ms))
        self.mutations = QuotasOfKind(
            CONTROLLER_MUTATION_RATE,
            lambda sharing: SharedMutationQuota(sharing, mutation_samples, mutation_window_ms),
        )
        self.kinds = (self.produce, self.fetch, self.request, self.mutations)
        self.is_on = False
        """Whether any is set."""

    def update(self, entity: QuotaEntity, limits: Mapping[str, float]) -> None:
        """Everything that is set on an entity now, by the quota's key."""
        for kind in self.kinds:
            kind.set_limit(entity, limits.get(kind.key))
        self.is_on = any(kind.is_on for kind in self.kinds)
