"""Connection rate limits of the broker, of its listeners and of client IP addresses (KIP-612).

The settings are ``max.connection.creation.rate`` of the broker and of its listeners, and the quotas of IP addresses; the rules
are in ``security.connection_rates``.

The limits are those set now. A quota may be set on a host name, too; its addresses are looked up when the next connection comes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import trio

from ...base.config import Config
from ...base.settings import SettingError
from ...handlers.connection_context import ConnectionContext
from ...metadata.published import PublishedMetadata
from ...security.connection_rates import CONNECTION_CREATION_RATE, UNLIMITED, ConnectionRates
from ...security.entities import DEFAULT, IPS, Entity
from ...security.quota_settings import ClientQuotaSettings, ConnectionRateSettings
from ..listener_config import ListenerConfig
from .connection_limits import ConnectionLimits, addresses_of

logger = logging.getLogger(__name__)


class ConnectionPace:
    """The rate limits of one node."""

    def __init__(self, config: Config, metadata: PublishedMetadata, limits: ConnectionLimits) -> None:
        self._config = config
        self._limits = limits
        self._rates = ConnectionRates(config.settings(ClientQuotaSettings))
        self._changed: dict[str, int | None] = {}
        self._addresses: dict[str, list[str]] = {}
        self._reconfigured()
        config.on_change.append(self._reconfigured)
        self._apply(metadata.image.quotas)
        metadata.publishers.append(lambda delta, image: self._apply(delta.quotas))

    def _reconfigured(self) -> None:
        self._rates.limit = self._config.settings(ConnectionRateSettings).max_connection_creation_rate
        self._rates.listener_limits.clear()

    def _apply(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        for (kind, name), values in quotas.items():
            if kind is IPS:
                rate = values.get(CONNECTION_CREATION_RATE)
                limit = None if rate is None else int(rate)
                if name is DEFAULT:
                    self._rates.set_address_limit(None, limit)
                elif isinstance(name, str):
                    self._changed[name] = limit

    async def wait(self, listener: str) -> None:
        """Return once a new connection of a listener may be accepted."""
        if listener not in self._rates.listener_limits:
            self._rates.listener_limits[listener] = self._limit(listener)
        is_protected = not self._limits.may_go(listener)
        wait_ms = self._rates.admit(listener, _now_ms(), is_protected=is_protected)
        if wait_ms:
            await trio.sleep(wait_ms / 1000)

    async def seconds_to_close(self, context: ConnectionContext) -> float:
        """After how long a connection beyond the rate of its address is to be closed; 0 for one within the rate."""
        while self._changed:
            name, limit = self._changed.popitem()
            found = [] if limit is None else await addresses_of(name, CONNECTION_CREATION_RATE)
            for address in self._addresses.pop(name, ()):
                self._rates.set_address_limit(address, None)
            for address in found:
                self._rates.set_address_limit(address, limit)
            if found:
                self._addresses[name] = found
        is_protected = not self._limits.may_go(context.listener)
        listener, host = context.listener, context.host
        return self._rates.admit_address(listener, host, _now_ms(), is_protected=is_protected) / 1000

    def _limit(self, listener: str) -> int:
        try:
            config = ListenerConfig(self._config, listener, "PLAINTEXT")
            return config.settings(ConnectionRateSettings).max_connection_creation_rate
        except SettingError as error:
            logger.error("%s; that of the broker holds", error)
            return UNLIMITED


def _now_ms() -> int:
    """Milliseconds that never go back."""
    return int(trio.current_time() * 1000)
