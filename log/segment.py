"""One segment of a log: a file of record batches and its indexes, named by the first offset it may hold.

Files: ``<base offset, 20 digits>.log`` (``segment_file``), ``.index`` and ``.timeindex`` (``segment_indexes``), and
``.txnindex`` once a transaction was aborted (``transaction_index``).

A read gives a ``SegmentSlice``: not bytes, but where they are; it pins the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from ..base.errors import ErrorCode, KafkaError
from ..wire.records import RecordBatch
from .disk import Bytes, OpenFile
from .files import DELETED_SUFFIX, SEGMENT_SUFFIXES
from .log_directory import LogDirectory
from .offset_index import MAX_RELATIVE_OFFSET, CorruptIndexError
from .scan import BatchSpan, find_batch, read_batch_spans, read_span
from .segment_file import SegmentFile
from .segment_indexes import SegmentIndexes
from .settings import LogSettings
from .transaction_index import TransactionIndex

_REMEMBERED_POSITIONS = 16


class SegmentSlice:
    """A ``base.network.FileSlice``: whole batches of one segment."""

    __slots__ = ("_file", "_segment", "nbytes", "position")

    def __init__(self, segment: LogSegment, file: OpenFile, position: int, nbytes: int) -> None:
        self._segment = segment
        self._file = file
        self.position = position
        self.nbytes = nbytes
        segment.file.pins += 1

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

    def batch_spans(self, up_to: int, most: int) -> list[BatchSpan]:
        """The headers of its batches, ``most`` at most, until one ends at or above offset ``up_to`` - 1. Raises KafkaError."""
        try:
            return read_batch_spans(self._file, self.position, self.nbytes, up_to, most)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot read {self._segment.path}: {error}") from error

    def narrow(self, begin: int, end: int) -> None:
        """Keep only its bytes between these."""
        self.position, self.nbytes = self.position + begin, end - begin

    def release(self) -> None:
        self._segment.file.unpin()


class LogSegment:
    """A segment. The last one of a log is *active*: it is appended to; the others never grow."""

    __slots__ = ("aborted", "base_offset", "created_ms", "file", "indexes", "next_offset", "roll_jitter_ms")

    def __init__(self, folder: LogDirectory, directory: str, base_offset: int, created_ms: int) -> None:
        """An empty segment in ``directory``; no file is touched."""
        self.base_offset = base_offset
        self.next_offset = base_offset
        """Where the next segment begins or, in the active one, the offset of the next record."""
        self.created_ms = created_ms
        """By the clock; only that of an active segment counts."""
        self.roll_jitter_ms = 0
        """So much earlier than ``segment.ms`` it rolls, lest all logs of a topic roll at once."""
        self.file = SegmentFile(folder, directory, base_offset)
        self.indexes = SegmentIndexes(self.file)
        self.aborted = TransactionIndex(self.file)

    def __repr__(self) -> str:
        return f"LogSegment({self.path}, size={self.size}, next_offset={self.next_offset})"

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def size(self) -> int:
        """Bytes of batches."""
        return self.file.size

    def create(self) -> None:
        """Make the files, empty. Raises OSError."""
        self.indexes.create()
        self.aborted.clear()
        self.file.create()

    def newest_ms(self) -> int:
        """The largest timestamp of the records or, when none has one, the time of the last write to the file; ms.

        Kafka's ``LogSegment.largestTimestamp``. Raises OSError.
        """
        timestamp = self.indexes.largest_timestamp()
        return timestamp if timestamp >= 0 else self.file.disk.modified_ms(self.path)

    # --- writing ------------------------------------------------------------------------------------------------------

    def should_roll(self, settings: LogSettings, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch of ``size`` bytes, with this last offset and largest timestamp, belongs in a new segment."""
        own_size = self.file.size
        if own_size + size > settings.segment_bytes:
            return own_size > 0
        if not own_size:
            return last_offset - self.base_offset > MAX_RELATIVE_OFFSET
        # By the time of the records since the first batch, or by the clock where they have none.
        first_timestamp = self.indexes.first_batch_timestamp()
        waited = max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - self.created_ms
        return waited > settings.max_segment_ms - self.roll_jitter_ms or not self.indexes.has_room(
            last_offset, settings.segment_index_bytes
        )

    def append(self, data: Bytes, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """Write one batch. After an OSError nothing has changed but bytes behind ``size``."""
        file, indexes = self.file, self.indexes
        if indexes.offsets is None:
            indexes.load()
        position = file.size
        nbytes = len(data)
        (file.open_file or file.open()).write(data, position)
        file.was_used = True
        indexes.add(last_offset, max_timestamp, position, nbytes, index_interval)
        file.size = position + nbytes
        self.next_offset = last_offset + 1

    def append_all(self, data: Bytes, batches: Iterable[RecordBatch], index_interval: int) -> None:
        """``append`` for several batches, end to end in ``data``, with one write."""
        file, indexes = self.file, self.indexes
        indexes.loaded()
        position = file.size
        file.open().write(data, position)
        for batch in batches:
            indexes.add(batch.last_offset, batch.max_timestamp, position, batch.size, index_interval)
            position += batch.size
            self.next_offset = batch.next_offset
        file.size = position

    def cut_failed_write(self) -> None:
        """Take back what a failed ``append`` left behind ``size``. Raises OSError."""
        self.file.open().truncate(self.file.size)

    def seal(self, *, sync: bool) -> None:
        """Write what was only in memory, because another segment is about to follow. Raises OSError."""
        self.indexes.write(sync=sync)
        self.aborted.write()
        if sync:
            self.file.open().sync()  # it may have been truncated after it was flushed
            if self.aborted.entries():
                self.aborted.sync()
                self.file.disk.sync_dir(self.file.directory)

    def drop_indexes(self) -> None:
        """Forget indexes that are in their files, to be read again when needed."""
        if not self.indexes.is_dirty:
            self.indexes.drop()
            self.aborted.drop()

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that hold ``offset`` and all after it. Raises OSError."""
        position = self.position_of(offset)
        self.indexes.loaded()  # read after the cut they would name positions behind the end, and count as damaged
        self.aborted.truncate_to(offset)
        self.file.open().truncate(position)
        self.file.positions = None
        self.file.size = position
        self.next_offset = offset
        self.indexes.truncate_to(offset)

    def rename_to_deleted(self, delay_ms: int) -> None:
        """Rename the files to ``*.deleted``, and have them removed after ``delay_ms``. Raises OSError."""
        folder = self.file.folder
        for suffix in SEGMENT_SUFFIXES:
            path = self.file.path_of(suffix)
            with contextlib.suppress(FileNotFoundError):
                folder.disk.rename(path, path + DELETED_SUFFIX)
                folder.delete_later(path + DELETED_SUFFIX, delay_ms)

    # --- reading ------------------------------------------------------------------------------------------------------

    def batch_base_offset(self, offset: int) -> int:
        """Where the batch begins that holds ``offset``, or the first one after it; ``next_offset`` when there is none.

        Raises OSError, and KafkaError(CORRUPT_MESSAGE) for a damaged batch on the way.
        """
        position = self.position_of(offset)
        size = self.file.size
        return read_span(self.file.open(), position, size)[0] if position < size else self.next_offset

    def offset_bound(self, position: int) -> int:
        """An offset above every one of the batches before ``position``, found by index alone. Raises OSError."""
        bound = self.indexes.loaded()[0].bound(position)
        return self.next_offset if bound < 0 else self.base_offset + bound

    def position_of(self, offset: int) -> int:
        """Where the batch begins that holds ``offset``, or the first one after it; ``size`` when there is none.

        Raises OSError, and KafkaError(CORRUPT_MESSAGE) for a damaged batch on the way.
        """
        file = self.file
        if offset >= self.next_offset:
            return file.size
        if offset <= self.base_offset:
            return 0
        remembered = file.positions
        if remembered is not None and (position := remembered.get(offset)) is not None:
            return position
        try:
            return self._find(offset)
        except CorruptIndexError as error:
            self.indexes.rebuild(error)
            return self._find(offset)

    def _find(self, offset: int) -> int:
        relative_offset, start = self.indexes.loaded()[0].lookup(offset - self.base_offset)
        file = self.file.open()
        if start:
            try:
                last_offset = read_span(file, start, self.file.size)[1]
            except KafkaError as error:
                raise CorruptIndexError(error.message) from error  # unless it is the batch that is damaged
            if last_offset != self.base_offset + relative_offset:
                raise CorruptIndexError(f"no batch at {start} ends with offset {self.base_offset + relative_offset}")
        return find_batch(file, start, self.file.size, offset)

    def read(self, offset: int, max_bytes: int, up_to: int | None, at_least_one: bool) -> SegmentSlice | None:
        """Batches from the one that holds ``offset`` on, ending before the offset ``up_to``.

        Raises OSError, and KafkaError(CORRUPT_MESSAGE) for a damaged batch on the way to the first one or in its place.
        None when there is none, or the first one is larger than ``max_bytes`` and ``at_least_one`` is False.
        """
        start = self.position_of(offset)
        file = self.file
        end = file.size if up_to is None else self.position_of(up_to)
        if end <= start:
            return None
        if end - start > max_bytes:
            end = self._cut(start, max_bytes, at_least_one)
            if end == start:
                return None
        if end == file.size:
            self._remember(self.next_offset, end)
        return SegmentSlice(self, file.open_file or file.open(), start, end - start)

    def _cut(self, start: int, max_bytes: int, at_least_one: bool) -> int:
        """The end of the batches from ``start`` on that fit into ``max_bytes``, found by index where that is enough.

        A damaged batch ends them too, except for the first.
        """
        file, size = self.file.open(), self.file.size
        try:
            relative_offset, end = self.indexes.loaded()[0].boundary(start + max_bytes)
            if end > start:
                next_offset, last_offset, _ = read_span(file, end, size)
                if last_offset == self.base_offset + relative_offset:
                    self._remember(next_offset, end)
                    return end
        except KafkaError:
            pass  # the headers say where the damage begins
        end = start
        while end < size:
            try:
                next_offset, _, next_end = read_span(file, end, size)
            except KafkaError:
                if end == start:
                    raise
                break
            if next_end - start > max_bytes and not (at_least_one and end == start):
                self._remember(next_offset, end)
                break
            end = next_end
        return end

    def _remember(self, offset: int, position: int) -> None:
        """Keep where a sequential reader will go on."""
        remembered = self.file.positions
        if remembered is None:
            remembered = self.file.positions = {}
        elif len(remembered) >= _REMEMBERED_POSITIONS and offset not in remembered:
            del remembered[next(iter(remembered))]
        remembered[offset] = position

    def scan(self, start: int) -> Iterator[tuple[int, RecordBatch]]:
        """``scan_batches`` from the position ``start`` to the end."""
        return self.file.scan(start)
