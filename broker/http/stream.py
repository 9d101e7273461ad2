"""One HTTP client's byte stream as h11's events: reads are bounded in size, writes are bounded in time.

Nothing is shielded from cancellation, and reading is tried before waiting; so a cancelled ``wait_ended`` still finds out that
the client has gone already (Starlette's ``Request.is_disconnected`` works that way).
"""

from __future__ import annotations

import h11
import trio

from ...base.network import WOULD_BLOCK, Connection
from .limits import HttpLimits

_READ_BYTES = 16 * 1024


class ClientGoneError(OSError):
    """The client has closed the connection, or does not read."""


class HttpStream:
    """The stream of one client."""

    def __init__(self, connection: Connection, limits: HttpLimits) -> None:
        self.limits = limits
        self.protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.max_head_bytes)
        """H11's state of the connection."""
        self.is_broken = False
        """Whether nothing can be sent any more."""
        self._connection = connection
        self._has_ended = False
        self._ahead = 0

    @property
    def peer(self) -> str:
        return self._connection.peer

    def _receive(self) -> bool:
        """Read what has arrived; returns whether there was anything. Raises OSError."""
        buffer = bytearray(_READ_BYTES)
        received = self._connection.receive_into(memoryview(buffer))
        if received == WOULD_BLOCK:
            return False
        self._has_ended = received == 0
        self._ahead += received
        self.protocol.receive_data(bytes(buffer[:received]))
        return True

    async def wait_begun(self) -> None:
        """Return once there is something for ``next_event``. Raises OSError."""
        data, has_ended = self.protocol.trailing_data
        while not (data or has_ended or self._receive()):
            await self._connection.wait_readable()

    async def next_event(self) -> object:
        """h11's next event, or PAUSED. Raises OSError, h11.RemoteProtocolError."""
        while (event := self.protocol.next_event()) is h11.NEED_DATA:
            if not self._receive():
                await self._connection.wait_readable()
        self._ahead = 0
        return event

    async def wait_ended(self) -> None:
        """Return once the client has closed its side or the connection is broken.

        What it sends meanwhile is kept for the next request, up to ``max_ahead_bytes``; after more than that nothing is read,
        and only a failed send shows that the client has gone.
        """
        try:
            while not self._has_ended:
                if self._ahead > self.limits.max_ahead_bytes:
                    await trio.sleep_forever()
                if not self._receive():
                    await self._connection.wait_readable()
        except OSError:
            self.is_broken = True

    async def send(self, data: bytes) -> None:
        """Send it all, each piece in time. Raises ClientGoneError."""
        for start in range(0, len(data), self.limits.piece_bytes):
            with trio.move_on_after(self.limits.send_seconds) as scope:
                try:
                    await self._connection.send([data[start : start + self.limits.piece_bytes]])
                except OSError as error:
                    self.is_broken = True
                    raise ClientGoneError(str(error)) from None
                await trio.lowlevel.checkpoint()
            if scope.cancelled_caught:
                self.is_broken = True
                raise ClientGoneError(f"it took no bytes for {self.limits.send_seconds:g} s")

    async def linger(self) -> None:
        """Read and drop what the client still sends, for a moment: if it were closed at once, the response could be lost."""
        scratch = memoryview(bytearray(_READ_BYTES))
        left = self.limits.max_body_bytes
        with trio.move_on_after(self.limits.linger_seconds):
            while left > 0 and not self._has_ended:
                received = self._connection.receive_into(scratch)
                if received == WOULD_BLOCK:
                    await self._connection.wait_readable()
                    continue
                self._has_ended = received == 0
                left -= received

    def close(self) -> None:
        """Close both directions; safe to call twice."""
        self._connection.close()
