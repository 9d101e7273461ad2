"""Free space of the volumes that brokers keep their data on, and how soon it is used up.

The rate is that of the last hour at most: of one reading a minute, the oldest that is at least ten minutes old is compared with
the newest.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable

_LEAST_MS = 10 * 60_000
_MOST_MS = 60 * 60_000
_EVERY_MS = 60_000
_LEAST_FALL = 0.01
"""Of the whole volume: what falls less is not told from what comes and goes."""


@dataclasses.dataclass(frozen=True, slots=True)
class DiskRow:
    """A log directory and its volume, in bytes."""

    broker_id: int
    path: str
    total: int | None
    """None for brokers that do not report it (before KIP-827), and while the directory cannot be used."""
    usable: int | None
    failure: str = ""
    """Why the directory cannot be used; empty if it can."""
    full_in_ms: int | None = None
    """How soon the volume is full if it continues as in the last minutes; None if that is not known, or it does not fill up."""

    @property
    def free(self) -> float | None:
        """The share of the volume that can be used, 0 to 1."""
        return None if not self.total or self.usable is None else self.usable / self.total


class DiskTrends:
    """Readings of all volumes; a folder that is not read any more is forgotten."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, str], deque[tuple[int, int]]] = {}

    def note(self, at_ms: int, rows: Iterable[DiskRow]) -> list[DiskRow]:
        """The rows, as read at a time (ms since the epoch), with ``full_in_ms``."""
        before, self._read = self._read, {}
        found = []
        for row in rows:
            if row.usable is not None:
                key = row.broker_id, row.path
                readings = self._read[key] = before.get(key) or deque()
                while readings and not 0 <= at_ms - readings[0][0] <= _MOST_MS:
                    readings.popleft()
                if not readings or at_ms - readings[-1][0] >= _EVERY_MS:
                    readings.append((at_ms, row.usable))
                row = dataclasses.replace(row, full_in_ms=_full_in_ms(at_ms, row, *readings[0]))
            found.append(row)
        return found


def _full_in_ms(now_ms: int, row: DiskRow, then_ms: int, then: int) -> int | None:
    if row.usable is None or not row.total or now_ms - then_ms < _LEAST_MS:
        return None
    fall = then - row.usable
    return int(row.usable * (now_ms - then_ms) / fall) if fall >= _LEAST_FALL * row.total else None
