"""The positions in a partition that ``--offset`` accepts: the forms of rpk and of kcat.

========================  ==========================================================================
``start`` ``end``         the oldest record; after the newest (also ``beginning``, ``oldest``, ``newest``)
``47`` ``+10`` ``-10``    an offset; ten after the start; the last ten
``10:20`` ``:20`` ``5:``  from, and up to but not with; each side may be any of the above
``@TIME`` ``@T1:T2``      the first record as new as that; up to, but not with, the first one as new as T2
``s@MS`` ``e@MS``         kcat's: from and up to, in milliseconds since 1970
========================  ==========================================================================

A time is a date, ISO 8601, 13 digits of milliseconds, 10 digits of seconds, or a duration: ``-1h`` is an hour ago, and as T2
behind a T1 that is no duration it counts from T1.
"""

from __future__ import annotations

import enum
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from kafka import TopicPartition

from ..running import UsageError
from .times import parse_duration_ms, parse_time_ms

_NAMES = {"start": "start", "beginning": "start", "oldest": "start", "end": "end", "newest": "end"}
_MOMENT = re.compile(
    r"\d{13}|\d{10}|\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?|end|-?[\d.]+[a-z][a-z\d.]*"
)


class OffsetOrigin(enum.Enum):
    """What the number of a place counts from."""

    START = "start"
    END = "end"
    OFFSET = "offset"
    TIME = "time"


class OffsetExpression(NamedTuple):
    """A place in every partition that is read."""

    kind: OffsetOrigin
    number: int = 0
    """An offset, a distance, or milliseconds since 1970, depending on ``kind``."""


START, END = OffsetExpression(OffsetOrigin.START), OffsetExpression(OffsetOrigin.END)


class OffsetExpressionRange(NamedTuple):
    """From a place, and up to another one; None for no end."""

    start: OffsetExpression
    end: OffsetExpression | None = None


class Offsets(Protocol):
    """A client that can be asked where partitions begin and end."""

    def starts(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The offset of the oldest record of each."""
        ...

    def ends(self, wanted: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The offset after the newest record of each."""
        ...

    def at_time(self, wanted: Collection[TopicPartition], time_ms: int) -> Mapping[TopicPartition, int | None]:
        """The offset of the first record as new as this of each; None where there is none."""
        ...


def parse_span(texts: Sequence[str], default: OffsetExpression = START) -> OffsetExpressionRange:
    """What all ``--offset`` together ask for: one of rpk's forms, or kcat's two. Raises UsageError."""
    start: OffsetExpression | None = None
    end: OffsetExpression | None = None
    for text in texts:
        new_start, new_end = _half_or_both(text)
        if (new_start and start) or (new_end and end):
            raise UsageError(f"--offset says twice where to {'begin' if new_start and start else 'end'}")
        start, end = new_start or start, new_end or end
    return OffsetExpressionRange(start or default, end)


def parse_place(text: str) -> OffsetExpression:
    """One place. Raises UsageError, also for a form with an end."""
    start, end = _half_or_both(text)
    if start is None or end is not None:
        raise UsageError(f"--offset takes one place here, not {text!r}")
    return start


def _half_or_both(text: str) -> tuple[OffsetExpression | None, OffsetExpression | None]:
    if text[:2] in ("s@", "e@") and text[2:].isdigit():
        place = OffsetExpression(OffsetOrigin.TIME, int(text[2:]))
        return (place, None) if text[0] == "s" else (None, place)
    if text == "stored":
        raise UsageError("--offset stored: use --group to read from a group's committed offsets")
    if text.startswith("@"):
        return _times(text)
    first, colon, second = text.partition(":")
    if colon and not first and not second:
        raise _no_offset(text)
    return (_counted(first, text) if first or not colon else None, _counted(second, text) if second else None)


def _counted(half: str, text: str) -> OffsetExpression:
    if half in _NAMES:
        return OffsetExpression(OffsetOrigin(_NAMES[half]))
    if half[:1] in ("+", "-") and half[1:].isdigit():
        return (
            OffsetExpression(OffsetOrigin.START, int(half))
            if half[0] == "+"
            else OffsetExpression(OffsetOrigin.END, int(half))
        )
    if not half.isdigit():
        raise _no_offset(text)
    return OffsetExpression(OffsetOrigin.OFFSET, int(half))


def _no_offset(text: str) -> UsageError:
    return UsageError(f"--offset takes start, end, 47, +10, -10, 10:20, @TIME or @TIME:TIME, not {text!r}")


def _times(text: str) -> tuple[OffsetExpression | None, OffsetExpression | None]:
    now_ms = round(time.time() * 1000)
    rest = text[1:]
    found = _MOMENT.match(rest)
    start: OffsetExpression | None = None
    base_ms = now_ms
    if found and found[0] != "end":
        start = OffsetExpression(OffsetOrigin.TIME, _moment_ms(found[0], now_ms))
        if not _is_duration(found[0]):
            base_ms = start.number
        rest = rest[found.end() :]
    if rest in ("", ":") and start is not None:
        return start, None
    ending = _MOMENT.fullmatch(rest[1:])
    if not rest.startswith(":") or ending is None:
        raise UsageError(f"--offset takes @TIME or @TIME:TIME (2026-01-31, 2026-01-31T12:00:00Z, -1h), not {text!r}")
    return start, END if ending[0] == "end" else OffsetExpression(OffsetOrigin.TIME, _moment_ms(ending[0], base_ms))


def _is_duration(text: str) -> bool:
    return text[-1].isalpha() and text[-1] != "Z"


def _moment_ms(text: str, base_ms: int) -> int:
    if _is_duration(text):
        length = parse_duration_ms(text.removeprefix("-"))
        return base_ms - length if text.startswith("-") else base_ms + length
    return int(text) * 1000 if len(text) == 10 and text.isdigit() else parse_time_ms(text)


def resolve(place: OffsetExpression, wanted: Collection[TopicPartition], client: Offsets) -> dict[TopicPartition, int]:
    """The offset that a place is in each partition; none is outside of the partition."""
    if not wanted:
        return {}
    starts, ends = client.starts(wanted), client.ends(wanted)
    if place.kind is OffsetOrigin.TIME:
        found = client.at_time(wanted, max(0, place.number))  # below 0 are Kafka's special timestamps
        goals = {where: ends[where] if (offset := found.get(where)) is None else offset for where in wanted}
    elif place.kind is OffsetOrigin.OFFSET:
        goals = dict.fromkeys(wanted, place.number)
    else:
        base = starts if place.kind is OffsetOrigin.START else ends
        goals = {where: base[where] + place.number for where in wanted}
    return {where: min(max(goals[where], starts[where]), ends[where]) for where in wanted}
