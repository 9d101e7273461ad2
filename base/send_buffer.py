"""How much of a response the kernel holds for a connection: what the settings say, or ``LARGE``.

A response of many MiB has to wait for room again and again in a small buffer, so it always gets the large one. For one of
about 1 MiB, what a consumer of one partition fetches, it depends on the reader:

- Where the program has set its receive buffer (Java's clients do: ``receive.buffer.bytes``), the large one costs half of the
  CPU time: what the reader has no room for yet leaves the buffer when it has read, in its own time, and the loop goes on.
- Where the kernel sizes it (librdkafka, Go, Python), the large one costs twice as much. Then all of a response is delivered at
  once, and a quick reader is woken by the broker, and asleep again, for each 64 KiB of it.

The window that the peer announces tells which of the two it is: where the kernel sizes it, it begins with 64 KiB, and grows.
Where the system does not show the window (macOS), only responses of many MiB get the large buffer.
"""

from __future__ import annotations

import socket
import struct

from .system_calls import TCP_INFO, set_buffer_size

LARGE = 512 << 10
_ALWAYS_LARGE_FROM = 2 << 20
_LOOKED_AT_FROM = 256 << 10
_LOOKS = 4
_GROWN = 192 << 10
# Of Linux' struct tcp_info (5.4 and newer), u32.
_SND_WND_AT, _INFO_SIZE = 228, 232


class SendBuffer:
    """The send buffer of one connection; ``is_settled`` when it will not change any more."""

    __slots__ = ("_began_large", "_looks", "_socket", "is_settled")

    def __init__(self, connected: socket.socket, configured: int) -> None:
        """``configured`` is in bytes; if it is not positive, the system decides."""
        self._socket = connected
        self._looks = 0
        self.is_settled = not 0 < configured < LARGE
        if configured > 0:
            set_buffer_size(connected, socket.SO_SNDBUF, configured)
        # Looked at now, because later a window that the kernel has let grow would look the same.
        self._began_large = not self.is_settled and peer_window(connected) >= _GROWN

    def begin(self, size: int) -> None:
        """A response of so many bytes is about to be sent."""
        if size < _LOOKED_AT_FROM:
            return
        self._looks += 1
        if size > _ALWAYS_LARGE_FROM or self._began_large:
            self._grow()
        elif self._looks == _LOOKS:
            self.is_settled = True
            if 0 < peer_window(self._socket) < _GROWN:
                self._grow()

    def _grow(self) -> None:
        set_buffer_size(self._socket, socket.SO_SNDBUF, LARGE)
        self.is_settled = True


def peer_window(connected: socket.socket) -> int:
    """The bytes that the other side last had room for; 0 where the system does not tell."""
    if TCP_INFO is None:
        return 0
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, TCP_INFO, _INFO_SIZE)
    except OSError:
        return 0
    return int(struct.unpack_from("I", info, _SND_WND_AT)[0]) if len(info) == _INFO_SIZE else 0
