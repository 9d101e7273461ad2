"""The cost of a request to its client's quotas, and the resulting throttle time.

There is a ``RequestCost`` for each request while any quota is set, and none otherwise. ``dispatch`` makes it before the
handler runs, and charges it when the response is made. The response says how long the client is to wait (``throttle_time_ms``).
It is sent at once, and for that time nothing is read from the connection (KIP-219).

Rules (KafkaApis, RequestHandlerHelper, ClientRequestQuotaManager):

- A Produce costs its size in bytes. With acks=0 its time is not counted against the client.
- A Fetch of a consumer costs the size of its response. One beyond the quota gets an empty response, with its session as it
  was, and costs nothing. No fetch reads more than the quota allows at once.
- A ShareFetch costs the same. While the quota is used up it acquires nothing, and gets an empty response that costs nothing; what
  goes beyond the quota is sent, and the client held up then.
- Every request costs the time that it is worked on before it first waits, in percent of one thread: of the one loop's time.
  Requests of brokers cost nothing.
- Topics that are created or deleted cost their partitions (KIP-599): where the quota is exhausted, ``is_strict`` versions of the
  requests are refused with THROTTLING_QUOTA_EXCEEDED; in others they are made, and the client is held up. A topic that is made
  because a client named it is counted, and the client not held up for it.
- A client is held up for the longest of these times, and no longer than a window for the time of its requests.

Differences from Kafka: the time of sending is not counted. There a ShareFetch beyond the quota is answered without the records
that it has acquired; they are delivered again when their locks have ended, and this counts as one delivery more.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock
from ..security.client_quotas import ClientQuotas, SharedMutationQuota, SharedQuota
from ..wire.api_keys import ApiKey

_LONGEST_CLIENT_ID = 255
"""Characters; the rest of a longer id is ignored. A client can choose any id, and the broker keeps a count for each."""
_OF_BROKERS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.WRITE_TXN_MARKERS,
    }
)


class RequestCost:
    """The cost of one request; ``user`` is the name of the connection's principal."""

    __slots__ = (
        "_began",
        "_clock",
        "_is_exempt",
        "_mutations",
        "_names",
        "_quotas",
        "_throttle_ms",
        "_throttled_by",
        "_until",
    )

    def __init__(self, quotas: ClientQuotas, clock: Clock, user: str, client_id: str) -> None:
        self._quotas = quotas
        self._clock = clock
        self._names = user, client_id[:_LONGEST_CLIENT_ID]
        self._began = clock.elapsed()
        self._until = 0.0
        self._is_exempt = False
        self._mutations: MutationCost | None = None
        self._throttle_ms = 0
        self._throttled_by: SharedQuota | None = None

    def stop_timing(self) -> None:
        """The request is about to wait; from now on its time is not counted."""
        if not self._until:
            self._until = self._clock.elapsed()

    def exempt(self) -> None:
        """It is a request of a broker."""
        self._is_exempt = True

    # --- Fetch --------------------------------------------------------------------------------------------------------

    def max_fetch_bytes(self) -> float | None:
        """How many bytes a fetch may read: more would be held up however seldom it comes; None: no limit."""
        shared = self._quotas.fetch.of(*self._names, _now_ms())
        return None if shared is None else shared.most_at_once

    def is_fetch_throttled(self, size: Callable[[], int]) -> bool:
        """Count the response to a fetch and its time; whether an empty response is sent instead. ``size`` is the response's."""
        now_ms = _now_ms()
        self._charge_time(now_ms)
        shared = self._quotas.fetch.of(*self._names, now_ms)
        if shared is not None:
            used = size()
            self._throttle(shared.use(used, now_ms), shared)
            if self._throttle_ms:
                # Those bytes are not sent (``unrecordQuotaSensor``); counted, they would throttle the next fetch as well.
                shared.use(-used, now_ms)
        return self._throttle_ms > 0

    def is_fetch_used_up(self) -> bool:
        """Whether the client has had more than its quota, so that it is held up and gets nothing: for fetches that acquire."""
        now_ms = _now_ms()
        shared = self._quotas.fetch.of(*self._names, now_ms)
        if shared is not None:
            self._throttle(shared.use(0, now_ms), shared)
        return self._throttle_ms > 0

    def count_fetch(self, size: int) -> None:
        """Count the response to a fetch, which is sent in any case."""
        now_ms = _now_ms()
        shared = self._quotas.fetch.of(*self._names, now_ms)
        if shared is not None:
            self._throttle(shared.use(size, now_ms), shared)

    # --- changes of topics --------------------------------------------------------------------------------------------

    def mutations(self, *, is_strict: bool, throttles: bool = True) -> MutationCost | None:
        """What charges the request's changes of topics; None where no quota holds for them.

        ``throttles``: whether the client is held up for what goes beyond the quota.
        """
        if self._mutations is not None:
            return self._mutations
        shared = self._quotas.mutations.of(*self._names, _now_ms())
        if shared is None:
            return None
        mutations = MutationCost(shared, is_strict=is_strict)
        if throttles:
            self._mutations = mutations
        return mutations

    # --- the end ------------------------------------------------------------------------------------------------------

    def charge(self, api_key: int, size: int, *, has_response: bool) -> int:
        """Charge a request of ``size`` bytes; returns for how many milliseconds the client is throttled."""
        now_ms = _now_ms()
        if api_key == ApiKey.PRODUCE and (shared := self._quotas.produce.of(*self._names, now_ms)) is not None:
            self._throttle(shared.use(size, now_ms), shared)
        if has_response and not self._is_exempt and api_key not in _OF_BROKERS:
            self._charge_time(now_ms)
        if self._mutations is not None:
            self._throttle(self._mutations.throttle_ms(now_ms), self._mutations.shared)
        if self._throttled_by is not None:
            self._throttled_by.note_throttled(self._throttle_ms, now_ms)
        return self._throttle_ms

    def _charge_time(self, now_ms: int) -> None:
        """Count the time, once: a fetch is charged for it before its response is made."""
        if self._began < 0:
            return
        shared = self._quotas.request.of(*self._names, now_ms)
        if shared is not None:
            seconds = (self._until or self._clock.elapsed()) - self._began
            self._throttle(shared.use(seconds * 100, now_ms, self._quotas.longest_request_throttle_ms), shared)
        self._began = -1.0

    def _throttle(self, throttle_ms: int, shared: SharedQuota) -> None:
        if throttle_ms > self._throttle_ms:
            self._throttle_ms, self._throttled_by = throttle_ms, shared


