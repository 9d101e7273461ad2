"""Accepts connections, within the limits, and closes those that are idle for too long.

When the process has no free file descriptor, accepting pauses, with one log line, until one may be free again; the clients wait
in the kernel's backlog meanwhile. Connections that the broker closes are logged by host and reason: the first with a line of its
own, the others with one line a minute that has their number.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable

import trio

from ...base.network import Connection
from ...base.repeated_lines import INTERVAL_SECONDS
from ...base.wording import counted, explained
from ...handlers.call import NewCall
from ...handlers.connection_context import ConnectionContext
from ...handlers.node_services import NodeServices
from ..settings import BrokerSettings
from .connection import ClientConnection
from .connection_limits import ConnectionLimits
from .connection_pace import ConnectionPace
from .listener_security import ServedListener, Transport
from .monitor import Ending, Monitor
from .peer_watch import PeerWatch

logger = logging.getLogger(__name__)

_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_SECONDS = 0.25
_LOOK_SECONDS = 10.0
_HANDSHAKE_SECONDS = 10.0
_MOST_WAITING = 1_000

AUTHENTICATION_SECONDS = 30.0
"""How long a client may take to authenticate, at first or again. The check comes every ``_LOOK_SECONDS``, so it may be a third
more. Kafka waits for as long as the client sends something now and then (connections.max.idle.ms)."""


class Acceptor:
    """All connections of one node."""

    def __init__(self, services: NodeServices, new_call: NewCall, monitor: Monitor, limits: ConnectionLimits) -> None:
        self._monitor = monitor
        self._services = services
        self._new_call = new_call
        self._limits = limits
        self._pace = ConnectionPace(services.config, services.metadata, limits)
        self._peers = PeerWatch()
        self._waiting_to_be_closed = 0
        self._connections: set[ClientConnection] = set()
        self._stopping = False
        self._paused = False
        self._next_line: dict[str, float] = {}  # by listener: when a log line may say again that it is full
        self._empty = trio.Event()

    @property
    def _settings(self) -> BrokerSettings:
        """As they are now: the limits can be changed while the broker runs."""
        return self._services.config.settings(BrokerSettings)

    def start(self, listeners: Iterable[ServedListener], nursery: trio.Nursery) -> None:
        """Accept from these, and watch over the connections, in tasks of ``nursery``."""
        for served in listeners:
            nursery.start_soon(self.accept_from, served, nursery)
        nursery.start_soon(self.watch_idle)
        nursery.start_soon(self.watch_peers)
        nursery.start_soon(self._services.group_turns.run)

    async def accept_from(self, served: ServedListener, nursery: trio.Nursery) -> None:
        """Accept until the listener is closed; each connection is a task of ``nursery``."""
        async with trio.open_nursery() as background:
            for loop in served.security.background:
                background.start_soon(loop, self._services.workers)
            await self._accept_all(served, nursery)
            background.cancel_scope.cancel()

    async def watch_peers(self) -> None:
        """Notice connections whose other side has gone, until cancelled."""
        await self._peers.run()

    async def _accept_all(self, served: ServedListener, nursery: trio.Nursery) -> None:
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
            try:
                context = await self._admit(connection, served, nursery)
            except BaseException:
                connection.close()
                raise
            if context is not None:
                nursery.start_soon(self._serve, connection, context, served)

    async def _pause(self, error: OSError) -> None:
        if error.errno not in _OUT_OF_DESCRIPTORS:
            logger.warning("a connection could not be accepted: %s", error)
        elif not self._paused:
            how_many = counted(self._limits.total, "connection")
            logger.error("accepting connections is paused with %s open: %s", how_many, explained(error))
        self._paused = True
        await trio.sleep(_PAUSE_SECONDS)

    async def _admit(
        self, connection: Connection, served: ServedListener, nursery: trio.Nursery
    ) -> ConnectionContext | None:
        """Wait until there is room for one more, and count it; None for one that was closed, or is about to be."""
        listener, protocol = served.name, served.endpoint.security_protocol
        context = ConnectionContext(
            listener, connection.peer, protocol, is_inter_broker_listener=served.is_inter_broker
        )
        await self._pace.wait(listener)
        if self._limits.is_full(listener):
            self._log_full(listener)
            await self._limits.wait_for_slot(listener)
        # Asked after the waits, in which the broker may have stopped, or the listener been removed.
        if self._stopping or listener not in self._limits.listeners:
            connection.close()
            return None
        if (seconds := await self._pace.seconds_to_close(context)) > 0:
            self._refuse(context, "more come than connection_creation_rate allows")
            nursery.start_soon(self._close_later, connection, seconds)
            return None
        if await self._limits.is_host_full(context.host):
            self._refuse(context, "as many are open as max.connections.per.ip allows")
            connection.close()
            return None
        self._limits.add(context)
        self._monitor.opened[listener] += 1
        if self._limits.is_exceeded():
            self._make_room()
        return context

    def _log_full(self, listener: str) -> None:
        now = trio.current_time()
        if now >= self._next_line.get(listener, now):
            self._next_line[listener] = now + INTERVAL_SECONDS
            logger.warning("connections to %s wait: as many are open as max.connections allows", listener)

    def _refuse(self, context: ConnectionContext, why: str) -> None:
        self._monitor.errors[Ending.LIMIT] += 1
        if self._monitor.closings.is_first(context.host, why):
            logger.warning("closing a new connection from %s: %s", context.peer, why)

    async def _close_later(self, connection: Connection, seconds: float) -> None:
        """Let a client that connects too often wait before its connection is closed; at most ``_MOST_WAITING`` wait at a time."""
        self._waiting_to_be_closed += 1
        try:
            if self._waiting_to_be_closed <= _MOST_WAITING:
                await trio.sleep(seconds)
        finally:
            self._waiting_to_be_closed -= 1
            connection.close()

    def _make_room(self) -> None:
        """Close the client's connection that has been quiet for longest: a broker needs its place."""
        may_go = [client for client in self._connections if self._limits.may_go(client.listener)]
        if may_go:
            # One that ends already makes room anyway, so it is the last choice: another connection is to go for this one.
            client = min(may_go, key=lambda client: (client.is_stopping, client.busy, client.last_active))
            self._monitor.errors[Ending.LIMIT] += 1
            if self._monitor.closings.is_first(client.host, "max.connections"):
                logger.warning("closing connection from %s: brokers need it (max.connections)", client.peer)
            client.stop()

    async def _serve(self, connection: Connection, context: ConnectionContext, served: ServedListener) -> None:
        try:
            if served.security.transport is None:
                await self._respond(connection, context, served)
            elif (secured := await self._shake_hands(connection, context, served.security.transport)) is not None:
                await self._respond(secured, context, served)
        finally:
            self._monitor.closed[context.listener] += 1
            self._limits.remove(context)

    async def _respond(self, connection: Connection, context: ConnectionContext, served: ServedListener) -> None:
        if self._stopping:
            connection.close()
            return
        make_gate = served.security.make_gate
        gate = None if make_gate is None else make_gate(context, self._services, self._monitor)
        max_request = self._settings.socket_request_max_bytes
        client = ClientConnection(connection, context, self._services, self._new_call, max_request, self._monitor, gate)
        self._connections.add(client)
        descriptor = connection.descriptor
        self._peers.add(descriptor, client.presence)
        try:
            await client.serve()
        finally:
            context.end()
            self._peers.remove(descriptor, client.presence)
            self._connections.discard(client)
            if not self._connections:
                self._empty.set()

    async def _shake_hands(
        self, connection: Connection, context: ConnectionContext, transport: Transport
    ) -> Connection | None:
        """The connection to use after the handshake; None when the handshake has failed, and the connection is closed."""
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
        except Exception as error:  # a bug ends this connection only
            connection.close()
            self._monitor.errors[Ending.BUG] += 1
            if self._monitor.closings.is_first(context.host, type(error).__name__):
                logger.exception("closing connection from %s: its handshake has failed", context.peer)
            return None
        except BaseException:
            connection.close()
            raise

    async def watch_idle(self) -> None:
        """Close connections that are idle or unauthenticated for too long; give back the large buffers of quiet ones."""
        max_idle = self._settings.connections_max_idle_ms / 1000
        while True:
            await trio.sleep(_LOOK_SECONDS if max_idle < 0 else min(_LOOK_SECONDS, max(max_idle / 2, 0.05)))
            now = trio.current_time()
            for client in list(self._connections):
                idle = now - client.last_active
                if max_idle >= 0 and idle > max_idle and not client.busy:
                    self._monitor.errors[Ending.IDLE] += 1
                    self._end(client, "idle (connections.max.idle.ms)", f"idle for {idle:.0f} s")
                elif client.unknown_since is not None and now - client.unknown_since > AUTHENTICATION_SECONDS:
                    self._monitor.errors[Ending.AUTHENTICATION] += 1
                    why = f"no authentication within {AUTHENTICATION_SECONDS:g} s"
                    self._end(client, why, why)
                elif idle > _LOOK_SECONDS:
                    client.shrink()

    def _end(self, client: ClientConnection, kind: str, why: str) -> None:
        if self._monitor.closings.is_first(client.host, kind, logging.INFO):
            logger.info("closing connection from %s: %s", client.peer, why)
        client.stop()

    def connections(self) -> list[ClientConnection]:
        """Those that are open now, without those whose TLS handshake is going on."""
        return list(self._connections)

    def end_those_of(self, listener: str) -> None:
        """A listener was closed: each of its connections ends after the request that is being handled."""
        for client in list(self._connections):
            if client.listener == listener:
                client.stop()

    def stop(self) -> None:
        """Accept no more connections; each open one ends after the request that is being handled."""
        self._stopping = True
        for client in list(self._connections):
            client.stop()

    async def wait_empty(self) -> None:
        """Return once no connection is open."""
        while self._connections:
            self._empty = trio.Event()
            await self._empty.wait()
