"""The offset index of a segment: from offsets to file positions, one entry every ``index.interval.bytes``.

File (``<base offset>.index``): entries of 8 bytes, big-endian, ascending::

    0 relative_offset int32   last offset of a batch, minus the segment's base offset
    4 position int32          where that batch begins in the .log file

In memory the two columns are arrays that ``bisect`` searches without making Python objects of them. The file is
written when the segment becomes inactive and when the log closes; until then a crash loses only what recovery rebuilds.
Apache Kafka keeps the file of the active segment at ``segment.index.bytes`` and trims it later; ours is never longer
than its entries, which is what Kafka leaves behind a clean stop.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right

from .disk import Bytes

ENTRY_SIZE = 8
MAX_RELATIVE_OFFSET = (1 << 31) - 1
_SWAP = sys.byteorder == "little"
assert array("I").itemsize == 4


class CorruptIndexError(Exception):
    """An index file that cannot be the index of its segment."""


def without_zeros(data: Bytes, entry_size: int) -> bytes:
    """Whole entries, up to the last one that is not all zeros."""
    content = bytes(data)
    used = len(content.rstrip(b"\0"))
    return content[: -(-used // entry_size) * entry_size]


class OffsetIndex:
    """The entries of one segment, as ``relative_offsets`` and ``positions``."""

    __slots__ = ("positions", "relative_offsets")

    def __init__(self) -> None:
        self.relative_offsets = array("I")
        self.positions = array("I")

    def __len__(self) -> int:
        return len(self.positions)

    @classmethod
    def from_bytes(cls, data: Bytes, segment_size: int) -> OffsetIndex:
        """Read a file. Zeros at its end (Kafka's preallocation) are left out. Raises CorruptIndexError."""
        if len(data) % ENTRY_SIZE:
            raise CorruptIndexError(f"{len(data)} bytes are not a multiple of {ENTRY_SIZE}")
        words = array("I", without_zeros(data, ENTRY_SIZE))
        if _SWAP:
            words.byteswap()
        index = cls()
        index.relative_offsets = words[0::2]
        index.positions = words[1::2]
        # A segment's first batch gets no entry, so none has position 0: what has it is Kafka's preallocation.
        count = len(index)
        while count and not index.positions[count - 1]:
            count -= 1
        index.truncate_to_count(count)
        index._check(segment_size)
        return index

    def _check(self, segment_size: int) -> None:
        """Look at both ends only; an entry that is used is checked against the batch at its position."""
        if not self.positions:
            return
        if self.positions[-1] >= segment_size:
            raise CorruptIndexError(f"position {self.positions[-1]} is beyond the segment's {segment_size} bytes")
        if self.relative_offsets[-1] > MAX_RELATIVE_OFFSET:
            raise CorruptIndexError("a relative offset is negative")
        if len(self) > 1:
            for column in (self.relative_offsets, self.positions):
                if column[0] >= column[-1]:
                    raise CorruptIndexError("its entries do not ascend")

    def to_bytes(self) -> bytes:
        """The content of the file."""
        words = array("I", bytes(len(self) * ENTRY_SIZE))
        words[0::2] = self.relative_offsets
        words[1::2] = self.positions
        if _SWAP:
            words.byteswap()
        return words.tobytes()

    def append(self, relative_offset: int, position: int) -> None:
        """Add the batch that begins at ``position``; ``relative_offset`` is its last one's."""
        self.relative_offsets.append(relative_offset)
        self.positions.append(position)

    def lookup(self, relative_offset: int) -> tuple[int, int]:
        """The last entry at or below the offset, as (relative offset, position); (-1, 0) when there is none."""
        slot = bisect_right(self.relative_offsets, relative_offset) - 1
        return (self.relative_offsets[slot], self.positions[slot]) if slot >= 0 else (-1, 0)

    def boundary(self, position: int) -> tuple[int, int]:
        """The last entry whose batch begins at or below ``position``, as (relative offset, position), or (-1, 0)."""
        slot = bisect_right(self.positions, position) - 1
        return (self.relative_offsets[slot], self.positions[slot]) if slot >= 0 else (-1, 0)

    def bound(self, position: int) -> int:
        """The relative offset of the first entry whose batch begins at or above ``position``; -1 when there is none."""
        slot = bisect_left(self.positions, position)
        return self.relative_offsets[slot] if slot < len(self.positions) else -1

    def truncate_to(self, relative_offset: int) -> None:
        """Forget the entries at and above the offset."""
        self.truncate_to_count(bisect_left(self.relative_offsets, relative_offset))

    def truncate_to_count(self, count: int) -> None:
        del self.relative_offsets[count:]
        del self.positions[count:]
