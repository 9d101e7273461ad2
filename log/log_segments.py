"""The segments of a log: an ordered list that covers its offsets without gaps.

Where a segment ends the next one begins (``LogSegment.next_offset``); the last one is *active*, and its end is the log's. A
log that was never written has no segment, and no folder either.

Only the list and the files of its segments are changed here. What else a log knows of the offsets that come and go,
``PartitionLog`` changes together with the list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import overload

from ..wire.records import RecordBatch
from .log_directory import LogDirectory
from .segment import LogSegment, SegmentSlice
from .settings import LogSettings

_base_offset = attrgetter("base_offset")


class LogSegments(Sequence[LogSegment]):
    """The segments of one log, ascending by their base offsets."""

    __slots__ = ("_segments", "active", "directory", "folder", "is_closed")

    def __init__(self, folder: LogDirectory, directory: str, segments: Iterable[LogSegment] = ()) -> None:
        self.folder = folder
        self.directory = directory
        self.is_closed = False
        self._segments = list(segments)
        self.active = self._segments[-1] if self._segments else None
        """The last segment; None in a log that was never written."""

    def __repr__(self) -> str:
        return f"LogSegments({self._segments})"

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    @overload
    def __getitem__(self, place: int) -> LogSegment: ...
    @overload
    def __getitem__(self, place: slice) -> list[LogSegment]: ...
    def __getitem__(self, place: int | slice) -> LogSegment | list[LogSegment]:
        return self._segments[place]

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.file.size for segment in self._segments)

    def place_of(self, offset: int) -> int:
        """The place of the segment that holds ``offset``; the first one for an offset below all."""
        return max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0)

    def following(self, offset: int) -> LogSegment | None:
        """The first segment that ends after ``offset``; None when none does."""
        return next((segment for segment in self._segments if segment.next_offset > offset), None)

    def batch_base_offset(self, offset: int) -> int:
        """Where the batch begins that holds ``offset``, which lies in the log; ``offset`` when it lies in none.

        Raises OSError.
        """
        return min(offset, self._segments[self.place_of(offset)].batch_base_offset(offset))

    def read(self, offset: int, max_bytes: int, up_to: int, at_least_one: bool) -> SegmentSlice | None:
        """Batches of the segment that holds ``offset``, which is below ``up_to``, or the next one; see ``LogSegment.read``.

        Raises OSError.
        """
        segment = self.active
        if segment is None:
            return None
        if offset >= segment.base_offset:
            return segment.read(offset, max_bytes, None if up_to >= segment.next_offset else up_to, at_least_one)
        for segment in self._segments[self.place_of(offset) :]:
            if segment.base_offset >= up_to:
                break
            found = segment.read(offset, max_bytes, None if up_to >= segment.next_offset else up_to, at_least_one)
            # None although a batch is there: it is too large, or ``up_to`` lies in it. Without one the segment has nothing
            # from ``offset`` on, because compaction removed it, and the next segment is read.
            if found is not None or segment.position_of(offset) < segment.size:
                return found
        return None

    def batches_from(self, offset: int) -> Iterator[RecordBatch]:
        """The batches from the one that holds ``offset`` on. Raises OSError, KafkaError."""
        for segment in self._segments:
            if segment.next_offset > offset:
                for _, batch in segment.scan(segment.position_of(offset)):
                    yield batch

    # --- changes ------------------------------------------------------------------------------------------------------

    def begin(self, base_offset: int, settings: LogSettings) -> LogSegment:
        """Make an empty segment after the others, from now on the active one. Raises OSError."""
        folder = self.folder
        segment = LogSegment(folder, self.directory, base_offset, folder.clock.now_ms())
        jitter = min(settings.segment_jitter_ms, settings.segment_ms)
        segment.roll_jitter_ms = folder.randomness.randrange(jitter) if jitter else 0
        segment.create()
        self._segments.append(segment)
        self.active = segment
        return segment

    def take_first(self, count: int) -> list[LogSegment]:
        """Take the first segments out of the list, but not all of them; their files are the caller's then."""
        assert count < len(self._segments)
        taken = self._segments[:count]
        del self._segments[:count]
        return taken

    def take_last(self) -> LogSegment:
        """Take the last one of several segments out of the list; the one before it is active now."""
        taken = self._segments.pop()
        self.active = self._segments[-1]
        return taken

    def take_all(self) -> list[LogSegment]:
        """Take every segment out of the list."""
        taken, self._segments, self.active = self._segments, [], None
        return taken

    def replace(self, old: Sequence[LogSegment], new: LogSegment) -> None:
        """Put ``new`` into the place of ``old``, inactive segments in a row whose offsets it covers."""
        first = self._segments.index(old[0])
        end = first + len(old)
        assert self._segments[first:end] == old
        assert end < len(self._segments)
        assert (new.base_offset, new.next_offset) == (old[0].base_offset, old[-1].next_offset)
        self._segments[first:end] = [new]

    def rename_dir(self, directory: str) -> None:
        """Take note of the folder's new name; what is open stays open."""
        self.directory = directory
        for segment in self._segments:
            segment.file.directory = directory

    def drop_indexes(self) -> None:
        """Forget the indexes that are in their files, to be read again when needed."""
        for segment in self._segments:
            segment.drop_indexes()

    def close(self) -> None:
        """Close every file; nothing is written."""
        self.is_closed = True
        for segment in self._segments:
            segment.file.close()
