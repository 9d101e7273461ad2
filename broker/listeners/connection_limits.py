"""Connection limits in total, per listener and per client address (Kafka's ConnectionQuotas).

- At ``max.connections`` a listener accepts no more: a new connection waits until another one ends. With its prefix a listener
  may have a lower limit. The listener that brokers use among themselves is protected if it is not the only one: connections of
  other listeners take no place from it. Where the total is exceeded by that, the connection of another listener that has been
  quiet for longest is closed.
- Over ``max.connections.per.ip``, or what ``max.connections.per.ip.overrides`` has for the address, a connection is closed at
  once.

The limits are those set now. Connections are counted from when they are accepted, those that wait in the kernel are not.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter

import trio

from ...base.addresses import canonical_address, is_address
from ...base.config import Config
from ...base.settings import SettingError
from ...handlers.connection_context import ConnectionContext
from ..listener_config import ListenerConfig
from ..settings import BrokerSettings, parse_connection_overrides

logger = logging.getLogger(__name__)

_LOOK_UP_SECONDS = 5.0
"""In which new connections wait."""


class ConnectionLimits:
    """The limits of one broker, and the counts of its open connections."""

    def __init__(self, config: Config, inter_broker_listener: str, listeners: set[str]) -> None:
        self._config = config
        self._inter_broker_listener = inter_broker_listener
        self.listeners = listeners
        """The names of the broker's listeners."""
        self.total = 0
        """How many connections are open."""
        self._by_listener: Counter[str] = Counter()
        self._by_host: Counter[str] = Counter()
        self._of_listener: dict[str, int] = {}
        self._of_host: dict[str, int] = {}
        self._overrides = ""
        self._changed = trio.Event()
        config.on_change.append(self._reconfigured)

    @property
    def _settings(self) -> BrokerSettings:
        return self._config.settings(BrokerSettings)

    def _reconfigured(self) -> None:
        self._of_listener.clear()
        self._notify()

    def _notify(self) -> None:
        """Have waiting connections check the limits again."""
        # All that wait look again, not one: each has a listener of its own, with a limit of its own.
        self._changed.set()
        self._changed = trio.Event()

    def set_listeners(self, names: set[str]) -> None:
        self.listeners = names
        self._of_listener.clear()
        self._notify()

    def add(self, context: ConnectionContext) -> None:
        self.total += 1
        self._by_listener[context.listener] += 1
        self._by_host[context.host] += 1

    def remove(self, context: ConnectionContext) -> None:
        self.total -= 1
        self._by_listener[context.listener] -= 1
        self._by_host[context.host] -= 1
        if not self._by_host[context.host]:
            del self._by_host[context.host]
        self._notify()

    def is_full(self, listener: str) -> bool:
        """Whether a new connection of this listener has to wait; False if the listener is gone."""
        if listener not in self.listeners:
            return False
        if self._by_listener[listener] >= self._limit(listener):
            return True
        return not self._is_protected(listener) and self.total >= self._settings.max_connections

    async def wait_for_slot(self, listener: str) -> None:
        """Return once this listener may have one more connection."""
        while self.is_full(listener):
            await self._changed.wait()

    def is_exceeded(self) -> bool:
        """Whether a connection of a listener that is not protected has to be closed."""
        return self.total > self._settings.max_connections

    def may_go(self, listener: str) -> bool:
        """Whether connections of this listener make room for those of a protected one."""
        return not self._is_protected(listener)

    async def is_host_full(self, host: str) -> bool:
        """Whether one more connection from this address is too many."""
        settings = self._settings
        overrides = settings.max_connections_per_ip_overrides
        if overrides != self._overrides:
            await self._look_up(overrides)
        return self._by_host[host] >= self._of_host.get(host, settings.max_connections_per_ip)

    async def _look_up(self, overrides: str) -> None:
        """Find the addresses of the hosts that have a limit of their own."""
        found: dict[str, int] = {}
        for host, limit in parse_connection_overrides(overrides).items():
            for address in (host, *await addresses_of(host, "max.connections.per.ip.overrides")):
                found[address] = limit
        self._overrides, self._of_host = overrides, found

    def _limit(self, listener: str) -> int:
        limit = self._of_listener.get(listener)
        if limit is None:
            try:
                config = ListenerConfig(self._config, listener, "PLAINTEXT")
                limit = config.settings(BrokerSettings).max_connections
            except SettingError as error:
                logger.error("%s; max.connections holds", error)
                limit = self._settings.max_connections
            self._of_listener[listener] = limit
        return limit

    def _is_protected(self, listener: str) -> bool:
        return listener == self._inter_broker_listener and len(self.listeners) > 1


async def addresses_of(host: str, of: str) -> list[str]:
    """The addresses of a host, in the form in which connections have them. ``of`` is the setting that names it, for the log."""
    if is_address(host.strip("[]")):
        return [canonical_address(host)]
    try:
        with trio.fail_after(_LOOK_UP_SECONDS):
            found = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError, trio.TooSlowError) as error:  # ValueError: no valid name by the rules of IDNA
        why = str(error) or f"no response within {_LOOK_UP_SECONDS:g} s"
        logger.warning("%s: %r has no address that can be found: %s", of, host, why)
        return []
    return [canonical_address(str(address[0])) for *_, address in found]
