"""Timers as data: names with deadlines, without callbacks and without a clock.

A name is a tuple such as ``("session", group_id, member_id)``; setting a name again moves its deadline. The heap may hold
stale entries: the truth is ``_deadlines``, and an entry that disagrees with it is dropped or moved when it comes up.
Moving a deadline later, which every heartbeat does, therefore costs one dictionary write.

Times are milliseconds of a clock that never goes back.
"""

from __future__ import annotations

import heapq

TimerName = tuple[str, ...]


class Timers:
    """Named deadlines."""

    def __init__(self) -> None:
        self._deadlines: dict[TimerName, float] = {}
        self._heap: list[tuple[float, TimerName]] = []
        self._queued: dict[TimerName, float] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, name: TimerName) -> bool:
        return name in self._deadlines

    def set(self, name: TimerName, deadline_ms: float) -> None:
        """Start ``name``, or move it."""
        self._deadlines[name] = deadline_ms
        queued = self._queued.get(name)
        if queued is None or queued > deadline_ms:
            self._queued[name] = deadline_ms
            heapq.heappush(self._heap, (deadline_ms, name))

    def cancel(self, name: TimerName) -> None:
        """Stop ``name``; nothing happens when it does not run."""
        self._deadlines.pop(name, None)

    def next_deadline(self) -> float | None:
        """The earliest deadline, or None."""
        while self._heap:
            queued, name = self._heap[0]
            deadline = self._deadlines.get(name)
            if deadline == queued:
                return queued
            heapq.heappop(self._heap)
            if self._queued.get(name) == queued:
                del self._queued[name]
                if deadline is not None:
                    self.set(name, deadline)
        return None

    def pop_expired(self, now_ms: float) -> TimerName | None:
        """Stop and return the timer with the earliest deadline if that is not after ``now_ms``."""
        deadline = self.next_deadline()
        if deadline is None or deadline > now_ms:
            return None
        _, name = heapq.heappop(self._heap)
        del self._deadlines[name]
        self._queued.pop(name, None)
        return name

    def extend_all(self, extra_ms: float) -> None:
        """Move every deadline later: no member could be heard for that long."""
        for name in self._deadlines:
            self._deadlines[name] += extra_ms
