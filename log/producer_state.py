"""What a partition remembers of its producers, so that a batch sent twice is written once (KIP-98, KIP-360).

Per producer id: its epoch, its last five batches (a duplicate of one of them is answered with the old offsets), when it
last wrote, and where its open transaction began. A producer nothing is known of may begin at any sequence number: its
state may have expired, or gone with deleted records. Sequence numbers wrap from 2^31-1 to 0.

File ``<offset, 20 digits>.snapshot``: the state after every batch below ``offset``, big-endian::

    0 version int16 (1)    2 crc uint32 (CRC-32C of all behind it)    6 count int32    10 entries of 46 bytes:
    producer_id int64, epoch int16, last_sequence int32, last_offset int64, offset_delta int32, timestamp int64,
    coordinator_epoch int32, current_txn_first_offset int64

Only the last batch survives in a snapshot. One is taken when the log rolls, named as the new segment, and when it
closes. The state at any offset is the newest snapshot at or below it, plus the batches between.
"""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING

from crc32c import crc32c

from ..base.errors import ErrorCode, KafkaError
from ..wire.records import NO_PRODUCER_EPOCH, NO_SEQUENCE, RecordBatch
from .disk import Disk, join
from .files import SNAPSHOT_SUFFIX, file_name

if TYPE_CHECKING:
    from .segment import LogSegment

logger = logging.getLogger(__name__)

RETAINED_BATCHES = 5
_VERSION = 1
_HEAD = Struct(">hIi")
_CRC_START = 6
_ENTRY = Struct(">qhiqiqiq")
_MARKER = Struct(">hi")
_MAX_SEQUENCE = (1 << 31) - 1


class BatchMetadata:
    """One batch of a producer that is in the log. ``timestamp`` is its largest, ms."""

    __slots__ = ("first_offset", "first_sequence", "last_offset", "last_sequence", "timestamp")

    def __init__(
        self, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp: int
    ) -> None:
        self.first_sequence = first_sequence
        self.last_sequence = last_sequence
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.timestamp = timestamp


class ProducerState:
    """One producer. -1 stands for an epoch, a coordinator epoch or a transaction start that is not there."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.current_txn_first_offset = -1
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class ProducerStateManager:
    """The producers of one partition, as of ``map_end_offset``, and its snapshot files.

    ``snapshots`` are the offsets of the files there are, ascending.
    """

    __slots__ = ("directory", "disk", "last_snapshot_offset", "map_end_offset", "producers", "snapshots")

    def __init__(self, disk: Disk, directory: str, start_offset: int, snapshots: Iterable[int] = ()) -> None:
        self.disk = disk
        self.directory = directory
        self.producers: dict[int, ProducerState] = {}
        self.map_end_offset = start_offset
        self.last_snapshot_offset = start_offset
        self.snapshots = sorted(snapshots)

    # --- appends ------------------------------------------------------------------------------------------------------

    def check(self, batch: RecordBatch) -> BatchMetadata | None:
        """Judge a client's batch: None to append it, or the earlier append of which it is a duplicate.

        KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        state = self.producers.get(batch.producer_id)
        if state is None:
            return None
        epoch, first_sequence = batch.producer_epoch, batch.base_sequence
        if epoch == state.producer_epoch:
            last_sequence = batch.last_sequence
            for known in state.batches:
                if known.first_sequence == first_sequence and known.last_sequence == last_sequence:
                    return known
            expected = 0 if state.last_sequence == _MAX_SEQUENCE else state.last_sequence + 1
            if first_sequence != expected:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Out of order sequence number for producer {batch.producer_id}: {first_sequence} "
                    f"(incoming seq. number), {state.last_sequence} (current end sequence number)",
                )
        elif epoch < state.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {batch.producer_id} is {epoch}, which is smaller than the last seen epoch "
                f"{state.producer_epoch}",
            )
        elif first_sequence != 0 and state.producer_epoch != NO_PRODUCER_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {batch.producer_id}: {epoch} (request epoch), "
                f"{first_sequence} (seq. number), {state.producer_epoch} (current producer epoch)",
            )
        return None

    def update(self, batch: RecordBatch) -> None:
        """Take note of a batch that is in the log, with its offsets stamped."""
        state = self.producers.get(batch.producer_id)
        if state is None:
            state = self.producers[batch.producer_id] = ProducerState(batch.producer_id)
        if state.producer_epoch != batch.producer_epoch:
            state.producer_epoch = batch.producer_epoch
            state.batches.clear()
        state.last_timestamp = batch.max_timestamp
        if batch.is_control:
            self._end_transaction(state, batch)
            return
        if len(state.batches) == RETAINED_BATCHES:
            del state.batches[0]
        state.batches.append(
            BatchMetadata(
                batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp
            )
        )
        if batch.is_transactional and state.current_txn_first_offset < 0:
            state.current_txn_first_offset = batch.base_offset

    @staticmethod
    def _end_transaction(state: ProducerState, batch: RecordBatch) -> None:
        for record in batch.records():
            if record.value is not None and len(record.value) >= _MARKER.size:
                state.coordinator_epoch = _MARKER.unpack_from(record.value)[1]
        state.current_txn_first_offset = -1

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have been idle for ``expiration_ms`` and are in no transaction."""
        expired = [
            state.producer_id
            for state in self.producers.values()
            if state.current_txn_first_offset < 0 and now_ms - state.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def path_of(self, offset: int) -> str:
        return join(self.directory, file_name(offset, SNAPSHOT_SUFFIX))

    @property
    def wants_snapshot(self) -> bool:
        """Whether a clean stop is to take one. A log that has none and no producers goes without: that says it, too."""
        return self.map_end_offset > self.last_snapshot_offset and bool(self.producers or self.snapshots)

    def take_snapshot(self) -> None:
        """Write the state as of ``map_end_offset``, unless the newest snapshot is as new. A flush syncs it. Raises OSError."""
        if self.map_end_offset <= self.last_snapshot_offset:
            return
        data = encode_snapshot(self.producers.values())
        self.disk.write_file(self.path_of(self.map_end_offset), data, sync=False)
        self.last_snapshot_offset = self.map_end_offset
        if self.map_end_offset not in self.snapshots:
            insort(self.snapshots, self.map_end_offset)

    def load_newest_snapshot(self, first_offset: int, end_offset: int) -> None:
        """Start from the newest sound snapshot from ``first_offset`` to ``end_offset``; those above it are removed.

        ``map_end_offset`` says afterwards up to where the state reaches. Raises OSError.
        """
        self.producers = {}
        for offset in self.snapshots[bisect_right(self.snapshots, end_offset) :]:
            self.remove_snapshot(offset)
        while self.snapshots and self.snapshots[-1] >= first_offset:
            offset = self.snapshots[-1]
            try:
                states = decode_snapshot(self.disk.read_file(self.path_of(offset)))
            except (ValueError, FileNotFoundError) as error:
                logger.warning("%s is not used: %s", self.path_of(offset), error)
                self.remove_snapshot(offset)
                continue
            self.producers = {state.producer_id: state for state in states}
            self.map_end_offset = self.last_snapshot_offset = offset
            return
        self.map_end_offset = self.last_snapshot_offset = first_offset

    def remove_snapshot(self, offset: int) -> None:
        """Remove one file, if it is there. Raises OSError."""
        if offset in self.snapshots:
            self.snapshots.remove(offset)
            self.disk.remove(self.path_of(offset))

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Remove the files that belong to no segment, but for the newest, left by a clean stop. Raises OSError."""
        kept = set(base_offsets)
        if self.snapshots and (not kept or self.snapshots[-1] > max(kept)):
            kept.add(self.snapshots[-1])
        for offset in [offset for offset in self.snapshots if offset not in kept]:
            self.remove_snapshot(offset)

    def truncate_fully(self, offset: int) -> None:
        """Forget every producer and remove every snapshot; the log starts anew at ``offset``. Raises OSError."""
        self.producers = {}
        for old in list(self.snapshots):
            self.remove_snapshot(old)
        self.map_end_offset = self.last_snapshot_offset = offset


