"""A small HTTP/1.1 server for trio: h11 reads and writes the protocol, an ASGI application answers.

Why not one of the servers there are: they must not be able to hold up the broker's end. Hypercorn (0.18) and its fork anycorn
send under a shielded cancel scope without a limit, so that one client which does not read keeps the process from ending,
whatever it is asked; uvicorn and granian need asyncio. Owning the sockets of Hypercorn would end its sends from outside, but
it takes the place of its listener, its limits and its end, which is what most of this package is; h11, the part that is hard
to get right, is what Hypercorn reads HTTP/1.1 with, too. HTTP/2 needs TLS in browsers, and websockets are needed by nothing.

What holds here:

- ``serve`` ends at once when it is cancelled, whatever clients do: nothing is shielded, and every connection is closed. An
  answer that is on its way is cut.
- Each wait for a client has a limit, and so has what is kept of one (``HttpLimits``).
- A client that goes through many requests in a row gives the loop to others after each.
- Streams (server-sent events) may last; a reader that stalls is closed after ``send_seconds``.

Requests of a connection are answered one after another. The application's own work is not limited in time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from ...base.network import Connection, Listener, Network
from ...base.seams import Clock
from ...base.wording import explained
from .connection import HttpConnection
from .exchange import Application
from .limits import HttpLimits
from .stream import HttpStream

logger = logging.getLogger(__name__)

_BACKLOG = 128
_PAUSE_SECONDS = 0.25


class HttpServer:
    """Serves ``application`` on one address; ``host`` and ``port`` are what was bound."""

    def __init__(
        self, application: Application, network: Network, clock: Clock, limits: HttpLimits | None = None
    ) -> None:
        self._application = application
        self._network = network
        self._clock = clock
        self._limits = limits or HttpLimits()
        self._listener: Listener | None = None
        self._open = 0
        self.host = ""
        self.port = 0

    async def bind(self, host: str, port: int) -> None:
        """Take the address; 0 is any free port. Raises OSError."""
        self._listener = await self._network.listen(host, port, _BACKLOG)
        self.host, self.port = self._listener.host, self._listener.port

    def close(self) -> None:
        """Let the address go; safe to call twice."""
        if self._listener is not None:
            self._listener.close()

    async def run_beside(self, serve: Callable[[], Awaitable[None]], background: Callable[[], Awaitable[None]]) -> None:
        """Serve, and run what its pages need, for as long as ``serve`` takes; what that raises is raised as it is."""
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.serve)
            nursery.start_soon(background)
            try:
                await serve()
            except Exception as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def serve(self) -> None:
        """Serve until cancelled."""
        assert self._listener is not None
        try:
            async with trio.open_nursery() as nursery:
                is_paused = False
                while True:
                    try:
                        connection = await self._listener.accept()
                    except OSError as error:
                        if not is_paused:
                            logger.warning("accepting HTTP connections is paused: %s", explained(error))
                        is_paused = True
                        await trio.sleep(_PAUSE_SECONDS)
                        continue
                    is_paused = False
                    await trio.lowlevel.checkpoint()  # clients may come without end
                    if self._open >= self._limits.max_connections:
                        connection.close()
                        continue
                    self._open += 1
                    nursery.start_soon(self._serve_one, connection)
        finally:
            self.close()

    async def _serve_one(self, connection: Connection) -> None:
        stream = HttpStream(connection, self._limits)
        try:
            await HttpConnection(stream, self._application, (self.host, self.port), self._clock).serve()
        finally:
            self._open -= 1
