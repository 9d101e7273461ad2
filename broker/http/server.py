"""A small HTTP/1.1 server for trio: h11 reads and writes the protocol, an ASGI application responds.

Why not an existing server: it must not keep the broker from stopping. Hypercorn (0.18) and its fork anycorn send under a shielded
cancel scope without a limit, so that one client that does not read keeps the process from ending; uvicorn and granian need
asyncio. To end Hypercorn's sends from outside, we would have to own its sockets, and so to replace its listener, its limits and
its shutdown, which is most of this package; h11, the part that is hard to get right, is what Hypercorn uses, too. HTTP/2 needs
TLS in browsers, and nothing here needs websockets.

What this server guarantees:

- ``serve`` ends at once when it is cancelled, whatever clients do: nothing is shielded, and every connection is closed. An
  answer that is on its way is cut.
- Each wait for a client has a limit, and so has what is kept of one (``HttpLimits``).
- After each request the loop goes to other tasks, also where a client has sent many in a row.
- Streams (server-sent events) may last; a reader that stalls is closed after ``send_seconds``.

Requests of a connection are answered one after another. The application's own work is not limited in time.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from ...base.network import Connection, Network, NetworkListener
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
    """Serves ``application`` on one address."""

    def __init__(
        self, application: Application, network: Network, clock: Clock, limits: HttpLimits | None = None
    ) -> None:
        self._application = application
        self._network = network
        self._clock = clock
        self._limits = limits or HttpLimits()
        self._listener: NetworkListener | None = None
        self._open = 0
        self.host = ""
        """The host that was bound; empty before."""
        self.port = 0
        """The port that was bound; 0 before."""

    async def bind(self, host: str, port: int) -> None:
        """Bind the address; port 0 is any free one. Raises OSError."""
        self._listener = await self._network.listen(host, port, _BACKLOG)
        self.host, self.port = self._listener.host, self._listener.port

    def close(self) -> None:
        """Close the listener; safe to call twice."""
        if self._listener is not None:
            self._listener.close()

    async def run_beside(self, serve: Callable[[], Awaitable[None]], background: Callable[[], Awaitable[None]]) -> None:
        """Run this server and ``background``, which its pages need, until ``serve`` ends; what ``serve`` raises is raised."""
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