def encode_snapshot(states: Iterable[ProducerState]) -> bytes:
    """The content of a snapshot file."""
    entries = bytearray()
    count = 0
    for state in states:
        last = state.batches[-1] if state.batches else None
        entries += _ENTRY.pack(
            state.producer_id,
            state.producer_epoch,
            state.last_sequence,
            -1 if last is None else last.last_offset,
            0 if last is None else last.last_offset - last.first_offset,
            state.last_timestamp,
            state.coordinator_epoch,
            state.current_txn_first_offset,
        )
        count += 1
    body = count.to_bytes(4, "big") + bytes(entries)
    return _HEAD.pack(_VERSION, crc32c(body), count) + body[4:]


def decode_snapshot(data: bytes) -> list[ProducerState]:
    """Read a snapshot file. Raises ValueError when it is damaged."""
    try:
        version, crc, count = _HEAD.unpack_from(data)
    except StructError:
        raise ValueError("it is too short") from None
    if version != _VERSION:
        raise ValueError(f"version {version} is unknown")
    if crc32c(data[_CRC_START:]) != crc:
        raise ValueError("its CRC is not that of its bytes")
    if count < 0 or len(data) != _HEAD.size + count * _ENTRY.size:
        raise ValueError(f"its length is not that of {count} producers")
    states = []
    for entry in _ENTRY.iter_unpack(data[_HEAD.size :]):
        state = ProducerState(entry[0])
        last_sequence, last_offset, offset_delta = entry[2:5]
        state.producer_epoch = entry[1]
        state.last_timestamp, state.coordinator_epoch, state.current_txn_first_offset = entry[5:]
        if last_offset >= 0:
            first_sequence = (last_sequence - offset_delta) & _MAX_SEQUENCE
            first_offset = last_offset - offset_delta
            state.batches.append(
                BatchMetadata(first_sequence, last_sequence, first_offset, last_offset, state.last_timestamp)
            )
        states.append(state)
    return states


def replay_producers(manager: ProducerStateManager, segments: Iterable[LogSegment], end_offset: int) -> None:
    """Bring the state from ``map_end_offset`` to ``end_offset`` by the batches between. Raises OSError, KafkaError."""
    for segment in segments:
        if segment.next_offset <= manager.map_end_offset or segment.base_offset >= end_offset:
            continue
        for _, batch in segment.scan(segment.position_of(manager.map_end_offset)):
            if batch.last_offset >= end_offset:
                break
            if batch.producer_id >= 0:
                manager.update(batch)
    manager.map_end_offset = end_offset
