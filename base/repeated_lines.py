"""Rate limiting of log lines that a client can cause repeatedly: the first of a kind is written, the others are counted.

A kind is a subject, which is a host or a topic, and a reason. Once a minute, while more come, a line says how many there were;
``sum_up_while_running`` writes it. The number of kinds is bounded: at most ``_MOST_REASONS`` for a subject and
``_MOST_KINDS`` in all; the rest count as one kind.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

import trio

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 60.0
_LOOK_SECONDS = 10.0
_MOST_REASONS = 8
_MOST_KINDS = 256
_OTHER_REASONS = "for other reasons"
_OTHER_SUBJECTS = "other hosts"  # only hosts can be so many


class _Kind:
    """How many of a kind there were since ``since``, and which level its lines have."""

    __slots__ = ("count", "level", "since")

    def __init__(self, level: int, since: float) -> None:
        self.level = level
        self.since = since
        self.count = 0


class RepeatedLines:
    """Decides what gets a line of its own.

    ``elapsed``: seconds of a clock that never goes back. ``summary`` words a line from how many more there were, of which
    subject, and the reason.
    """

    def __init__(self, elapsed: Callable[[], float], summary: Callable[[int, str, str], str]) -> None:
        self._elapsed = elapsed
        self._summary = summary
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._reasons: Counter[str] = Counter()

    def is_first(self, subject: str, reason: str, level: int = logging.WARNING) -> bool:
        """True if the caller is to write a line; otherwise this one is counted here."""
        now = self._elapsed()
        self._sum_up(now)
        key = (subject, reason)
        if key not in self._kinds:
            if len(self._kinds) >= _MOST_KINDS:
                key = (_OTHER_SUBJECTS, _OTHER_REASONS)
            elif self._reasons[subject] >= _MOST_REASONS:
                key = (subject, _OTHER_REASONS)
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
        for (subject, reason), kind in list(self._kinds.items()):
            if now - kind.since < INTERVAL_SECONDS:
                continue
            if kind.count:
                logger.log(kind.level, "%s", self._summary(kind.count, subject, reason))
                kind.since, kind.count = now, 0
            else:
                del self._kinds[subject, reason]
                self._reasons[subject] -= 1
                if not self._reasons[subject]:
                    del self._reasons[subject]


async def sum_up_while_running(*families: RepeatedLines) -> None:
    """Write the counts of each family as its kinds' minutes end, and what is left when this is cancelled."""
    try:
        while True:
            await trio.sleep(_LOOK_SECONDS)
            for lines in families:
                lines.sum_up()
    finally:
        for lines in families:
            lines.sum_up_all()
