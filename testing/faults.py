"""Injected faults of clients' requests: their kind, the requests that they match, and their count.

A fault waits for requests that match its ``api``, ``topic`` and ``client_id`` (None: any). It hits the ``nth`` of them
and those after it, ``count`` times in all. A request is hit by the first fault, in the order of adding, that is due.

A test whose fault never hits proves nothing: if the fault is ``required``, the pytest plugin fails that test
(``take_never_hit``).

Faults are added and removed in the test's thread and read in the broker's; no attribute is written by both.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

import trio

from ..base.errors import ErrorCode
from ..base.wording import counted
from ..wire.api_keys import ApiKey
from . import names

_MOST_ADDED = 10_000
_HERE = os.path.dirname(__file__) + os.sep
_added: deque[Fault] = deque(maxlen=_MOST_ADDED)

__tracebackhide__ = True  # a failure points at the caller's line


@dataclasses.dataclass(eq=False)
class Fault:
    """One fault; ``with faults.add(...) as fault:`` removes it at the end of the block.

    Attributes without an explanation are the arguments of ``Faults.add``.
    """

    api: ApiKey | None
    topic: str | None
    client_id: str | None
    nth: int
    count: int | None
    error: ErrorCode | None
    delay: float
    drop: bool
    disconnect: bool
    black_hole: bool
    throttle_time_ms: int
    required: bool
    asked_for: str
    """The call that added it, and its place in the test."""
    _owner: Faults
    hits: int = 0
    """The number of requests that it has hit so far."""
    _seen: int = 0

    def __post_init__(self) -> None:
        self._hit = threading.Condition()
        self.over = trio.Event()
        """Set, in the broker's loop, when the fault is removed: requests that it delays continue."""

    def remove(self) -> None:
        """End the fault. Connections of requests in the black hole are closed. A second call does nothing."""
        self._owner._remove(self)

    def wait(self, hits: int = 1, timeout: float = 10.0) -> None:
        """Block until ``hits`` requests were hit. Raises TimeoutError after ``timeout`` seconds."""
        with self._hit:
            if not self._hit.wait_for(lambda: self.hits >= hits, timeout):
                raise TimeoutError(
                    f"{counted(self.hits, 'request was', 'requests were')} hit, not {hits}, after {timeout} s"
                )

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def meets(self, api: ApiKey, client_id: str, topics: Callable[[], frozenset[str]]) -> bool:
        """Whether this request is one to count, and the fault is due with it."""
        if self.api not in (None, api) or self.client_id not in (None, client_id):
            return False
        if self.topic is not None and self.topic not in topics():
            return False
        self._seen += 1
        return self._seen >= self.nth and (self.count is None or self.hits < self.count)

    def why_not(self) -> str:
        """Why it never hit a request."""
        if self._seen == 0:
            return "no request matched"
        matched = f"{counted(self._seen, 'request')} matched"
        return (
            f"{matched}, too few for nth={self.nth}" if self._seen < self.nth else f"{matched}, but met another fault"
        )

    def hit(self) -> None:
        with self._hit:
            self.hits += 1
            self._hit.notify_all()


class Faults:
    """The faults of one broker. ``changed`` is called after each change; ``in_loop`` runs a function in the broker's loop."""

    def __init__(self, changed: Callable[[], None], in_loop: Callable[[Callable[[], Any]], None]) -> None:
        self._faults: tuple[Fault, ...] = ()
        self._changed = changed
        self._in_loop = in_loop

    def __len__(self) -> int:
        return len(self._faults)

    def add(
        self,
        *,
        api: str | None = None,
        topic: str | None = None,
        client_id: str | None = None,
        nth: int = 1,
        count: int | None = 1,
        error: str | None = None,
        delay: float = 0.0,
        drop: bool = False,
        disconnect: bool = False,
        black_hole: bool = False,
        throttle_time_ms: int = 0,
        required: bool = True,
    ) -> Fault:
        """Make matching requests fail from now on; with ``count`` None until the fault is removed.

        Under pytest, a test fails if it added a fault that never hit a request, unless ``required`` is false.

        ``api`` is Kafka's name (``Produce``). What happens is one of: ``error``, the request is not executed and answered
        with this error (``NOT_LEADER_OR_FOLLOWER``), with a ``topic`` for its partitions only where the API answers by
        partition; ``drop``, it is executed and the connection closed in place of the answer; ``disconnect``, the
        connection is closed at once; ``black_hole``, the request is neither executed nor ever answered;
        ``throttle_time_ms``, the answer asks the client to be quiet for so long. ``delay``, in seconds, comes before
        that, or alone. Raises ValueError.
        """
        given = {name: value for name, value in locals().items() if name in _DEFAULTS and value != _DEFAULTS[name]}
        outcomes = (error is not None, drop, disconnect, black_hole, throttle_time_ms > 0)
        if sum(outcomes) > 1 or not (any(outcomes) or delay > 0):
            raise ValueError("a fault is one of error, drop, disconnect, black_hole and throttle_time_ms, or a delay")
        if nth < 1 or (count is not None and count < 1):
            raise ValueError("nth and count begin at 1")
        fault = Fault(
            api=None if api is None else names.api_key(api),
            topic=topic,
            client_id=client_id,
            nth=nth,
            count=count,
            error=None if error is None else names.error_code(error),
            delay=delay,
            drop=drop,
            disconnect=disconnect,
            black_hole=black_hole,
            throttle_time_ms=throttle_time_ms,
            required=required,
            asked_for=f"faults.add({', '.join(f'{name}={value!r}' for name, value in given.items())}) in {_caller()}",
            _owner=self,
        )
        _added.append(fault)
        self._faults += (fault,)
        self._changed()
        return fault

    def clear(self) -> None:
        """Remove every fault."""
        for fault in self._faults:
            fault.remove()

    def due(self, api: ApiKey, client_id: str, topics: Callable[[], frozenset[str]]) -> Fault | None:
        """The fault that this request meets, counted as hit."""
        # Every fault counts the request, also those after the first that is due.
        met = [fault for fault in self._faults if fault.meets(api, client_id, topics)]
        if not met:
            return None
        met[0].hit()
        return met[0]

    def _remove(self, fault: Fault) -> None:
        if fault in self._faults:
            self._faults = tuple(other for other in self._faults if other is not fault)
            self._in_loop(fault.over.set)
            self._changed()


_DEFAULTS = dict(Faults.add.__kwdefaults__ or {})


def take_never_hit() -> list[Fault]:
    """Of the faults that were added since the last call, in any broker of this process, those that should have hit a request."""
    added = list(_added)
    _added.clear()
    return [fault for fault in added if fault.required and fault.hits == 0]


def _caller() -> str:
    """``file.py:12``, where a function of this directory was called from outside of it; relative to the working directory."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    name = frame.f_code.co_filename
    inside = os.path.relpath(name)
    return f"{name if inside.startswith('..') else inside}:{frame.f_lineno}"
