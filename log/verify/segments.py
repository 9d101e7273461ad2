"""The check of a segment: its batches up to the first damaged one, and its indexes against them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...base.errors import KafkaError
from ...wire.records import NO_TIMESTAMP, RecordBatch
from ..disk import Disk, join
from ..files import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, file_name
from ..offset_index import CorruptIndexError, OffsetIndex
from ..recovery import check_order, find_clean_end
from ..scan import scan_batches
from ..time_index import TimeIndex
from ..transaction_index import AbortedTxn, decode_transaction_index

OnBatch = Callable[[RecordBatch], None]


@dataclass
class SegmentCheck:
    """A segment as it was found."""

    base_offset: int
    names: dict[str, str]
    """Its files by suffix."""
    size: int = 0
    """Bytes of its file of batches."""
    valid_size: int = 0
    """The position where its valid batches end."""
    next_offset: int = 0
    """The offset after its last valid batch."""
    damage: str | None = None
    """Why the valid batches end there; None when the file does."""
    clean_end: int | None = None
    """The offset where it ends for a start after a clean stop, which looks at headers only and does not notice every damage.

    None when that start notices one.
    """
    max_timestamp: int = -1
    problems: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """What is wrong with its index files by suffix, each with whether the file cannot be read at all."""
    lags_in_time: bool = False
    """The last entry of the time index is not the largest timestamp."""
    lacks_times: bool = False
    """The time index has no entry at all, although the first batch has a timestamp, which a reader notices."""
    aborted: list[AbortedTxn] = field(default_factory=list)
    """The entries of its transaction index."""
    epochs: list[tuple[int, int, int]] = field(default_factory=list)
    """The leader epochs of the valid batches, each with its first and its last offset there."""

    @property
    def log_name(self) -> str:
        return self.names[LOG_SUFFIX]


class SegmentReader:
    """Reads one segment of the log in ``directory``."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, names: dict[str, str]) -> None:
        self._disk = disk
        self._directory = directory
        self._check = SegmentCheck(base_offset, names, next_offset=base_offset)
        self._offset_entries: dict[int, int] = {}  # position -> last offset
        self._time_entries: dict[int, int] = {}  # last offset -> timestamp
        self._last_time: int | None = None

    def read(self, on_batch: OnBatch) -> SegmentCheck:
        """Go through it, showing every valid batch to ``on_batch``. Raises OSError."""
        check = self._check
        self._read_offset_index()
        self._read_time_index()
        self._read_transaction_index()
        file = self._disk.open(join(self._directory, check.log_name))
        try:
            check.size = file.size()
            try:
                for position, batch in scan_batches(file, 0, check.size):
                    self._see(position, batch, on_batch)
            except KafkaError as error:
                if check.damage is None:
                    check.damage = error.message
        finally:
            file.close()
        self._finish_indexes()
        check.clean_end = self._find_clean_end()
        return check

    def _find_clean_end(self) -> int | None:
        check = self._check
        log_path, index_path = (
            join(self._directory, check.names.get(suffix, file_name(check.base_offset, suffix)))
            for suffix in (LOG_SUFFIX, INDEX_SUFFIX)
        )
        try:
            return find_clean_end(self._disk, log_path, index_path, check.base_offset)
        except (CorruptIndexError, KafkaError, FileNotFoundError):
            return None

    def _see(self, position: int, batch: RecordBatch, on_batch: OnBatch) -> None:
        check = self._check
        if position == 0:
            check.lacks_times = self._last_time == NO_TIMESTAMP and batch.max_timestamp >= 0
        if check.damage is None:
            check.damage = self._damage_of(batch)
        if self._offset_entries.pop(position, batch.last_offset) != batch.last_offset:
            self._complain(INDEX_SUFFIX, f"its entry for position {position} names another offset than the batch there")
        timestamp = self._time_entries.pop(batch.last_offset, None)
        if timestamp is not None and timestamp != batch.max_timestamp:
            self._complain(TIME_INDEX_SUFFIX, f"offset {batch.last_offset} has another timestamp than its batch")
        check.max_timestamp = max(check.max_timestamp, batch.max_timestamp)
        if check.damage is None:
            check.valid_size = position + batch.size
            check.next_offset = batch.next_offset
            epoch, first = batch.partition_leader_epoch, batch.base_offset
            if check.epochs and check.epochs[-1][0] == epoch:
                first = check.epochs.pop()[1]
            check.epochs.append((epoch, first, batch.last_offset))
            on_batch(batch)

    def _damage_of(self, batch: RecordBatch) -> str | None:
        check = self._check
        try:
            batch.check_crc()
            check_order(batch, check.base_offset, check.next_offset)
        except KafkaError as error:
            return f"the batch of offsets {batch.base_offset} to {batch.last_offset}: {error.message}"
        return None

    def _complain(self, suffix: str, problem: str, *, is_unreadable: bool = False) -> None:
        self._check.problems.setdefault(suffix, (problem, is_unreadable))

    def _index_bytes(self, suffix: str) -> bytes:
        """The content of an index file. Raises CorruptIndexError when it is not there, and OSError."""
        name = self._check.names.get(suffix)
        if name is None:
            raise CorruptIndexError("it is missing")
        return self._disk.read_file(join(self._directory, name))

    def _read_offset_index(self) -> None:
        check = self._check
        size = self._disk.file_size(join(self._directory, check.log_name))
        try:
            index = OffsetIndex.from_bytes(self._index_bytes(INDEX_SUFFIX), size)
        except CorruptIndexError as error:
            self._complain(INDEX_SUFFIX, str(error), is_unreadable=True)
            return
        offsets = [check.base_offset + offset for offset in index.relative_offsets]
        positions = list(index.positions)
        if sorted(set(offsets)) != offsets or sorted(set(positions)) != positions:
            self._complain(INDEX_SUFFIX, "its entries do not ascend")
        self._offset_entries = dict(zip(positions, offsets, strict=True))

    def _read_time_index(self) -> None:
        check = self._check
        try:
            index = TimeIndex.from_bytes(self._index_bytes(TIME_INDEX_SUFFIX))
        except CorruptIndexError as error:
            self._complain(TIME_INDEX_SUFFIX, str(error), is_unreadable=True)
            return
        entries = list(zip(index.relative_offsets, index.timestamps, strict=True))
        if entries == [(0, 0)]:
            entries = []  # Kafka's preallocation
        self._time_entries = {check.base_offset + offset: timestamp for offset, timestamp in entries}
        self._last_time = entries[-1][1] if entries else NO_TIMESTAMP

    def _read_transaction_index(self) -> None:
        check = self._check
        if TRANSACTION_INDEX_SUFFIX not in check.names:
            return
        try:
            check.aborted = decode_transaction_index(self._index_bytes(TRANSACTION_INDEX_SUFFIX), check.base_offset)
        except CorruptIndexError as error:
            self._complain(TRANSACTION_INDEX_SUFFIX, str(error), is_unreadable=True)

    def _finish_indexes(self) -> None:
        check = self._check
        is_whole = check.damage is None
        if is_whole and self._offset_entries:
            position = min(self._offset_entries)
            self._complain(INDEX_SUFFIX, f"no batch begins at position {position}, which it names")
        if is_whole and self._time_entries:
            offset = min(self._time_entries)
            self._complain(TIME_INDEX_SUFFIX, f"no batch ends with offset {offset}, which it names")
        check.lags_in_time = is_whole and self._last_time is not None and self._last_time < check.max_timestamp
