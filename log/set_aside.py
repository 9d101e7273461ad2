"""Removal of a damaged batch from the log of a stopped broker, so that later records can be read, and its restoration.

The bytes of the batch go to a file beside the segment, ``<its first offset in 20 digits>.damaged``. In the segment an empty batch
takes their place: it has the same offsets, so that no gap is taken for a loss. Readers and brokers pass over it, as over the
empty batches that compaction leaves.

Where the header of the batch is damaged as well, its end is where the next valid batch begins, by its CRC.

The new segment takes the place of the old one with its indexes and at once, as a compacted one does (``segment_swap``): a crash
leaves one or the other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..base.errors import KafkaError
from ..base.wording import meant
from ..wire.batch_layout import BATCH_HEADER_SIZE, BATCH_LENGTH_POSITION, LENGTH_PREFIX_SIZE, MAGIC, MAGIC_POSITION
from ..wire.records import RecordBatch, RecordsBuilder
from .checkpoints import LOCK
from .disk import Disk, OpenFile, join
from .files import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_INDEX_SUFFIXES,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
    parse_file_name,
    parse_topic_partition_name,
)
from .offset_index import CorruptIndexError, OffsetIndex
from .recovery import check_order
from .scan import scan_batches
from .segment_swap import finish_swaps
from .time_index import TimeIndex

DAMAGED_SUFFIX = ".damaged"

_CHUNK = 1 << 20
_MAGIC_BYTE = bytes([MAGIC])
_NO_END = 1 << 63


class NothingToSetAsideError(Exception):
    """Nothing was changed. ``str()`` says why, in one line for people."""


@dataclass(frozen=True)
class QuarantinedBatch:
    """A batch that was taken out of a segment, or put back; file names are relative to the log directory."""

    segment: str
    """The segment's file."""
    kept: str
    """The file that its bytes went to, or came back from."""
    position: int
    """Where it begins in the segment's file."""
    size: int
    """Its bytes."""
    first: int
    """Its first offset."""
    last: int
    """Its last offset."""
    is_transactional: bool = False
    """By its header, which may be damaged, it was part of a transaction or ended one."""


def set_aside(disk: Disk, data_folder: str, partition: str, offset: int) -> QuarantinedBatch:
    """Take the damaged batch that holds ``offset`` out of a partition's log.

    Raises NothingToSetAsideError; BlockingIOError while a broker holds the folder; and OSError.
    """
    with _locked(disk, data_folder):
        return _Log(disk, data_folder, partition).set_aside(offset)


def put_back(disk: Disk, data_folder: str, partition: str, offset: int) -> QuarantinedBatch:
    """Undo ``set_aside`` of the batch whose first offset is ``offset``. Raises as it does."""
    with _locked(disk, data_folder):
        return _Log(disk, data_folder, partition).put_back(offset)


@contextlib.contextmanager
def _locked(disk: Disk, data_folder: str) -> Iterator[None]:
    path = join(data_folder, LOCK)
    lock = disk.lock(path) if disk.exists(path) else None
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def _partitions(disk: Disk, data_folder: str) -> list[str]:
    """The folders of partitions; none where that is not a log directory."""
    if not disk.is_dir(data_folder):
        return []
    return [name for name in disk.names(data_folder) if parse_topic_partition_name(name) is not None]