class MutationCost:
    """What a request's changes of topics cost."""

    __slots__ = ("_is_strict", "_throttle_ms", "_throttled_at", "shared")

    def __init__(self, shared: SharedMutationQuota, *, is_strict: bool) -> None:
        self.shared = shared
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._throttled_at = 0

    def charge(self, partitions: int) -> None:
        """Count partitions that are about to be created or deleted. Raises KafkaError THROTTLING_QUOTA_EXCEEDED."""
        now_ms = _now_ms()
        # Strict versions look before they take: what is refused costs nothing (StrictControllerMutationQuota).
        if not self._is_strict:
            self.shared.take(partitions, now_ms)
            self._note_exhausted(now_ms)
        elif self._note_exhausted(now_ms):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        else:
            self.shared.take(partitions, now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """For how long the client is held up from now on."""
        return max(self._throttle_ms - (now_ms - self._throttled_at), 0)

    def _note_exhausted(self, now_ms: int) -> bool:
        is_exhausted = self.shared.is_exhausted(now_ms)
        if is_exhausted:
            self._throttle_ms, self._throttled_at = self.shared.exhausted_ms(now_ms), now_ms
        return is_exhausted


def _now_ms() -> int:
    """Milliseconds that never go back."""
    return int(trio.current_time() * 1000)
