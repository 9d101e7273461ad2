"""Counters of a broker's connections and of their failures, and the observers of its requests.

The numbers are plain integers that may be read at any time.
"""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ...base.network import Part
from ...base.repeated_lines import RepeatedLines
from ...base.wording import counted
from ...handlers.call import NodeCall, RequestObserver
from .flight_recorder import FlightRecorder


class Ending(enum.Enum):
    """Why the broker ended a connection, or the connection ended badly; the value is the label in the metrics."""

    PROTOCOL = "protocol"
    REFUSED_REQUEST = "refused_request"
    LIMIT = "limit"
    AUTHENTICATION = "authentication"
    NETWORK = "network"
    STORAGE = "storage"
    IDLE = "idle"
    BUG = "bug"


class Authentication(enum.Enum):
    """The outcome of an authentication; the value is part of Kafka's name of the metric."""

    SUCCESSFUL = "successful_authentication"
    FAILED = "failed_authentication"
    SUCCESSFUL_AGAIN = "successful_reauthentication"
    FAILED_AGAIN = "failed_reauthentication"
    EXPIRED = "expired_connections_killed"


class Monitor:
    """Counts the connections of one broker. ``elapsed``: seconds that never go back."""

    def __init__(
        self,
        observers: Sequence[RequestObserver] = (),
        recorder: FlightRecorder | None = None,
        elapsed: Callable[[], float] = time.perf_counter,
        *,
        keeps_activity: bool = False,
    ) -> None:
        self.observer = _together(observers)
        """Is told of every request; None where nobody observes them."""
        self.keeps_activity = keeps_activity
        """Whether each connection remembers what it wrote and read last."""
        self.recorder = recorder
        """Records the last requests before a protocol error; None where that is not done."""
        self.closings = RepeatedLines(elapsed, closed_more)
        """Decides which connections that the broker closes have a line in the log."""
        self.opened: Counter[str] = Counter()
        """Connections that were accepted, by listener."""
        self.closed: Counter[str] = Counter()
        """Connections that have ended, by listener."""
        self.errors: Counter[Ending] = Counter()
        self.authentications: Counter[tuple[str, Authentication]] = Counter()
        """By listener and outcome."""


def closed_more(count: int, host: str, reason: str) -> str:
    """The line that counts connections that were closed without one."""
    return f"closed {counted(count, 'more connection')} from {host}: {reason}"


def _together(observers: Sequence[RequestObserver]) -> RequestObserver | None:
    if len(observers) < 2:
        return observers[0] if observers else None
    return Observers(observers)


class Observers:
    """Several observers as one."""

    def __init__(self, observers: Sequence[RequestObserver]) -> None:
        self._observers = observers
        self.elapsed = observers[0].elapsed

    def observes_each(self, api_key: int) -> bool:
        return any(observer.observes_each(api_key) for observer in self._observers)

    def observe_batch(self, key: int, count: int, seconds: float) -> None:
        for observer in self._observers:
            observer.observe_batch(key, count, seconds)

    def observe_request(
        self,
        call: NodeCall,
        frame: memoryview,
        response: Any,
        parts: Sequence[Part] | None,
        local: float,
        remote: float,
    ) -> None:
        for observer in self._observers:
            observer.observe_request(call, frame, response, parts, local, remote)