class _Log:
    """The segments of one partition."""

    def __init__(self, disk: Disk, data_folder: str, partition: str) -> None:
        self._disk = disk
        self._partition = partition
        self._directory = join(data_folder, partition)
        if parse_topic_partition_name(partition) is None or not disk.is_dir(self._directory):
            raise NothingToSetAsideError(
                f"there is no partition {partition} in {data_folder}"
                + (meant(partition, _partitions(disk, data_folder)) or "; they are named TOPIC-NUMBER")
            )
        finish_swaps(disk, self._directory, set(disk.names(self._directory)))  # as a start does after a crash
        parsed = (parse_file_name(name) for name in disk.names(self._directory))
        self._base_offsets = sorted(found[0] for found in parsed if found is not None and found[1] == LOG_SUFFIX)

    def set_aside(self, offset: int) -> QuarantinedBatch:
        base_offset, next_base = self._segment_of(offset)
        file = self._disk.open(self._path(base_offset))
        try:
            damage = _Damage(file, base_offset, next_base, offset)
            data = file.read(damage.end - damage.position, damage.position)
        finally:
            file.close()
        self._keep(file_name(damage.first, DAMAGED_SUFFIX), data)
        self._splice(
            base_offset, damage.position, damage.end, damage.replacement(), range(damage.first, damage.last + 1)
        )
        return self._done(base_offset, damage.position, len(data), damage.first, damage.last, damage.is_transactional)

    def _keep(self, name: str, data: bytes) -> None:
        """Copy the bytes of a batch to a file, which a crash may have left there before. Raises OSError."""
        path = join(self._directory, name)
        if self._disk.exists(path) and self._disk.read_file(path) != data:
            raise NothingToSetAsideError(f"{self._partition}/{name} already exists; move it elsewhere first")
        self._disk.write_file(path, data)

    def put_back(self, offset: int) -> QuarantinedBatch:
        base_offset, _ = self._segment_of(offset)
        kept = join(self._directory, file_name(offset, DAMAGED_SUFFIX))
        if not self._disk.exists(kept):
            raise NothingToSetAsideError(f"there is no {self._partition}/{file_name(offset, DAMAGED_SUFFIX)}")
        data = self._disk.read_file(kept)
        position, batch = self._find_replacement(base_offset, offset)
        self._splice(base_offset, position, position + batch.size, data, range(offset, batch.next_offset))
        self._disk.remove(kept)
        self._disk.sync_dir(self._directory)
        return self._done(base_offset, position, len(data), batch.base_offset, batch.last_offset)

    def _done(
        self, base_offset: int, position: int, size: int, first: int, last: int, is_transactional: bool = False
    ) -> QuarantinedBatch:
        segment, kept = file_name(base_offset, LOG_SUFFIX), file_name(first, DAMAGED_SUFFIX)
        return QuarantinedBatch(
            f"{self._partition}/{segment}", f"{self._partition}/{kept}", position, size, first, last, is_transactional
        )

    def _path(self, base_offset: int) -> str:
        return join(self._directory, file_name(base_offset, LOG_SUFFIX))

    def _segment_of(self, offset: int) -> tuple[int, int]:
        """The base offset of the segment that holds ``offset``, and of the one that follows."""
        before = [base_offset for base_offset in self._base_offsets if base_offset <= offset]
        if not before:
            raise NothingToSetAsideError(f"{self._partition} has no offset {offset}")
        after = self._base_offsets[len(before) :]
        return before[-1], after[0] if after else _NO_END

    def _find_replacement(self, base_offset: int, offset: int) -> tuple[int, RecordBatch]:
        """The empty batch that stands for what was set aside, and where it is."""
        file = self._disk.open(self._path(base_offset))
        try:
            for position, batch in scan_batches(file, 0, file.size()):
                if batch.base_offset == offset and not batch.record_count:
                    return position, batch
        except KafkaError as error:
            raise NothingToSetAsideError(f"{self._partition} is damaged before offset {offset}: {error}") from None
        finally:
            file.close()
        raise NothingToSetAsideError(
            f"{self._partition} has no empty batch at offset {offset} any more: the log was compacted, or cut"
        )

    def _splice(self, base_offset: int, start: int, end: int, replacement: bytes | bytearray, offsets: range) -> None:
        """Put ``replacement``, a batch with these offsets, in place of the bytes from ``start`` to ``end`` of a segment.

        Raises OSError.
        """
        disk, path = self._disk, self._path(base_offset)
        cleaned = f"{path}{CLEANED_SUFFIX}"
        source, target = disk.open(path), disk.open(cleaned, create=True)
        try:
            target.truncate(0)
            size = source.size()
            written = _copy(source, 0, start, target, 0)
            target.write(replacement, written)
            _copy(source, end, size, target, written + len(replacement))
            target.sync()
        finally:
            source.close()
            target.close()
        disk.set_modified_ms(cleaned, disk.modified_ms(path))
        relative = range(offsets.start - base_offset, offsets.stop - base_offset)
        indexes: dict[str, Callable[[bytes], bytes]] = {
            INDEX_SUFFIX: lambda data: _moved_index(data, size, start, end, start + len(replacement) - end),
            TIME_INDEX_SUFFIX: lambda data: _cut_time_index(data, relative),
            TRANSACTION_INDEX_SUFFIX: lambda data: data,
        }
        for suffix, change in indexes.items():
            name = join(self._directory, file_name(base_offset, suffix))
            with contextlib.suppress(FileNotFoundError, CorruptIndexError):
                disk.write_file(f"{name}{CLEANED_SUFFIX}", change(disk.read_file(name)))
        self._swap(base_offset)

    def _swap(self, base_offset: int) -> None:
        """Let the files that are complete replace the segment, as compaction does it. Raises OSError."""
        disk, directory = self._disk, self._directory
        disk.sync_dir(directory)
        for suffix in (*SEGMENT_INDEX_SUFFIXES, LOG_SUFFIX):
            path = join(directory, file_name(base_offset, suffix))
            if disk.exists(path + CLEANED_SUFFIX):
                disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
        disk.sync_dir(directory)
        finish_swaps(disk, directory, set(disk.names(directory)))
        disk.sync_dir(directory)


def _moved_index(data: bytes, size: int, start: int, end: int, shift: int) -> bytes:
    """The offset index of a segment without the batches from ``start`` to ``end``, and those behind moved by ``shift`` bytes.

    It is kept because a start that misses it reads the active segment, and cuts it at the next damaged batch. Raises
    CorruptIndexError.
    """
    index, moved = OffsetIndex.from_bytes(data, size), OffsetIndex()
    for relative_offset, position in zip(index.relative_offsets, index.positions, strict=True):
        if not start <= position < end:
            moved.append(relative_offset, position if position < start else position + shift)
    return moved.to_bytes()


