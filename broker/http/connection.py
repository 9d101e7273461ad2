"""One HTTP connection: a request after another, until either side ends it.

A request that cannot be read is answered with the status that h11 gives it (400, 431, 501), one that does not arrive in time
with 408; then the connection ends. A client that has sent nothing is closed without a word.
"""

from __future__ import annotations

import logging

import h11
import trio

from ...base.seams import Clock
from .exchange import Application, Exchange, RefusedRequestError, refusal
from .stream import ClientGoneError, HttpStream

logger = logging.getLogger(__name__)


class HttpConnection:
    """Serves one client with ``application``."""

    def __init__(self, stream: HttpStream, application: Application, server: tuple[str, int], clock: Clock) -> None:
        self._stream = stream
        self._protocol = stream.protocol
        self._application = application
        self._server = server
        self._clock = clock
        self._request: h11.Request | None = None

    async def serve(self) -> None:
        """Answer requests to the end; closes the connection. Raises nothing but cancellation."""
        try:
            while await self._serve_one():
                self._request = None
                await trio.lowlevel.checkpoint()
            if not self._stream.is_broken and self._protocol.their_state in (h11.SEND_BODY, h11.ERROR):
                await self._stream.linger()
        except OSError as error:
            logger.debug("HTTP connection from %s ended: %s", self._stream.peer, error)
        except Exception:
            logger.exception("closing HTTP connection from %s", self._stream.peer)
        finally:
            self._stream.close()

    async def _serve_one(self) -> bool:
        """Whether another request may follow. Raises OSError."""
        try:
            request = self._request = await self._next_request()
            if request is None:
                return False
            await self._respond(Exchange(self._stream, request, self._server, self._clock))
        except h11.RemoteProtocolError as error:
            await self._refuse(error.error_status_hint, str(error))
        except RefusedRequestError as refused:
            await self._refuse(refused.status, str(refused))
        if self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE:
            self._protocol.start_next_cycle()
            return True
        return False

    async def _next_request(self) -> h11.Request | None:
        """The next one; None at the end. Raises RefusedRequestError, h11.RemoteProtocolError, OSError."""
        limits = self._stream.limits
        with trio.move_on_after(limits.idle_seconds) as idle:
            await self._stream.wait_begun()
        if idle.cancelled_caught:
            return None
        with trio.move_on_after(limits.head_seconds):
            event = await self._stream.next_event()
            return event if isinstance(event, h11.Request) else None
        raise RefusedRequestError(408, "the request did not arrive in time")

    async def _respond(self, exchange: Exchange) -> None:
        try:
            await exchange.run(self._application)
        except RefusedRequestError:
            raise
        except ClientGoneError:
            raise
        except Exception:
            if self._stream.is_broken:  # the client has gone: that the application could not send is no failure
                raise ClientGoneError("the client has gone") from None
            logger.exception("HTTP %s %s failed", exchange.scope["method"], exchange.scope["path"])
            await self._refuse(500, "the broker's log has the error")

    async def _refuse(self, status: int, why: str) -> None:
        is_head = self._request is not None and self._request.method == b"HEAD"
        data = refusal(self._protocol, status, why, is_head, self._clock)
        if data:
            await self._stream.send(data)
