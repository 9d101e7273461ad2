"""Listener changes at run time (KIP-226): their validation and their application.

``listeners``, ``advertised.listeners`` and ``listener.security.protocol.map`` can be set on one broker. A listener whose name
is new is bound; one whose name is gone is closed, and its connections end after the request that is being handled. A listener
that stays keeps its address, its protocol and the settings with its prefix, except for key stores and limits. Then the broker
registers what it advertises, and the controller tells the other brokers. The rules are those of Kafka's DynamicListenerConfig,
with one more: Kafka accepts another address for a listener that stays but goes on at the old one; here that is refused.

What cannot be bound is left out, with an error in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

import trio

from ...base.config import Config
from ...base.listener_names import listener_of, without_prefix
from ...base.settings import SettingError
from ..settings import BrokerSettings
from .acceptor import Acceptor
from .addresses import ListenerAddress, configured_listeners
from .bound_listeners import BoundListeners
from .connection_limits import ConnectionLimits
from .listener_security import ServedListener

logger = logging.getLogger(__name__)

LISTENER_SETTINGS = ("listeners", "advertised.listeners", "listener.security.protocol.map")

_CHANGEABLE = (
    "max.connections",
    "max.connection.creation.rate",
    "num.network.threads",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
)
"""What may be set with the prefix of a listener that stays (SslConfigs.RECONFIGURABLE_CONFIGS, SocketServer)."""


def listener_properties(config: Config) -> dict[str, str]:
    """All properties that define listeners, or have the prefix of one."""
    given = config.effective()
    return {name: value for name, value in given.items() if name in LISTENER_SETTINGS or listener_of(name) is not None}


def check_listener_change(before: Config, after: Config) -> None:
    """Check that a running broker can change its listeners from ``before`` to ``after``. Raises SettingError."""
    old, new = (_by_name(config) for config in (before, after))
    if changed := sorted(name for name in old.keys() & new.keys() if old[name] != new[name]):
        why = f"{changed[0]} has another address or protocol there: restart the broker, or add a listener"
        raise SettingError("listeners", after.settings(BrokerSettings).listeners, why)
    old_fixed, new_fixed = (_fixed(config, old.keys() & new.keys()) for config in (before, after))
    if differing := sorted(
        name for name in old_fixed.keys() | new_fixed.keys() if old_fixed.get(name) != new_fixed.get(name)
    ):
        why = "it cannot be changed on an existing listener: restart the broker, or add a listener"
        raise SettingError(differing[0], new_fixed.get(differing[0], ""), why)


def _by_name(config: Config) -> dict[str, ListenerAddress]:
    endpoints, _ = configured_listeners(config.settings(BrokerSettings))
    return {endpoint.name: endpoint for endpoint in endpoints}


def _fixed(config: Config, listeners: Sequence[str] | set[str]) -> dict[str, str]:
    """The properties with the prefix of one of these listeners that cannot change while the listener exists."""
    names = {listener.lower() for listener in listeners}
    return {
        name: value
        for name, value in config.effective().items()
        if listener_of(name) in names and without_prefix(name) not in _CHANGEABLE
    }


class ListenerChanges:
    """Applies changes of the configuration to the bound listeners."""

    def __init__(self, config: Config, listeners: BoundListeners) -> None:
        self._config = config
        self._listeners = listeners
        self._known = listener_properties(config)
        self._changed = trio.Event()
        config.checks.append(self._check)
        config.on_change.append(self._note)

    def _check(self, after: Config) -> None:
        if listener_properties(after) == listener_properties(self._config):
            self._listeners.check_security(after, self._listeners.names())  # a key store may have new content
            return
        plan = self._listeners.check(after)
        check_listener_change(self._config, after)
        self._listeners.check_security(after, {endpoint.name for endpoint in plan.endpoints})
        self._listeners.securities(plan, after)  # made to find out whether they can be: ``update`` only logs an error

    def _note(self) -> None:
        self._listeners.follow()
        if listener_properties(self._config) != self._known:
            self._changed.set()

    async def take_over(self) -> tuple[list[ServedListener], list[ServedListener]]:
        """Bind and close what has changed since; returns the listeners that were added and removed."""
        if not self._changed.is_set():
            return [], []
        self._changed = trio.Event()
        self._known = listener_properties(self._config)
        try:
            return await self._listeners.update()
        except SettingError as error:
            logger.error("Listeners stay as they are: %s", error)
            return [], []

    async def follow(
        self,
        acceptor: Acceptor,
        limits: ConnectionLimits,
        register: Callable[[Sequence[ListenerAddress]], Awaitable[None]],
        nursery: trio.Nursery,
    ) -> None:
        """Apply each change; ``register`` registers the advertised addresses, and connections are tasks of ``nursery``."""
        while True:
            await self._changed.wait()
            advertised = self._listeners.advertised
            added, removed = await self.take_over()
            limits.set_listeners(self._listeners.names())
            for served in removed:
                acceptor.end_those_of(served.name)
            for served in added:
                nursery.start_soon(acceptor.accept_from, served, nursery)
            if self._listeners.advertised != advertised:
                await register(self._listeners.advertised)
