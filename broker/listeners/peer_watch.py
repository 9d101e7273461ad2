"""Immediate detection of clients that have gone, even while their requests wait and nothing is read.

The kernel tells it of a socket that was registered for nothing else (EPOLLRDHUP): what the client sent before its end need not be
read first. There is one descriptor for all connections, and one system call for each of them, at its beginning. Where the kernel
has no epoll (macOS) nothing is noticed, and a wait takes its time.
"""

from __future__ import annotations

import select
import sys

import trio

from ...base.presence import Presence

_EPOLLRDHUP = 0x2000
"""Linux's, on all its architectures; PyPy's ``select`` has no name for it."""


class PeerWatch:
    """Whether the peers of a broker's connections are there."""

    def __init__(self) -> None:
        self._presences: dict[int, Presence] = {}
        if sys.platform == "linux":
            self._epoll = select.epoll()

    def add(self, descriptor: int, presence: Presence) -> None:
        """Watch the socket ``descriptor``, once; -1 is no socket of the system."""
        # A connection's task may begin after ``run`` was cancelled with it: it ends at its first wait.
        if sys.platform == "linux" and descriptor >= 0 and not self._epoll.closed:
            self._presences[descriptor] = presence
            self._epoll.register(descriptor, _EPOLLRDHUP | select.EPOLLONESHOT)

    def remove(self, descriptor: int, presence: Presence) -> None:
        """Forget a connection. The kernel has forgotten it with its descriptor, which another one may have by now."""
        if self._presences.get(descriptor) is presence:
            del self._presences[descriptor]

    async def run(self) -> None:
        """Tell presences of their end, until cancelled."""
        if sys.platform == "linux":
            with self._epoll as epoll:
                while True:
                    await trio.lowlevel.wait_readable(epoll.fileno())
                    for descriptor, _ in epoll.poll(0):
                        presence = self._presences.get(descriptor)
                        if presence is not None:
                            presence.leave()
