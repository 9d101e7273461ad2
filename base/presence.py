"""Waits on behalf of a client that end when the client disconnects.

A connection's task has a ``Presence``. Where a request of a client may wait for as long as the client says, it waits in
``while_present``: the scope ends with its time, or at once when the peer goes. Both look the same to the code that waits.

Only the connection's own task waits for its peer. Tasks that it starts inherit its context, but what they do is not the client's
alone: the end of a transaction goes on when the producer has left.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Protocol

import trio

_present: ContextVar[Presence | None] = ContextVar("presence", default=None)


class Wait(Protocol):
    """What a task waits in."""

    def cancel(self) -> None:
        """End the wait, which may have ended already."""
        ...


class Presence:
    """Whether the peer of one connection is there; one task waits for it at a time."""

    __slots__ = ("_task", "_waiting", "is_gone")

    def __init__(self) -> None:
        self.is_gone = False
        """Whether the peer has disconnected."""
        self._task: trio.lowlevel.Task | None = None
        self._waiting: Wait | None = None

    def begin(self) -> None:
        """Let the waits of this task be for this peer, from here on."""
        self._task = trio.lowlevel.current_task()
        _present.set(self)

    @property
    def is_of_this_task(self) -> bool:
        return self._task is trio.lowlevel.current_task()

    def wait_in(self, wait: Wait) -> None:
        """Have ``wait`` cancelled when the peer goes, which may be now."""
        self._waiting = wait
        if self.is_gone:
            wait.cancel()

    def leave(self) -> None:
        """The peer has gone; what waits for it waits no longer."""
        self.is_gone = True
        if self._waiting is not None:
            self._waiting.cancel()


def while_present(seconds: float = math.inf) -> trio.CancelScope:
    """A scope that is cancelled after ``seconds``, and before that if the peer of this task's connection goes."""
    scope = trio.move_on_after(seconds)
    wait_while_present(scope)
    return scope


def wait_while_present(wait: Wait) -> None:
    """Have ``wait`` cancelled when the peer of this task's connection goes."""
    presence = _present.get()
    if presence is not None and presence.is_of_this_task:
        presence.wait_in(wait)


def is_client_gone() -> bool:
    """Whether the peer of this task's connection has gone, so that nobody gets what the task makes."""
    presence = _present.get()
    return presence is not None and presence.is_of_this_task and presence.is_gone
