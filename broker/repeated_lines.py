"""Log lines that a client can cause again and again: the first of a kind is written, the others are counted.

A kind is a host and a reason. Once a minute, while more come, a line says how many there were. The number of kinds is bounded: at
most ``_MOST_REASONS`` for a host and ``_MOST_KINDS`` in all; the rest count as one kind.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 60.0
_MOST_REASONS = 8
_MOST_KINDS = 256
_OTHER_REASONS = "for other reasons"
_OTHER_HOSTS = "other hosts"


class _Kind:
    """How many of a kind there were since ``since``, and which level its lines have."""

    __slots__ = ("count", "level", "since")

    def __init__(self, level: int, since: float) -> None:
        self.level = level
        self.since = since
        self.count = 0


class RepeatedLines:
    """Decides which closed connections get a line of their own. ``elapsed``: seconds of a clock that never goes back."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._reasons: Counter[str] = Counter()

    def is_first(self, host: str, reason: str, level: int = logging.WARNING) -> bool:
        """True if the caller is to write a line; otherwise the connection is counted here."""
        now = self._elapsed()
        self._sum_up(now)
        key = (host, reason)
        if key not in self._kinds:
            if len(self._kinds) >= _MOST_KINDS:
                key = (_OTHER_HOSTS, _OTHER_REASONS)
            elif self._reasons[host] >= _MOST_REASONS:
                key = (host, _OTHER_REASONS)
        kind = self._kinds.get(key)
        if kind is None:
            self._kinds[key] = _Kind(level, now)
            self._reasons[key[0]] += 1
            return True
        kind.count += 1
        return False

    def sum_up(self) -> None:
        """Write how many there were of each kind whose minute has ended; called every few seconds."""
        self._sum_up(self._elapsed())

    def sum_up_all(self) -> None:
        """Write the counts of every kind, at the end."""
        self._sum_up(float("inf"))

    def _sum_up(self, now: float) -> None:
        for (host, reason), kind in list(self._kinds.items()):
            if now - kind.since < INTERVAL_SECONDS:
                continue
            if kind.count:
                plural = "s" if kind.count > 1 else ""
                logger.log(kind.level, "closed %d more connection%s from %s: %s", kind.count, plural, host, reason)
                kind.since, kind.count = now, 0
            else:
                del self._kinds[host, reason]
                self._reasons[host] -= 1
                if not self._reasons[host]:
                    del self._reasons[host]
