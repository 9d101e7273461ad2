"""The size of a connection's send buffer in the kernel: the configured one, ``MIDDLE`` or ``LARGE``.

Small responses need no more than the settings say. For one of 256 KiB and more it depends on the reader:

- Where the program has set its receive buffer (Java's clients do: ``receive.buffer.bytes``), the large one costs half of the
  CPU time: what the reader has no room for yet leaves the buffer when it has read, in its own time, and the loop goes on.
- Where the kernel sizes it (librdkafka, Go, Python), the large one costs up to twice as much as the middle one. Then half a MiB
  is delivered at once, and a quick reader is woken by the broker, and asleep again, for each 64 KiB of it. In a buffer smaller
  than the middle one the loop has to wait for room more often: 100 KiB cost 1.1 to 1.5 times as much.
- Where it sizes it and the reader is far away, a response of many MiB gets the large one: in one round trip a connection
  carries no more than its send buffer holds.

The window that the peer announces tells the first two apart: where the kernel sizes it, it begins with 64 KiB, and grows. Where
the system shows neither the window nor the time of a round trip (macOS), only responses of many MiB get another buffer, the large
one.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from .system_calls import TCP_INFO, set_buffer_size

MIDDLE = 256 << 10
LARGE = 512 << 10
_MANY_MIB = 2 << 20
_LOOKED_AT_FROM = 256 << 10
_LOOKS = 4
_GROWN = 192 << 10
_FAR_US = 1000
# Of Linux' struct tcp_info (5.4 and newer), u32.
_MIN_RTT_AT, _SND_WND_AT, _INFO_SIZE = 148, 228, 232


class Peer(NamedTuple):
    """What the system knows of the other side of a connection."""

    window: int
    """The bytes that it last had room for."""
    round_trip_us: int
    """The shortest round trip that was seen, in microseconds."""


class SendBuffer:
    """The send buffer of one connection."""

    __slots__ = ("_began_large", "_configured", "_looks", "_socket", "is_settled")

    def __init__(self, connected: socket.socket, configured: int) -> None:
        """``configured`` is in bytes; if it is not positive, the system decides."""
        self._socket = connected
        self._configured = configured
        self._looks = 0
        self.is_settled = not 0 < configured < LARGE
        """Whether the size will not change any more."""
        if configured > 0:
            set_buffer_size(connected, socket.SO_SNDBUF, configured)
        # Looked at now, because later a window that the kernel has let grow would look the same.
        peer = None if self.is_settled else peer_of(connected)
        self._began_large = peer is not None and peer.window >= _GROWN

    def begin(self, size: int) -> None:
        """A response of so many bytes is about to be sent."""
        if size < _LOOKED_AT_FROM:
            return
        self._looks += 1
        peer = peer_of(self._socket)
        if self._began_large or (size > _MANY_MIB and (peer is None or peer.round_trip_us >= _FAR_US)):
            self._settle(LARGE)
        elif self._looks == _LOOKS:
            self._settle(LARGE if peer is not None and 0 < peer.window < _GROWN else 0)
        elif self._looks == 1 and peer is not None and self._configured < MIDDLE:
            set_buffer_size(self._socket, socket.SO_SNDBUF, MIDDLE)

    def _settle(self, nbytes: int) -> None:
        """``nbytes`` is 0 where the buffer stays as it is."""
        self.is_settled = True
        if nbytes:
            set_buffer_size(self._socket, socket.SO_SNDBUF, nbytes)


def peer_of(connected: socket.socket) -> Peer | None:
    """None where the system does not tell."""
    if TCP_INFO is None:
        return None
    try:
        info = connected.getsockopt(socket.IPPROTO_TCP, TCP_INFO, _INFO_SIZE)
    except OSError:
        return None
    if len(info) < _INFO_SIZE:
        return None
    return Peer(struct.unpack_from("I", info, _SND_WND_AT)[0], struct.unpack_from("I", info, _MIN_RTT_AT)[0])
