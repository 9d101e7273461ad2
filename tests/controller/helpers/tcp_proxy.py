"""A TCP proxy in the test's own loop, which can hold, delay and break connections, each direction separately."""

from __future__ import annotations

import functools
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

CHUNK = 1 << 16


class Way:
    """One direction. ``delay`` is in seconds, for everything.

    ``rewrite`` is called with each piece, and returns the bytes to pass on.
    """

    def __init__(self) -> None:
        self.delay = 0.0
        self.rewrite: Callable[[bytes], bytes] | None = None
        self._open = trio.Event()
        self._open.set()
        self._held_connections = math.inf

    def hold(self, *, connections: float = math.inf) -> None:
        """Hold everything from now on; only of the first ``connections`` if their number is given."""
        self._open = trio.Event()
        self._held_connections = connections

    def release(self) -> None:
        self._open.set()

    async def pass_on(self, piece: bytes, connection: int) -> bytes:
        """The piece, once it may pass."""
        if self.delay:
            await trio.sleep(self.delay)
        while not self._open.is_set() and connection <= self._held_connections:
            await self._open.wait()
        return piece if self.rewrite is None else self.rewrite(piece)


class TcpProxy:
    """``requests`` is the direction to ``target``, ``answers`` the other one. ``is_away``: new connections are closed at once."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.requests = Way()
        self.answers = Way()
        self.is_away = False
        self.port = 0
        self.accepted = 0
        self._scopes: set[trio.CancelScope] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def hold(self) -> None:
        """Hold both directions: connections stay open, and new ones get no response."""
        self.requests.hold()
        self.answers.hold()

    def release(self) -> None:
        """Pass on what was held, if both ends are still connected."""
        self.requests.release()
        self.answers.release()

    def break_connections(self) -> None:
        """Close both ends of each connection; what was held is dropped."""
        for scope in list(self._scopes):
            scope.cancel()

    async def serve(self, client: trio.SocketStream) -> None:
        self.accepted += 1
        copy = functools.partial(self._copy, self.accepted)
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                if not self.is_away:
                    async with await trio.open_tcp_stream(*self.target) as server, trio.open_nursery() as nursery:
                        nursery.start_soon(copy, client, server, self.requests, scope)
                        nursery.start_soon(copy, server, client, self.answers, scope)
            except OSError:
                pass
            finally:
                self._scopes.discard(scope)
                with trio.move_on_after(0) as closing:  # without waiting for a clean close
                    closing.shield = True
                    await client.aclose()

    async def _copy(
        self, number: int, source: trio.SocketStream, sink: trio.SocketStream, way: Way, scope: trio.CancelScope
    ) -> None:
        try:
            async for piece in source:
                await sink.send_all(await way.pass_on(bytes(piece), number))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()


@asynccontextmanager
async def tcp_proxy(address: str) -> AsyncIterator[TcpProxy]:
    """A proxy to ``host:port`` on a port of its own."""
    host, _, port = address.rpartition(":")
    proxy = TcpProxy((host, int(port)))
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(functools.partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1"))
        proxy.port = listeners[0].socket.getsockname()[1]
        yield proxy
        nursery.cancel_scope.cancel()
