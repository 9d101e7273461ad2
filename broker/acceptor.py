"""Takes connections in, within the limits, and looks after those that went quiet.

Without a free descriptor accepting pauses, with one log line, until one may be free again; the clients wait in the
kernel's backlog meanwhile. Of the connections that the broker closes, those of one host and for one reason have one line and
then one a minute with their number.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter

import trio

from ..base.network import Connection, Listener
from ..base.wording import counted, explained
from ..handlers.services import Services
from .connection import ClientConnection
from .monitor import Ending, Monitor
from .settings import BrokerSettings

logger = logging.getLogger(__name__)

_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS = 0.25
_LOOK_SECONDS = 10.0


class Acceptor:
    """All connections of one broker."""

    def __init__(self, services: Services, monitor: Monitor) -> None:
        self._monitor = monitor
        self._services = services
        self._connections: set[ClientConnection] = set()
        self._by_host: Counter[str] = Counter()
        self._stopping = False
        self._paused = False
        self._empty = trio.Event()

    @property
    def _settings(self) -> BrokerSettings:
        """As they are now: the limits can be changed while the broker runs."""
        return self._services.config.settings(BrokerSettings)

    async def accept_from(self, listener_name: str, listener: Listener, nursery: trio.Nursery) -> None:
        """Accept until the listener is closed; each connection is a task of ``nursery``."""
        while True:
            try:
                connection = await listener.accept()
            except (trio.ClosedResourceError, ValueError):
                return
            except OSError as error:
                if self._stopping or error.errno == errno.EBADF:
                    return
                await self._pause(error)
                continue
            self._paused = False
            nursery.start_soon(self._serve, connection, listener_name)

    async def _pause(self, error: OSError) -> None:
        if error.errno not in _OUT_OF_DESCRIPTORS:
            logger.warning("a connection could not be accepted: %s", error)
        elif not self._paused:
            how_many = counted(len(self._connections), "connection")
            logger.error("accepting connections is paused with %s open: %s", how_many, explained(error))
        self._paused = True
        await trio.sleep(_PAUSE_SECONDS)

    async def _serve(self, connection: Connection, listener_name: str) -> None:
        host = connection.peer.rpartition(":")[0]
        if (
            self._stopping
            or len(self._connections) >= self._settings.max_connections
            or self._by_host[host] >= self._settings.max_connections_per_ip
        ):
            if not self._stopping:
                self._monitor.errors[Ending.LIMIT] += 1
                self._refuse(connection.peer, host)
            connection.close()
            return
        client = ClientConnection(
            connection, listener_name, self._services, self._settings.socket_request_max_bytes, self._monitor
        )
        self._connections.add(client)
        self._by_host[host] += 1
        self._monitor.opened[listener_name] += 1
        try:
            await client.serve()
        finally:
            self._monitor.closed[listener_name] += 1
            self._connections.discard(client)
            self._by_host[host] -= 1
            if not self._by_host[host]:
                del self._by_host[host]
            if not self._connections:
                self._empty.set()

    def _refuse(self, peer: str, host: str) -> None:
        """Say that a connection is closed at once."""
        name = (
            "max.connections" if len(self._connections) >= self._settings.max_connections else "max.connections.per.ip"
        )
        why = f"as many are open as {name} allows"
        if self._monitor.closings.is_first(host, why):
            logger.warning("closing a new connection from %s: %s", peer, why)

    async def watch_idle(self) -> None:
        """Close connections that were idle too long; give back the buffers of quiet ones."""
        max_idle = self._settings.connections_max_idle_ms / 1000
        while True:
            await trio.sleep(_LOOK_SECONDS if max_idle < 0 else min(_LOOK_SECONDS, max(max_idle / 2, 0.05)))
            now = trio.current_time()
            self._monitor.closings.sum_up()
            for client in list(self._connections):
                idle = now - client.last_active
                if max_idle >= 0 and idle > max_idle and not client.busy:
                    self._monitor.errors[Ending.IDLE] += 1
                    if self._monitor.closings.is_first(client.host, "idle (connections.max.idle.ms)", logging.INFO):
                        logger.info("closing connection from %s: idle for %.0f s", client.peer, idle)
                    client.stop()
                elif idle > _LOOK_SECONDS:
                    client.shrink()

    def stop(self) -> None:
        """Take no more connections; each open one ends after the request it is at."""
        self._stopping = True
        self._monitor.closings.sum_up_all()
        for client in list(self._connections):
            client.stop()

    async def wait_empty(self) -> None:
        """Return once no connection is open."""
        while self._connections:
            self._empty = trio.Event()
            await self._empty.wait()