def _cut_time_index(data: bytes, relative_offsets: range) -> bytes:
    """The time index without the entries of these offsets. Raises CorruptIndexError."""
    index, cut = TimeIndex.from_bytes(data), TimeIndex()
    for timestamp, relative_offset in zip(index.timestamps, index.relative_offsets, strict=True):
        if relative_offset not in relative_offsets:
            cut.maybe_append(timestamp, relative_offset)
    return cut.to_bytes()


class _Damage:
    """The first damaged batch of a segment, from ``position`` to ``end``, and its offsets, from ``first`` to ``last``."""

    def __init__(self, file: OpenFile, base_offset: int, next_base: int, wanted: int) -> None:
        """Raises NothingToSetAsideError where it does not hold the offset ``wanted``."""
        self._file = file
        self._size = file.size()
        self._leader_epoch = -1
        self.position, self.first = 0, base_offset
        self._find(base_offset, wanted)
        expected = self.first  # compaction may have left a gap before the batch
        header = _batch_at(file, self.position, self._size)
        self.is_transactional = header is not None and (header.is_transactional or header.is_control)
        if header is not None and self._is_sound(header, next_base):
            self.end, self.first, self.last = self.position + header.size, header.base_offset, header.last_offset
            if self.end == self._size and next_base != _NO_END:
                # The header may say less, and a start takes a gap between segments for a loss.
                self.last = next_base - 1
            self._leader_epoch = header.partition_leader_epoch
        else:
            self._find_end(next_base)
        if not expected <= wanted <= self.last:
            raise NothingToSetAsideError(
                f"the damage before offset {wanted} begins at position {self.position}, and covers the offsets "
                f"{self.first} to {self.last}"
            )

    def _find(self, base_offset: int, wanted: int) -> None:
        try:
            for position, batch in scan_batches(self._file, 0, self._size):
                batch.check_crc()
                check_order(batch, base_offset, self.first)
                self.position, self.first = position + batch.size, batch.next_offset
                self._leader_epoch = batch.partition_leader_epoch
                if batch.last_offset >= wanted:
                    raise NothingToSetAsideError(
                        f"the batch that holds offset {wanted}, at position {position}, is not damaged"
                    )
        except KafkaError:
            return
        raise NothingToSetAsideError(f"the segment ends at offset {self.first}, and no batch in it is damaged")

    def _is_sound(self, header: RecordBatch, next_base: int) -> bool:
        """Whether length and offsets fit what comes before and behind, so that only the rest of the batch is damaged."""
        if not self.first <= header.base_offset <= header.last_offset < next_base:
            return False
        end = self.position + header.size
        if end == self._size:
            return True
        following = _batch_at(self._file, end, self._size)
        return following is not None and following.base_offset > header.last_offset

    def _find_end(self, next_base: int) -> None:
        for position in _candidates(self._file, self.position + 1, self._size):
            batch = _batch_at(self._file, position, self._size)
            if batch is not None and self.first < batch.base_offset < next_base and batch.compute_crc() == batch.crc:
                self.end, self.last = position, batch.base_offset - 1
                if self._leader_epoch < 0:
                    self._leader_epoch = batch.partition_leader_epoch
                return
        if next_base == _NO_END:
            raise NothingToSetAsideError(
                f"no valid batch follows position {self.position}, where the log ends: a start cuts it there"
            )
        self.end, self.last = self._size, next_base - 1

    def replacement(self) -> bytearray:
        """An empty batch with these offsets."""
        return RecordsBuilder(base_offset=self.first, last_offset=self.last, leader_epoch=self._leader_epoch).build()


def _candidates(file: OpenFile, start: int, size: int) -> Iterator[int]:
    """The positions from ``start`` on where a batch may begin, by its magic."""
    for window_start in range(start + MAGIC_POSITION, size, _CHUNK):
        window = file.read(min(_CHUNK, size - window_start), window_start)
        at = window.find(_MAGIC_BYTE)
        while at >= 0:
            yield window_start + at - MAGIC_POSITION
            at = window.find(_MAGIC_BYTE, at + 1)


def _batch_at(file: OpenFile, position: int, size: int) -> RecordBatch | None:
    """The batch that begins at ``position``, by its header; None where no whole one can."""
    header = file.read(min(BATCH_HEADER_SIZE, size - position), position)
    if len(header) < BATCH_HEADER_SIZE or header[MAGIC_POSITION] != MAGIC:
        return None
    length = int.from_bytes(header[BATCH_LENGTH_POSITION:LENGTH_PREFIX_SIZE], signed=True) + LENGTH_PREFIX_SIZE
    if not BATCH_HEADER_SIZE <= length <= size - position:
        return None
    return RecordBatch(file.read(length, position))


def _copy(source: OpenFile, start: int, end: int, target: OpenFile, position: int) -> int:
    """Copy the bytes from ``start`` to ``end`` to ``position`` of another file; returns where they end there."""
    while start < end:
        data = source.read(min(_CHUNK, end - start), start)
        target.write(data, position)
        start, position = start + len(data), position + len(data)
    return position
