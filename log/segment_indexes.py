"""The offset index and the time index of a segment, and its largest timestamp.

They are read from their files when first needed; damaged ones are rebuilt from the batches. Those of an active segment
are kept in memory and written when the segment is left or the log stops. What needs them raises OSError, and
KafkaError(CORRUPT_MESSAGE) when they are damaged and so are the batches.

Invariants: entries of the offset index are (last offset of a batch, its position). ``max_timestamp`` and its offset are valid
once the indexes have been in memory (``_timestamp_is_known``), and while they are not, nothing changes.
"""

from __future__ import annotations

import errno
import logging

from ..base.errors import ErrorCode, KafkaError
from ..wire.batch_layout import BATCH_HEADER_SIZE, max_timestamp_of
from .files import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from .offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from .offset_index import MAX_RELATIVE_OFFSET, CorruptIndexError, OffsetIndex
from .segment_file import SegmentFile
from .time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from .time_index import TimeIndex

logger = logging.getLogger(__name__)

_REBUILT_INDEX_INTERVAL = 4096


class SegmentIndexes:
    """The two indexes of one segment, in memory or in their files."""

    __slots__ = (
        "_bytes_since_entry",
        "_damage",
        "_file",
        "_first_timestamp",
        "_timestamp_is_known",
        "is_dirty",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "times",
    )

    def __init__(self, file: SegmentFile) -> None:
        self._file = file
        self.offsets: OffsetIndex | None = None
        """None while it is not in memory."""
        self.times: TimeIndex | None = None
        """None while it is not in memory."""
        self.is_dirty = False
        """Whether they differ from their files."""
        self.max_timestamp = -1
        """The largest timestamp of the segment; -1 for none."""
        self.max_timestamp_offset = file.base_offset
        """The last offset of the batch that brought it first."""
        self._timestamp_is_known = False
        self._first_timestamp: int | None = None
        self._bytes_since_entry = 0
        self._damage: str | None = None

    # --- files --------------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the files, empty. Raises OSError."""
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            file = self._file.disk.open(self._file.path_of(suffix), create=True)
            try:
                file.truncate(0)
            finally:
                file.close()
        self.clear()

    def loaded(self) -> tuple[OffsetIndex, TimeIndex]:
        """Both, in memory. Raises OSError."""
        if self.offsets is None or self.times is None:
            return self.load()
        return self.offsets, self.times

    def load(self) -> tuple[OffsetIndex, TimeIndex]:
        """Read the indexes from their files or, when these are damaged, from the batches. Raises OSError."""
        file = self._file
        try:
            offsets = OffsetIndex.from_bytes(file.disk.read_file(file.path_of(INDEX_SUFFIX)), file.size)
            times = TimeIndex.from_bytes(file.disk.read_file(file.path_of(TIME_INDEX_SUFFIX)))
            if not times.timestamps and file.size and self.first_batch_timestamp() >= 0:
                raise CorruptIndexError("it has no timestamp, but the first batch has one")
        except (CorruptIndexError, FileNotFoundError) as error:
            return self.rebuild(error)
        self.offsets, self.times = offsets, times
        if times.timestamps:
            self.max_timestamp = times.timestamps[-1]
            self.max_timestamp_offset = file.base_offset + times.relative_offsets[-1]
        self._timestamp_is_known = True
        return offsets, times

    def drop(self) -> None:
        """Forget indexes that are in their files, to be read again when needed."""
        if not self.is_dirty:
            self.offsets = None
            self.times = None

    def rebuild(self, why: Exception) -> tuple[OffsetIndex, TimeIndex]:
        """Rebuild the indexes from the batches; when one of these is damaged, all stays as it was.

        That is remembered, for a client may ask for such a batch again and again.
        """
        file = self._file
        if self._damage is None:
            logger.warning("%s: rebuilding its indexes: %s", file.path, why)
            rebuilt = SegmentIndexes(file)
            rebuilt.clear()
            try:
                for position, batch in file.scan(0):
                    rebuilt.add(batch.last_offset, batch.max_timestamp, position, batch.size, _REBUILT_INDEX_INTERVAL)
            except KafkaError as error:
                self._damage = f"{file.path} is damaged: {error.message}"
                logger.error("%s", self._damage)
            else:
                self._become(rebuilt)
                self.write()
                return self.loaded()
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, self._damage)

    def _become(self, other: SegmentIndexes) -> None:
        self.offsets, self.times = other.offsets, other.times
        self.max_timestamp, self.max_timestamp_offset = other.max_timestamp, other.max_timestamp_offset
        self._timestamp_is_known, self._first_timestamp = True, other._first_timestamp
        self._bytes_since_entry = other._bytes_since_entry

    def write(self, *, sync: bool = False) -> None:
        """Write both index files in full, the time index with its closing entry. Raises OSError."""
        offsets, times = self.loaded()
        times.maybe_append(self.max_timestamp, self.max_timestamp_offset - self._file.base_offset)
        for suffix, data in ((INDEX_SUFFIX, offsets.to_bytes()), (TIME_INDEX_SUFFIX, times.to_bytes())):
            file = self._file.disk.open(self._file.path_of(suffix), create=True)
            try:
                file.write(data, 0)
                file.truncate(len(data))
                if sync:
                    file.sync()
            finally:
                file.close()
        self.is_dirty = False

    # --- changes ------------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Start over with empty indexes, before ``add`` sees every batch again."""
        self.offsets = OffsetIndex()
        self.times = TimeIndex()
        self.max_timestamp = -1
        self.max_timestamp_offset = self._file.base_offset
        self._timestamp_is_known = True
        self._first_timestamp = None
        self._bytes_since_entry = 0
        self._damage = None
        self._file.positions = None

    def add(self, last_offset: int, max_timestamp: int, position: int, nbytes: int, interval: int) -> None:
        """Take note of the batch at ``position``: the largest timestamp, and index entries every ``interval`` bytes."""
        if position == 0:
            self._first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_entry > interval:
            offsets, times = self.loaded()
            base_offset = self._file.base_offset
            offsets.append(last_offset - base_offset, position)
            times.maybe_append(self.max_timestamp, self.max_timestamp_offset - base_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += nbytes
        self.is_dirty = True

    def truncate_to(self, offset: int) -> None:
        """Forget the entries at and above ``offset``; the file is cut already, and its size known. Raises OSError."""
        file = self._file
        offsets, times = self.loaded()
        offsets.truncate_to(offset - file.base_offset)
        times.truncate_to(offset - file.base_offset)
        self.is_dirty = True
        self._bytes_since_entry = 0
        self._damage = None
        if file.size == 0:
            self._first_timestamp = None
        self.max_timestamp = times.timestamps[-1] if times.timestamps else -1
        self.max_timestamp_offset = file.base_offset + (times.relative_offsets[-1] if times.timestamps else 0)
        start = offsets.lookup(self.max_timestamp_offset - file.base_offset)[1]
        for _, batch in file.scan(start):
            if batch.max_timestamp > self.max_timestamp:
                self.max_timestamp = batch.max_timestamp
                self.max_timestamp_offset = batch.last_offset

    # --- questions ----------------------------------------------------------------------------------------------------

    def has_room(self, last_offset: int, max_index_bytes: int) -> bool:
        """Whether the indexes can take another entry, and the offset. Raises OSError."""
        if last_offset - self._file.base_offset > MAX_RELATIVE_OFFSET:
            return False
        offsets, times = self.offsets, self.times
        if offsets is None or times is None:
            offsets, times = self.load()
        return (
            len(offsets.positions) < max_index_bytes // OFFSET_ENTRY_SIZE
            and len(times.timestamps) < max_index_bytes // TIME_ENTRY_SIZE - 1
        )

    def largest_timestamp(self) -> int:
        """The largest timestamp of the records; -1 when they have none. Raises OSError."""
        if not self._timestamp_is_known:
            self.load()
        return self.max_timestamp

    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch, which must be there. Raises OSError."""
        if self._first_timestamp is None:
            data = self._file.open().read(BATCH_HEADER_SIZE, 0)
            if len(data) < BATCH_HEADER_SIZE:
                raise OSError(errno.EIO, "the file ends inside the first batch", self._file.path)
            self._first_timestamp = max_timestamp_of(data)
        return self._first_timestamp
