"""One segment of a log: a file of record batches and its indexes, named by the first offset it may hold.

Files: ``<base offset, 20 digits>.log``, ``.index``, ``.timeindex``, and ``.txnindex`` once a transaction was aborted, which
is written at once and not, like the others, with the end of the segment. Batches lie end to end. Nothing before ``size``
ever changes but by ``truncate_to``; bytes in the file behind ``size`` are the rest of a write that failed.

The segment opens its file when first used, and its folder may close it again when too many are open. Its indexes are
read when first needed, too. A ``SegmentSlice`` pins it: a pinned segment keeps its descriptor, even when it is deleted
meanwhile, because a descriptor closed and used anew would send another file's bytes.

``file_suffix`` follows all their names while a cleaning makes the segment, and is empty otherwise.

Invariants: entries of the offset index are (last offset of a batch, its position); ``max_timestamp`` is the largest
timestamp of the segment, -1 for none, and ``max_timestamp_offset`` the last offset of the batch that brought it first;
both are valid once the indexes have been in memory (``_timestamp_is_known``), and while they are not, nothing changes.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator

from ..base.errors import ErrorCode, KafkaError
from ..wire.batch_layout import BATCH_HEADER_SIZE, max_timestamp_of
from ..wire.records import RecordBatch
from .disk import Bytes, OpenFile, join
from .files import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, file_name
from .log_folder import LogFolder
from .offset_index import MAX_RELATIVE_OFFSET, CorruptIndexError, OffsetIndex
from .scan import find_batch, read_span, scan_batches
from .settings import LogSettings
from .time_index import TimeIndex
from .transaction_index import ENTRY_SIZE, AbortedTransaction, decode_transaction_index, encode_aborted

logger = logging.getLogger(__name__)

_REMEMBERED_POSITIONS = 16
_REBUILT_INDEX_INTERVAL = 4096


class SegmentSlice:
    """A ``base.network.FileSlice``: whole batches of one segment."""

    __slots__ = ("_file", "_segment", "nbytes", "position")

    def __init__(self, segment: LogSegment, file: OpenFile, position: int, nbytes: int) -> None:
        self._segment = segment
        self._file = file
        self.position = position
        self.nbytes = nbytes
        segment.pins += 1

    def fileno(self) -> int:
        return self._file.fileno()

    def read(self) -> bytes:
        try:
            data = self._file.read(self.nbytes, self.position)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot read {self._segment.path}: {error}") from error
        if len(data) != self.nbytes:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self._segment.path} has {len(data)} of {self.nbytes} bytes at {self.position}",
            )
        return data

    def offset_bound(self) -> int:
        """An offset above every one in the slice, and at most an index entry's distance too high. Raises OSError."""
        return self._segment.offset_bound(self.position + self.nbytes)

    def release(self) -> None:
        self._segment.unpin()


