"""The lag of groups over the last hour, minute by minute, and which of them grow.

Only groups that have had lag, or a lag that is not known, have a series, of about 800 bytes: at most ``MOST_GROUPS`` of them
(8 MB), and until an hour has passed without lag. ``note`` is given the rows that were made for the pages anyway, and costs a
dictionary's look-up for a group without lag. The rules are tried once a minute for each series.

**A lag grows** if over the last five whole minutes

- the least lag of no minute is below that of the first. A minute's least lag does not tell of the lag between two commits.
- the rise is at least 100 records, and at least a tenth of the records that came: a group that keeps up with 10,000 records a
  second has some thousands of them under way, now more, now less, and reads nearly all that come.
- each half of the five minutes has a quarter of the rise. A single leap, as of a batch that was written at once or of offsets
  that were reset, is no growth.
- the group had members in all of them, so one that was started just now is given five minutes. Of a group without members
  ``without_members_since`` tells.

It has stopped growing when the last minute's least lag is no larger than that of two minutes before, when it is back at the
lag at which the growth began, or when the members are gone. So a lag that rises with breaks is not told again and again.

**A group is without members** if it has lag, no member, and has committed nothing for a minute: a consumer that is restarted is
not told of, nor one that commits without being a member.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .history import MINUTES, NOT_KNOWN
from .pace import Pace
from .rows import GroupRow

MOST_GROUPS = 10_000
WINDOW_MINUTES = 5
_MOST_GAP_MINUTES = 2
"""Two minutes of a window are no farther apart: what was not read in between is not guessed."""
_LEAST_RISE = 100
_SHARE_OF_CAME = 10
ALONE_MS = 60_000
GROWTH_MS = WINDOW_MINUTES * 60_000
"""After so long a growth can be told."""
_MINUTE_MS = 60_000
_STALE_MS = 150_000
"""After so long without a reading nothing is known of now, and watching begins anew. Groups are read every 10 to 60 seconds."""


class LagMinute(NamedTuple):
    """What a minute was like."""

    minute: int
    """Since the epoch."""
    least: int
    """The least lag."""
    end: int
    """The sum of the ends of the group's partitions, when it was last read in this minute."""


class LagGrowth(NamedTuple):
    """A lag that grows."""

    since_ms: int
    began_at: int
    """The lag that it began at."""


