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

from ..base.network import Connection
from ..base.wording import counted, explained
from ..handlers.connection_context import ConnectionContext
from ..handlers.services import Services
from .connection import ClientConnection
from .listener_security import ServedListener, Transport
from .monitor import Ending, Monitor
from .settings import BrokerSettings

logger = logging.getLogger(__name__)

_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS = 0.25
_LOOK_SECONDS = 10.0
_HANDSHAKE_SECONDS = 10.0


class Acceptor:
    """All connections of one broker."""

    def __init__(self, services: Services, monitor: Monitor) -> None:
        self._monitor = monitor
        self._services = services
        self._connections: set[ClientConnection] = set()
        self._open = 0  # those whose handshake is under way among them
        self._by_host: Counter[str] = Counter()
        self._stopping = False
        self._paused = False
        self._empty = trio.Event()

    @property
    def _settings(self) -> BrokerSettings:
        """As they are now: the limits can be changed while the broker runs."""
        return self._services.config.settings(BrokerSettings)

    async def accept_from(self, served: ServedListener, nursery: trio.Nursery) -> None:
        """Accept until the listener is closed; each connection is a task of ``nursery``."""
        while True:
            try:
                connection = await served.listener.accept()
            except (trio.ClosedResourceError, ValueError):
                return
            except OSError as error:
                if self._stopping or error.errno == errno.EBADF:
                    return
                await self._pause(error)
                continue
            self._paused = False
            nursery.start_soon(self._serve, connection, served)

    async def _pause(self, error: OSError) -> None:
        if error.errno not in _OUT_OF_DESCRIPTORS:
            logger.warning("a connection could not be accepted: %s", error)
        elif not self._paused:
            how_many = counted(self._open, "connection")
            logger.error("accepting connections is paused with %s open: %s", how_many, explained(error))
        self._paused = True
        await trio.sleep(_PAUSE_SECONDS)

    async def _serve(self, connection: Connection, served: ServedListener) -> None:
        listener, peer, protocol = served.name, connection.peer, served.endpoint.security_protocol
        context = ConnectionContext(listener, peer, protocol, is_inter_broker_listener=served.is_inter_broker)
        if self._stopping or not self._has_room(context):
            connection.close()
            return
        self._open += 1
        self._by_host[context.host] += 1
        self._monitor.opened[listener] += 1
        try:
            if served.security.transport is None:
                await self._answer(connection, context, served)
            elif (secured := await self._shake_hands(connection, context, served.security.transport)) is not None:
                await self._answer(secured, context, served)
        finally:
            self._monitor.closed[listener] += 1
            self._open -= 1
            self._by_host[context.host] -= 1
            if not self._by_host[context.host]:
                del self._by_host[context.host]

    async def _answer(self, connection: Connection, context: ConnectionContext, served: ServedListener) -> None:
        if self._stopping:
            connection.close()
            return
        make_gate = served.security.make_gate
        gate = None if make_gate is None else make_gate(context, self._services)
        max_request = self._settings.socket_request_max_bytes
        client = ClientConnection(connection, context, self._services, max_request, self._monitor, gate)
        self._connections.add(client)
        try:
            await client.serve()
        finally:
            self._connections.discard(client)
            if not self._connections:
                self._empty.set()

    async def _shake_hands(
        self, connection: Connection, context: ConnectionContext, transport: Transport
    ) -> Connection | None:
        """The connection as it is used from then on; None when there is none, because the client did not do its part."""
        try:
            with trio.fail_after(_HANDSHAKE_SECONDS):
                return await transport(connection, context)
        except (OSError, trio.TooSlowError) as error:
            why = str(error) or f"no handshake within {_HANDSHAKE_SECONDS:g} s"
            connection.close()
            self._monitor.errors[Ending.AUTHENTICATION] += 1
            if self._monitor.closings.is_first(context.host, why, logging.INFO):
                logger.info("closing connection from %s: %s", context.peer, why)
            return None
        except BaseException:
            connection.close()
            raise

    def _has_room(self, context: ConnectionContext) -> bool:
        """Whether one more connection is within the limits; that it is not has a line."""
        if self._open >= self._settings.max_connections:
            name = "max.connections"
        elif self._by_host[context.host] >= self._settings.max_connections_per_ip:
            name = "max.connections.per.ip"
        else:
            return True
        self._monitor.errors[Ending.LIMIT] += 1
        why = f"as many are open as {name} allows"
        if self._monitor.closings.is_first(context.host, why):
            logger.warning("closing a new connection from %s: %s", context.peer, why)
        return False

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