class LogSegment:
    """A segment. The last one of a log is *active*: it is appended to; the others never grow."""

    __slots__ = (
        "_aborted",
        "_remembered",
        "_timestamp_is_known",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "directory",
        "file_suffix",
        "first_timestamp",
        "folder",
        "indexes_are_dirty",
        "is_closed",
        "max_timestamp",
        "max_timestamp_offset",
        "next_offset",
        "offset_index",
        "open_file",
        "pins",
        "roll_jitter_ms",
        "size",
        "time_index",
        "was_used",
    )

    def __init__(self, folder: LogFolder, directory: str, base_offset: int, created_ms: int) -> None:
        """An empty segment in ``directory``; no file is touched."""
        self.folder = folder
        self.directory = directory
        self.base_offset = base_offset
        self.file_suffix = ""
        self.next_offset = base_offset
        self.size = 0
        self.created_ms = created_ms
        self.roll_jitter_ms = 0
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self._timestamp_is_known = False
        self.first_timestamp: int | None = None
        self.bytes_since_index_entry = 0
        self.offset_index: OffsetIndex | None = None
        self.time_index: TimeIndex | None = None
        self.indexes_are_dirty = False
        self.open_file: OpenFile | None = None
        self.pins = 0
        self.was_used = False
        self.is_closed = False
        self._remembered: dict[int, int] | None = None
        self._aborted: list[AbortedTransaction] | None = None

    def __repr__(self) -> str:
        return f"LogSegment({self.path}, size={self.size}, next_offset={self.next_offset})"

    @property
    def path(self) -> str:
        return self.path_of(LOG_SUFFIX)

    def path_of(self, suffix: str) -> str:
        return join(self.directory, file_name(self.base_offset, suffix) + self.file_suffix)

    # --- the file -----------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the files, empty. Raises OSError."""
        disk = self.folder.disk
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            file = disk.open(self.path_of(suffix), create=True)
            try:
                file.truncate(0)
            finally:
                file.close()
        self.clear_indexes()
        self.clear_aborted()
        self.open_file = disk.open(self.path, create=True)
        self.folder.opened(self)
        self.open_file.truncate(0)

    def file(self) -> OpenFile:
        """The open file of batches. Raises OSError."""
        self.was_used = True
        if self.open_file is None:
            self.open_file = self.folder.disk.open(self.path)
            self.folder.opened(self)
        return self.open_file

    def close_file(self) -> None:
        """Let go of the descriptor; the folder has forgotten us."""
        assert self.pins == 0
        if self.open_file is not None:
            self.open_file.close()
            self.open_file = None
        self._remembered = None

    def unpin(self) -> None:
        """Take back one of ``pins``, which keep the descriptor open."""
        self.pins -= 1
        if self.pins == 0 and self.is_closed:
            self._close_now()

    def close(self) -> None:
        """Close the file, now or with the last pin."""
        self.is_closed = True
        if self.pins == 0:
            self._close_now()

    def _close_now(self) -> None:
        if self.open_file is not None:
            self.folder.closed(self)
            self.close_file()

    # --- indexes ------------------------------------------------------------------------------------------------------

    def offsets(self) -> OffsetIndex:
        """The offset index. Raises OSError."""
        if self.offset_index is None:
            self.load_indexes()
        assert self.offset_index is not None
        return self.offset_index

    def times(self) -> TimeIndex:
        """The time index. Raises OSError."""
        if self.time_index is None:
            self.load_indexes()
        assert self.time_index is not None
        return self.time_index

    def load_indexes(self) -> None:
        """Read the indexes from their files or, when these are damaged, from the batches. Raises OSError."""
        disk = self.folder.disk
        try:
            self.offset_index = OffsetIndex.from_bytes(disk.read_file(self.path_of(INDEX_SUFFIX)), self.size)
            self.time_index = times = TimeIndex.from_bytes(disk.read_file(self.path_of(TIME_INDEX_SUFFIX)))
            if not times.timestamps and self.size and self.first_batch_timestamp() >= 0:
                raise CorruptIndexError("there is no time in it, but in the first batch")
        except (CorruptIndexError, FileNotFoundError) as error:
            self._rebuild_indexes(error)
            return
        if times.timestamps:
            self.max_timestamp = times.timestamps[-1]
            self.max_timestamp_offset = self.base_offset + times.relative_offsets[-1]
        self._timestamp_is_known = True

    def drop_indexes(self) -> None:
        """Forget indexes that are in their files, to be read again when needed."""
        if not self.indexes_are_dirty:
            self.offset_index = None
            self.time_index = None
            self._aborted = self._aborted and None  # that there are none is worth remembering

    def _rebuild_indexes(self, why: Exception) -> None:
        logger.warning("%s: rebuilding its indexes: %s", self.path, why)
        self.clear_indexes()
        try:
            for position, batch in scan_batches(self.file(), 0, self.size):
                self.index_batch(batch.last_offset, batch.max_timestamp, position, batch.size, _REBUILT_INDEX_INTERVAL)
        except KafkaError as error:
            raise OSError(f"{self.path} is damaged: {error}") from error
        self.write_indexes()

    def clear_indexes(self) -> None:
        """Start over with empty indexes, before ``index_batch`` sees every batch again."""
        self.offset_index = OffsetIndex()
        self.time_index = TimeIndex()
        self.bytes_since_index_entry = 0
        self.max_timestamp = -1
        self.max_timestamp_offset = self.base_offset
        self._timestamp_is_known = True
        self.first_timestamp = None
        self._remembered = None

    def index_batch(self, last_offset: int, max_timestamp: int, position: int, nbytes: int, interval: int) -> None:
        """Take note of the batch at ``position``: the largest timestamp, and index entries every ``interval`` bytes."""
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index_entry > interval:
            self.offsets().append(last_offset - self.base_offset, position)
            self.times().maybe_append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
            self.bytes_since_index_entry = 0
        self.bytes_since_index_entry += nbytes
        self.indexes_are_dirty = True

    def write_indexes(self, *, sync: bool = False) -> None:
        """Write both index files in full, the time index with its closing entry. Raises OSError."""
        self.times().maybe_append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
        for suffix, data in (
            (INDEX_SUFFIX, self.offsets().to_bytes()),
            (TIME_INDEX_SUFFIX, self.times().to_bytes()),
        ):
            file = self.folder.disk.open(self.path_of(suffix), create=True)
            try:
                file.write(data, 0)
                file.truncate(len(data))
                if sync:
                    file.sync()
            finally:
                file.close()
        self.indexes_are_dirty = False

    def has_room(self, last_offset: int, max_index_bytes: int) -> bool:
        """Whether the indexes can take another entry, and the offset."""
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return False
        return len(self.offsets()) < max_index_bytes // 8 and len(self.times()) < max_index_bytes // 12 - 1

    def largest_timestamp(self) -> int:
        """The largest timestamp of the records; -1 when they have none. Raises OSError."""
        if not self._timestamp_is_known:
            self.load_indexes()
        return self.max_timestamp

    def should_roll(self, settings: LogSettings, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch of ``size`` bytes, with these last offset and largest timestamp, belongs into a new segment."""
        if self.size + size > settings.segment_bytes:
            return self.size > 0
        if not self.size:
            return last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        # By the time of the records since the first batch, or by the clock where they have none.
        first_timestamp = self.first_batch_timestamp()
        waited = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - self.created_ms
        return waited > settings.max_segment_ms - self.roll_jitter_ms or not self.has_room(
            last_offset, settings.segment_index_bytes
        )

    def first_batch_timestamp(self) -> int:
        """The largest timestamp of the first batch, which must be there. Raises OSError."""
        if self.first_timestamp is None:
            data = self.file().read(BATCH_HEADER_SIZE, 0)
            if len(data) < BATCH_HEADER_SIZE:
                raise OSError(errno.EIO, "the file ends inside the first batch", self.path)
            self.first_timestamp = max_timestamp_of(data)
        return self.first_timestamp

    # --- aborted transactions -----------------------------------------------------------------------------------------

    def aborted(self) -> list[AbortedTransaction]:
        """The transactions whose abort marker is here. Raises OSError."""
        if self._aborted is None:
            try:
                data = self.folder.disk.read_file(self.path_of(TRANSACTION_INDEX_SUFFIX))
                self._aborted = decode_transaction_index(data, self.base_offset)
            except FileNotFoundError:
                self._aborted = []
            except CorruptIndexError as error:
                raise OSError(errno.EIO, str(error), self.path_of(TRANSACTION_INDEX_SUFFIX)) from error
        return self._aborted

    def add_aborted(self, entry: AbortedTransaction) -> None:
        """Write an entry. Raises OSError."""
        entries = self.aborted()
        file = self.folder.disk.open(self.path_of(TRANSACTION_INDEX_SUFFIX), create=True)
        try:
            file.write(encode_aborted(entry), len(entries) * ENTRY_SIZE)
        finally:
            file.close()
        entries.append(entry)

    def sync_aborted(self) -> None:
        """Return once the entries are on stable storage. Raises OSError."""
        if not self.aborted():
            return
        disk = self.folder.disk
        file = disk.open(self.path_of(TRANSACTION_INDEX_SUFFIX))
        try:
            file.sync()
        finally:
            file.close()
        disk.sync_dir(self.directory)

    def clear_aborted(self) -> None:
        """Start over without entries. Raises OSError."""
        self.folder.disk.remove(self.path_of(TRANSACTION_INDEX_SUFFIX))
        self._aborted = []

    def _truncate_aborted(self, offset: int) -> None:
        entries = self.aborted()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            file = self.folder.disk.open(self.path_of(TRANSACTION_INDEX_SUFFIX))
            try:
                file.truncate(len(kept) * ENTRY_SIZE)
            finally:
                file.close()
            self._aborted = kept

    def offset_bound(self, position: int) -> int:
        """An offset above every one of the batches before ``position``, found by index alone. Raises OSError."""
        bound = self.offsets().bound(position)
        return self.next_offset if bound < 0 else self.base_offset + bound

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(self, data: Bytes, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """Write one batch. After an OSError nothing has changed but bytes behind ``size``."""
        if self.offset_index is None:
            self.load_indexes()
        position = self.size
        nbytes = len(data)
        (self.open_file or self.file()).write(data, position)
        self.was_used = True
        self.index_batch(last_offset, max_timestamp, position, nbytes, index_interval)
        self.size = position + nbytes
        self.next_offset = last_offset + 1

    def cut_failed_write(self) -> None:
        """Take back what a failed ``append`` left behind ``size``. Raises OSError."""
        self.file().truncate(self.size)

    def batch_base_offset(self, offset: int) -> int:
        """Where the batch begins that holds ``offset``, or the first one after it; ``next_offset`` when there is none.

        Raises OSError.
        """
        position = self.position_of(offset)
        return read_span(self.file(), position)[0] if position < self.size else self.next_offset

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that hold ``offset`` and all after it. Raises OSError."""
        position = self.position_of(offset)
        relative = offset - self.base_offset
        offsets, times = self.offsets(), self.times()
        self._truncate_aborted(offset)
        self.file().truncate(position)
        offsets.truncate_to(relative)
        times.truncate_to(relative)
        self._remembered = None
        self.indexes_are_dirty = True
        self.size = position
        self.next_offset = offset
        self.bytes_since_index_entry = 0
        if position == 0:
            self.first_timestamp = None
        self.max_timestamp = times.timestamps[-1] if times.timestamps else -1
        self.max_timestamp_offset = self.base_offset + (times.relative_offsets[-1] if times.timestamps else 0)
        start = offsets.lookup(self.max_timestamp_offset - self.base_offset)[1]
        for _, batch in self.scan(start):
            if batch.max_timestamp > self.max_timestamp:
                self.max_timestamp = batch.max_timestamp
                self.max_timestamp_offset = batch.last_offset

    # --- reading ------------------------------------------------------------------------------------------------------

    def position_of(self, offset: int) -> int:
        """Where the batch begins that holds ``offset``, or the first one after it; ``size`` when there is none."""
        if offset >= self.next_offset:
            return self.size
        if offset <= self.base_offset:
            return 0
        remembered = self._remembered
        if remembered is not None and (position := remembered.get(offset)) is not None:
            return position
        try:
            return self._find(offset)
        except CorruptIndexError as error:
            self._rebuild_indexes(error)
            return self._find(offset)

    def _find(self, offset: int) -> int:
        relative_offset, start = self.offsets().lookup(offset - self.base_offset)
        file = self.file()
        if start and read_span(file, start)[1] != self.base_offset + relative_offset:
            raise CorruptIndexError(f"no batch at {start} ends with offset {self.base_offset + relative_offset}")
        return find_batch(file, start, self.size, offset)

    def read(self, offset: int, max_bytes: int, up_to: int | None, at_least_one: bool) -> SegmentSlice | None:
        """Batches from the one that holds ``offset`` on, ending before the offset ``up_to``. Raises OSError.

        None when there is none, or the first one is larger than ``max_bytes`` and ``at_least_one`` is False.
        """
        start = self.position_of(offset)
        end = self.size if up_to is None else self.position_of(up_to)
        if end <= start:
            return None
        if end - start > max_bytes:
            end = self._cut(start, max_bytes, at_least_one)
            if end == start:
                return None
        if end == self.size:
            self._remember(self.next_offset, end)
        return SegmentSlice(self, self.open_file or self.file(), start, end - start)

    def _cut(self, start: int, max_bytes: int, at_least_one: bool) -> int:
        """The end of the batches from ``start`` on that fit into ``max_bytes``, found by index where that is enough."""
        file = self.file()
        relative_offset, end = self.offsets().boundary(start + max_bytes)
        if end > start:
            next_offset, last_offset, _ = read_span(file, end)
            if last_offset == self.base_offset + relative_offset:
                self._remember(next_offset, end)
                return end
        end = start
        while end < self.size:
            next_offset, _, next_end = read_span(file, end)
            if next_end - start > max_bytes and not (at_least_one and end == start):
                self._remember(next_offset, end)
                break
            end = next_end
        return end

    def _remember(self, offset: int, position: int) -> None:
        """Keep where a sequential reader will go on, so that it needs no search."""
        remembered = self._remembered
        if remembered is None:
            remembered = self._remembered = {}
        elif len(remembered) >= _REMEMBERED_POSITIONS and offset not in remembered:
            del remembered[next(iter(remembered))]
        remembered[offset] = position

    def scan(self, start: int) -> Iterator[tuple[int, RecordBatch]]:
        """``scan_batches`` from the position ``start`` to the end."""
        return scan_batches(self.file(), start, self.size)
