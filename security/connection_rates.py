"""Connection rate limits per broker, per listener and per client address (KIP-612).

Rules (Kafka's ConnectionQuotas):

- A connection beyond the rate of the broker or of its listener waits, and with it those that come to the listener after it.
  The inter-broker listener, where there are others, does not count for the broker and is not held up by the broker's rate.
- A connection beyond the rate of its address is closed after a while, during which the client waits. It is not counted in any
  rate.
- None waits longer than one window.

Times are whole milliseconds of a clock that never goes back.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.addresses import canonical_address
from .quota_rate import QuotaRate
from .quota_settings import ClientQuotaSettings

CONNECTION_CREATION_RATE = "connection_creation_rate"
UNLIMITED = 2**31 - 1
_MANY = 10_000


class ConnectionRates:
    """The rates of new connections of one broker."""

    def __init__(self, settings: ClientQuotaSettings) -> None:
        self._samples = settings.quota_window_num
        self._window_ms = settings.quota_window_size_seconds * 1000
        self.limit = UNLIMITED
        """Of the whole broker, per second."""
        self.listener_limits: dict[str, int] = {}
        """Of the listeners that have one of their own."""
        self._default_limit = UNLIMITED
        self._limits: dict[str, int] = {}
        self._rate = self._new_rate()
        self._listener_rates: dict[str, QuotaRate] = {}
        self._rates: dict[str, QuotaRate] = {}

    def set_address_limit(self, address: str | None, limit: int | None) -> None:
        """Connections a second from an address, or with None from any that has no limit of its own; None: no limit."""
        if address is None:
            self._default_limit = UNLIMITED if limit is None else limit
        elif limit is None:
            self._limits.pop(canonical_address(address), None)
        else:
            self._limits[canonical_address(address)] = limit
        self._rates = {known: rate for known, rate in self._rates.items() if self._address_limit(known) != UNLIMITED}

    def admit(self, listener: str, now_ms: int, *, is_protected: bool) -> int:
        """Count a new connection of a listener; returns for how long it has to wait."""
        waits = [0]
        if not is_protected:
            self._rate.record(1, now_ms)
            waits.append(self._rate.throttle_ms(self.limit, now_ms, self._window_ms))
        rate = self._listener_rates.setdefault(listener, self._new_rate())
        rate.record(1, now_ms)
        waits.append(rate.throttle_ms(self.listener_limits.get(listener, UNLIMITED), now_ms, self._window_ms))
        return max(waits)

    def admit_address(self, listener: str, address: str, now_ms: int, *, is_protected: bool) -> int:
        """Count a connection of an address and return 0, or return after how long to close it, and do not count it."""
        address = canonical_address(address)
        limit = self._address_limit(address)
        if limit == UNLIMITED:
            return 0
        if address not in self._rates and len(self._rates) >= _MANY:
            self._forget(now_ms)
        rate = self._rates.setdefault(address, self._new_rate())
        rate.record(1, now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms, self._window_ms)
        if throttle_ms:
            # As in Kafka, a refused connection counts nowhere (KIP-612): one address must not use up the rates of the others.
            rate.record(-1, now_ms)
            if not is_protected:
                self._rate.record(-1, now_ms)
            self._listener_rates[listener].record(-1, now_ms)
        return throttle_ms

    @property
    def known_addresses(self) -> int:
        """How many addresses are counted."""
        return len(self._rates)

    def rates(self, now_ms: int) -> Mapping[str, float]:
        """Connections a second in the last windows, by listener."""
        return {listener: rate.per_second(now_ms) for listener, rate in self._listener_rates.items()}

    def _address_limit(self, address: str) -> int:
        return self._limits.get(address, self._default_limit)

    def _forget(self, now_ms: int) -> None:
        """Drop addresses without recent connections, and all of them if there are still too many."""
        self._rates = {address: rate for address, rate in self._rates.items() if not rate.is_idle(now_ms)}
        if len(self._rates) >= _MANY:
            self._rates.clear()

    def _new_rate(self) -> QuotaRate:
        return QuotaRate(self._samples, self._window_ms)
