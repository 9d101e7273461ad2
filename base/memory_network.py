"""An in-memory ``Network`` without sockets, for simulation and for tests of connections.

A stream holds what was sent until the other side reads it, at most ``limit`` bytes; ``cut`` breaks a connection as a
lost host does: the other side finds out when it uses it. With trio's deterministic schedule a run replays exactly.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
from collections import deque
from collections.abc import Sequence

import trio

from .network import WOULD_BLOCK, Part, release, take_bytes

_FIRST_FREE_PORT = 20_000


class _Stream:
    """Bytes on their way in one direction."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()
        self.ended = False
        self.broken = False
        self.changed = trio.Event()

    def change(self) -> None:
        self.changed.set()
        self.changed = trio.Event()


class MemoryConnection:
    """One end of a connection between two parts of this process."""

    def __init__(self, peer: str, incoming: _Stream, outgoing: _Stream) -> None:
        self.peer = peer
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False
        self.descriptor = -1

    def receive_into(self, buffer: memoryview) -> int:
        stream = self._incoming
        if stream.broken or self._closed:
            raise OSError(errno.ECONNRESET, "connection reset")
        if not stream.data:
            return 0 if stream.ended else WOULD_BLOCK
        count = min(len(buffer), len(stream.data))
        buffer[:count] = stream.data[:count]
        del stream.data[:count]
        stream.change()
        return count

    async def wait_readable(self) -> None:
        stream = self._incoming
        while not (stream.data or stream.ended or stream.broken):
            if self._closed:
                raise OSError(errno.EBADF, "connection is closed")
            await stream.changed.wait()
        await trio.lowlevel.checkpoint()

    async def receive(self, most: int = 1 << 16) -> bytes:
        """The next bytes, for a client in a test; empty at the end of the stream."""
        buffer = bytearray(most)
        while (count := self.receive_into(memoryview(buffer))) == WOULD_BLOCK:
            await self.wait_readable()
        return bytes(buffer[:count])

    async def send(self, parts: Sequence[Part]) -> None:
        remaining = deque(parts)
        try:
            while remaining:
                await self._send_bytes(take_bytes(remaining))
        finally:
            release(remaining)

    async def _send_bytes(self, data: bytes) -> None:
        stream = self._outgoing
        while data:
            if stream.broken or stream.ended or self._closed:
                raise OSError(errno.EPIPE, "the other side has closed")
            free = stream.limit - len(stream.data)
            if free <= 0:
                await stream.changed.wait()
                continue
            stream.data += data[:free]
            data = data[free:]
            stream.change()

    def send_now(self, data: bytes) -> int:
        stream = self._outgoing
        if stream.broken or stream.ended or self._closed:
            raise OSError(errno.EPIPE, "the other side has closed")
        count = max(0, min(stream.limit - len(stream.data), len(data)))
        stream.data += data[:count]
        stream.change()
        return count

    @property
    def is_closed(self) -> bool:
        """Whether this end was closed; the other one may not know yet."""
        return self._closed

    def cut(self) -> None:
        """Break both directions at once, losing what was on its way."""
        for stream in (self._incoming, self._outgoing):
            stream.broken = True
            stream.data.clear()
            stream.change()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._outgoing.ended = True
            self._outgoing.change()
            self._incoming.ended = True
            self._incoming.change()


class MemoryListener:
    """A bound address of a ``MemoryNetwork``."""

    def __init__(self, network: MemoryNetwork, host: str, port: int, backlog: int) -> None:
        self.host = host
        self.port = port
        self._network = network
        self._backlog: tuple[trio.MemorySendChannel[MemoryConnection], trio.MemoryReceiveChannel[MemoryConnection]]
        self._backlog = trio.open_memory_channel(backlog)

    async def accept(self) -> MemoryConnection:
        return await self._backlog[1].receive()

    async def connected(self, connection: MemoryConnection) -> None:
        """Give the listener its end of a new connection."""
        await self._backlog[0].send(connection)

    def close(self) -> None:
        """Connections that were not accepted yet are cut, as a kernel resets them."""
        self._network.listeners.pop((self.host, self.port), None)
        with contextlib.suppress(trio.WouldBlock, trio.ClosedResourceError):
            while True:
                self._backlog[1].receive_nowait().cut()
        self._backlog[1].close()


class MemoryNetwork:
    """Addresses and listeners of one simulated network. ``limit`` is how many bytes a direction holds."""

    def __init__(self, limit: int = 1 << 16) -> None:
        self.limit = limit
        self.listeners: dict[tuple[str, int], MemoryListener] = {}
        self._clients = 0

    async def listen(self, host: str, port: int, backlog: int) -> MemoryListener:
        if not port:
            port = next(free for free in itertools.count(_FIRST_FREE_PORT) if (host, free) not in self.listeners)
        if (host, port) in self.listeners:
            raise OSError(errno.EADDRINUSE, "address already in use")
        listener = self.listeners[host, port] = MemoryListener(self, host, port, backlog)
        return listener

    async def connect(self, host: str, port: int) -> MemoryConnection:
        """Raises OSError ECONNREFUSED where there is no listener; waits while the listener's backlog is full."""
        listener = self.listeners.get((host, port))
        if listener is None:
            raise OSError(errno.ECONNREFUSED, "connection refused")
        self._clients += 1
        there, back = _Stream(self.limit), _Stream(self.limit)
        await listener.connected(MemoryConnection(f"client:{self._clients}", there, back))
        return MemoryConnection(f"{host}:{port}", back, there)
