"""Reading of records that are to be copied: the committed ones of offset ranges, within the bounds of one copy.

Ranges are read one after another, each in the order of its offsets, a window of 256 KiB or one batch at a time. So memory is
bounded, and what is left is always a list of ranges. Records of aborted transactions and markers are passed over; the caller
gives no range beyond the last stable offset, so there are none of open ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import trio

from ..view.found_records import FoundRecord
from ..view.record_search import Range, Search
from .questions import Rest

MOST_RECORDS = 10_000
MOST_BYTES = 64 << 20
"""Of keys, values and headers; the last record may go beyond."""

_AT_ONCE = 1000
"""So many records are counted in a step of the loop."""

BeginSearch = Callable[[Range, int], Search]
"""A search of one range for at most so many records, which keeps all bytes and passes over what is not committed."""


class CopyReading:
    """Reads once through ``ranges``, which it changes."""

    def __init__(self, ranges: Iterable[Range], begin: BeginSearch) -> None:
        self.records = 0
        """The number of records that ``step`` has returned."""
        self.size = 0
        """Their bytes, without framing."""
        self.bytes_read = 0
        """The size of all batches read."""
        self.problem: str | None = None
        """Why reading has ended before the end; ``left`` begins with what could not be read."""
        self._ranges = deque(each for each in ranges if each.left)
        self._offsets = sum(each.left for each in self._ranges)
        self._begin = begin
        self._search: Search | None = None

    @property
    def is_full(self) -> bool:
        """Whether a bound is reached."""
        return self.records >= MOST_RECORDS or self.size >= MOST_BYTES

    @property
    def is_done(self) -> bool:
        return not self._ranges or self.is_full or self.problem is not None

    @property
    def done_share(self) -> float:
        """Of the offsets, from 0 to 1."""
        return 1 - sum(each.left for each in self._ranges) / self._offsets if self._offsets else 1.0

    def left(self) -> list[Rest]:
        """The ranges whose records ``step`` has not returned."""
        return [Rest(each.number, each.low, each.high) for each in self._ranges]

    async def step(self) -> Sequence[FoundRecord]:
        """The next records, all of one partition; possibly none. There must be more to do. Raises KafkaError, OSError."""
        each = self._ranges[0]
        if self._search is None:
            self._search = self._begin(each, MOST_RECORDS - self.records)
        search, low, before = self._search, each.low, self._search.bytes_read
        await search.step()
        self.bytes_read += search.bytes_read - before
        found = list(each.found)
        each.found.clear()
        if search.problems:
            each.low, self.problem = low, search.problems[0]
            return ()
        kept = await self._within_bounds(found)
        if len(kept) < len(found):
            each.low = found[len(kept)].offset
        if not each.left:
            self._ranges.popleft()
            self._search = None
        return kept

    async def _within_bounds(self, found: Sequence[FoundRecord]) -> Sequence[FoundRecord]:
        for place, record in enumerate(found):
            if self.is_full:
                return found[:place]
            if place % _AT_ONCE == _AT_ONCE - 1:  # a window has ten thousand small records
                await trio.lowlevel.checkpoint()
            self.records += 1
            self.size += size_of(record)
        return found


def size_of(record: FoundRecord) -> int:
    """The bytes of the record's key, value and headers."""
    headers = sum(len(name) + len(content or b"") for name, content in record.headers)
    return record.key_size + record.value_size + headers
