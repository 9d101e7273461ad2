"""The time index of a segment: the largest timestamp so far, and the batch that has it.

File (``<base offset>.timeindex``): entries of 12 bytes, big-endian, both columns ascending::

    0 timestamp int64         largest timestamp of the segment up to here, ms
    8 relative_offset int32   last offset of the batch with that timestamp, minus the segment's base offset

An entry is added together with one of the offset index, when the largest timestamp has grown, and once more when the
segment becomes inactive or the log closes; so the last entry of a complete file has the segment's largest timestamp.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right

from .disk import Bytes
from .offset_index import MAX_RELATIVE_OFFSET, CorruptIndexError, without_zeros

ENTRY_SIZE = 12
_SWAP = sys.byteorder == "little"


class TimeIndex:
    """The entries of one segment, as ``timestamps`` and ``relative_offsets``."""

    __slots__ = ("relative_offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.relative_offsets = array("I")

    def __len__(self) -> int:
        return len(self.timestamps)

    @classmethod
    def from_bytes(cls, data: Bytes) -> TimeIndex:
        """Read a file. Zeros at its end (Kafka's preallocation) are left out. Raises CorruptIndexError."""
        if len(data) % ENTRY_SIZE:
            raise CorruptIndexError(f"{len(data)} bytes are not a multiple of {ENTRY_SIZE}")
        words = array("I", without_zeros(data, ENTRY_SIZE) or bytes(data[:ENTRY_SIZE]))
        pairs = array("I", bytes(len(words) // 3 * 8))
        pairs[0::2] = words[0::3]
        pairs[1::2] = words[1::3]
        index = cls()
        index.timestamps = array("q", pairs.tobytes())
        index.relative_offsets = words[2::3]
        if _SWAP:
            index.timestamps.byteswap()
            index.relative_offsets.byteswap()
        count = len(index)
        while count > 1 and not index.timestamps[count - 1] and not index.relative_offsets[count - 1]:
            count -= 1
        index.truncate_to_count(count)
        if any(map(int.__ge__, index.timestamps, index.timestamps[1:])):
            raise CorruptIndexError("its timestamps do not ascend")
        if any(map(int.__gt__, index.relative_offsets, index.relative_offsets[1:])):
            raise CorruptIndexError("its offsets do not ascend")
        if count and index.relative_offsets[-1] > MAX_RELATIVE_OFFSET:
            raise CorruptIndexError("a relative offset is negative")
        return index

    def to_bytes(self) -> bytes:
        """The content of the file."""
        timestamps, relative_offsets = self.timestamps[:], self.relative_offsets[:]
        if _SWAP:
            timestamps.byteswap()
            relative_offsets.byteswap()
        pairs = array("I", timestamps.tobytes())
        words = array("I", bytes(len(self) * ENTRY_SIZE))
        words[0::3] = pairs[0::2]
        words[1::3] = pairs[1::2]
        words[2::3] = relative_offsets
        return words.tobytes()

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry unless the timestamp is no larger than the last one's."""
        if timestamp > (self.timestamps[-1] if self.timestamps else -1):
            self.timestamps.append(timestamp)
            self.relative_offsets.append(relative_offset)

    def lookup(self, timestamp: int) -> int:
        """The relative offset of the last entry at or below the timestamp; 0 when there is none.

        Batches before the one with that offset hold nothing later than ``timestamp``.
        """
        slot = bisect_right(self.timestamps, timestamp) - 1
        return self.relative_offsets[slot] if slot >= 0 else 0

    def truncate_to(self, relative_offset: int) -> None:
        """Forget the entries at and above the offset."""
        self.truncate_to_count(bisect_left(self.relative_offsets, relative_offset))

    def truncate_to_count(self, count: int) -> None:
        del self.timestamps[count:]
        del self.relative_offsets[count:]