def grown_from(minutes: Sequence[LagMinute]) -> LagMinute | None:
    """The minute since when the lag grows, by whole minutes in their order; None if it does not grow."""
    if not minutes:
        return None
    last = minutes[-1]
    before = [each for each in minutes if each.minute <= last.minute - (WINDOW_MINUTES - 1)]
    if not before:
        return None
    first = before[-1]
    window = minutes[len(before) - 1 :]
    if any(b.minute - a.minute > _MOST_GAP_MINUTES for a, b in itertools.pairwise(window)):
        return None
    rise, came = last.least - first.least, last.end - first.end
    if (
        rise < max(_LEAST_RISE, came / _SHARE_OF_CAME)
        or rise > came
        or min(each.least for each in window) < first.least
    ):
        return None
    middle = window[len(window) // 2].least
    return first if min(middle - first.least, last.least - middle) >= rise / 4 else None


def has_stopped(minutes: Sequence[LagMinute]) -> bool:
    """Whether a lag that grew does not any more."""
    before = [each for each in minutes if each.minute <= minutes[-1].minute - 2]
    return not before or minutes[-1].least <= before[-1].least


class _Series:
    """The last hour of one group."""

    __slots__ = (
        "_began",
        "_count",
        "_end",
        "_hour",
        "_least",
        "_minutes",
        "_read",
        "_sum",
        "alone_since_ms",
        "behind",
        "growth",
        "minute",
    )

    def __init__(self, minute: int) -> None:
        self.minute = minute
        """The minute being counted."""
        self.behind = minute
        """The last minute in which the group had lag, or an unknown one."""
        self.alone_since_ms: int | None = None
        self.growth: LagGrowth | None = None
        self._began = minute
        self._hour = array("f", [NOT_KNOWN]) * MINUTES
        """A ring of the means of the minutes before."""
        self._read = -1
        """The sum of committed offsets that was seen last."""
        self._sum, self._count = 0.0, 0
        self._least, self._end = -1, 0
        self._minutes: array[int] = array("q")

    def mean(self, minute: int) -> float:
        """The mean lag in a minute of the last hour; NOT_KNOWN if it was not read."""
        if minute == self.minute:
            return self._sum / self._count if self._count else NOT_KNOWN
        if minute < self._began:
            return 0.0
        return self._hour[minute % MINUTES] if self.minute - MINUTES <= minute < self.minute else NOT_KNOWN

    def note(self, at_ms: int, minute: int, row: GroupRow) -> None:
        if minute > self.minute:
            self._go_on(minute)
        lag, read = row.lag, row.committed
        if lag or row.unknown:
            self.behind = minute
        if lag is None or read is None or row.unknown:
            self._forget()
            self._read = -1
            return
        self._sum += lag
        self._count += 1
        if row.members == 0:
            self._forget()
            if not lag or read != self._read:
                self.alone_since_ms = None
            if lag and self.alone_since_ms is None:
                self.alone_since_ms = at_ms
        else:
            self.alone_since_ms = None
            self._least = lag if self._least < 0 else min(self._least, lag)
            self._end = lag + read
            if self.growth is not None and lag <= self.growth.began_at:
                self.growth = None
        self._read = read

    def _forget(self) -> None:
        """What comes now is judged without what was before."""
        del self._minutes[:]
        self._least = -1
        self.growth = None

    def _go_on(self, minute: int) -> None:
        """Begin another minute; those between are not known."""
        for between in range(max(self.minute, minute - MINUTES), minute):
            self._hour[between % MINUTES] = self.mean(between) if between == self.minute else NOT_KNOWN
        if self._least >= 0:
            self._minutes.extend((self.minute, self._least, self._end))
            del self._minutes[: -3 * (WINDOW_MINUTES + 1)]
            self._judge()
        self._sum, self._count, self._least = 0.0, 0, -1
        self.minute = minute

    def _judge(self) -> None:
        minutes = [LagMinute(*self._minutes[place : place + 3]) for place in range(0, len(self._minutes), 3)]
        if self.growth is not None and has_stopped(minutes):
            self.growth = None
        first = grown_from(minutes) if self.growth is None else None
        if first is not None and not has_stopped(minutes):
            self.growth = LagGrowth(first.minute * _MINUTE_MS, first.least)


class LagHistory:
    """Of all groups: ``note`` takes readings."""

    def __init__(self, most: int = MOST_GROUPS) -> None:
        self._most = most
        self._groups: dict[str, _Series] = {}
        self._noted_ms = 0
        self._since_ms: int | None = None
        self._minutes = array("q", [-1]) * MINUTES
        """A ring of the minutes in which groups were read."""
        self._swept = 0
        self.left_out = 0
        """How many groups with lag have no series, for there are too many."""

    def __len__(self) -> int:
        return len(self._groups)

    async def note(self, at_ms: int, rows: Iterable[GroupRow], pace: Pace) -> None:
        """All groups as they are at a time (ms since the epoch)."""
        minute = at_ms // _MINUTE_MS
        if self._since_ms is None or not 0 <= at_ms - self._noted_ms < _STALE_MS:
            self._since_ms = at_ms
        self._noted_ms = at_ms
        self._minutes[minute % MINUTES] = minute
        left_out = 0
        for row in rows:
            series = self._groups.get(row.group_id)
            if series is None and (row.lag or row.unknown):
                if len(self._groups) < self._most:
                    series = self._groups[row.group_id] = _Series(minute)
                else:
                    left_out += 1
            if series is not None:
                series.note(at_ms, minute, row)
            if pace.is_due():
                await pace.rest()
        self.left_out = left_out
        if minute != self._swept:
            self._swept = minute
            await self._sweep(minute, pace)

    async def _sweep(self, minute: int, pace: Pace) -> None:
        """Forget groups that are gone or have had no lag for an hour."""
        for group_id, series in [*self._groups.items()]:
            if minute - series.behind > MINUTES:
                self._groups.pop(group_id, None)
            if pace.is_due():
                await pace.rest()

    def growth(self, group_id: str) -> LagGrowth | None:
        """None if the group's lag does not grow, as far as is known."""
        series = self._groups.get(group_id)
        return None if series is None else series.growth

    def without_members_since(self, group_id: str, now_ms: int) -> int | None:
        """Since when (ms) a group has lag and no member; None if it has not, or if that began within the last minute."""
        series = self._groups.get(group_id)
        since = None if series is None else series.alone_since_ms
        return since if since is not None and now_ms - since >= ALONE_MS else None

    def why_unknown(self, now_ms: int, wanted_ms: int) -> str:
        """Why it cannot be told what was so for ``wanted_ms``: the end of a sentence; empty if it can."""
        if self._since_ms is None or now_ms - self._noted_ms > _STALE_MS:
            return "groups were not read in the last minutes"
        watched = now_ms - self._since_ms
        if watched < wanted_ms:
            return f"it takes {_time(wanted_ms)}, and groups have been watched for {_time(watched)}"
        return ""

    def of(self, group_id: str, now_ms: int) -> list[tuple[int, float]]:
        """The mean lag in whole minutes of the last hour, from the first one in which groups were read; with each one's end (ms).

        It is NOT_KNOWN where it was not read. A group without a series had no lag.
        """
        minute = now_ms // _MINUTE_MS
        seen = [each for each in self._minutes if minute - MINUTES <= each < minute]
        series = self._groups.get(group_id)
        points = []
        for each in range(min(seen, default=minute), minute):
            value = NOT_KNOWN
            if self._minutes[each % MINUTES] == each:
                value = 0.0 if series is None else series.mean(each)
            points.append(((each + 1) * _MINUTE_MS, value))
        return points


def _time(ms: int) -> str:
    return f"{ms // 60_000} min" if ms >= 60_000 else f"{ms // 1000} s"
