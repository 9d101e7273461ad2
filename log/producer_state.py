"""The producer state of a partition, by which a batch sent twice is written once (KIP-98, KIP-360).

Per producer id: its epoch, its last five batches (a duplicate of one of them is answered with the old offsets), when it
last wrote, and where its open transaction began. An unknown producer may begin at any sequence number: its state may have
expired, or gone with deleted records. Sequence numbers wrap from 2^31-1 to 0.

A transaction begins here with its first transactional batch and ends with its end marker, a control batch. Before it
begins, its coordinator is asked whether the partition is part of it: ``begin_verification`` before the question,
``confirm`` after the answer, and then the append at once. An end marker in between revokes the verification, because a
batch appended after it would belong to a transaction that nothing ends (KIP-890).

What is *unstable*, and hidden from read_committed consumers, begins at the first offset of an open transaction, or of one
whose end marker is not below the high watermark yet.

A snapshot (``producer_snapshot``) is taken when the log rolls, named as the new segment, and when it closes. The state at any
offset is the newest snapshot at or below it, plus the batches between.
"""

from __future__ import annotations

import logging
from bisect import bisect_right, insort
from collections.abc import Iterable
from struct import Struct

from ..base.errors import ErrorCode, KafkaError
from ..wire.batch_layout import TRANSACTIONAL_BIT
from ..wire.control_records import MAX_CONTROL_BYTES
from ..wire.records import NO_PRODUCER_EPOCH, RecordBatch
from .disk import Disk, join
from .files import SNAPSHOT_SUFFIX, file_name
from .producer_snapshot import BatchMetadata, ProducerStateEntry, decode_snapshot, encode_snapshot
from .transaction_index import AbortedTxn

logger = logging.getLogger(__name__)

RETAINED_BATCHES = 5
_MARKER = Struct(">hi")
_COMMIT = b"\0\1"  # after the version, in the key of a commit marker
_STRICT_MARKER_EPOCHS_FROM = 2  # transaction.version whose markers carry a higher epoch than the batches (KIP-890)
_MAX_SEQUENCE = (1 << 31) - 1


class VerificationStateEntry:
    """A question to a coordinator whether the partition is part of the producer's transaction, and its answer."""

    __slots__ = ("created_ms", "is_confirmed", "lowest_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, sequence: int, created_ms: int) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        """The lowest first sequence of the batches that wait for it: that one has to be written first."""
        self.created_ms = created_ms
        self.is_confirmed = False
        """Whether the coordinator has said yes."""


class ProducerStateManager:
    """The producers of one partition, as of ``map_end_offset``, and its snapshot files."""

    __slots__ = (
        "directory",
        "disk",
        "last_snapshot_offset",
        "map_end_offset",
        "ongoing",
        "producers",
        "snapshots",
        "unreplicated",
        "verifications",
    )

    def __init__(self, disk: Disk, directory: str, start_offset: int, snapshots: Iterable[int] = ()) -> None:
        self.disk = disk
        self.directory = directory
        self.producers: dict[int, ProducerStateEntry] = {}
        self.ongoing: dict[int, int] = {}
        """Producer id of every open transaction by its first offset, ascending."""
        self.unreplicated: list[tuple[int, int]] = []
        """(first offset, marker's offset) of ended transactions in the order of their ends.

        Each stays until the high watermark has passed its marker.
        """
        self.verifications: dict[int, VerificationStateEntry] = {}
        self.map_end_offset = start_offset
        """The state is that after every batch below this offset."""
        self.last_snapshot_offset = start_offset
        """The offset of the newest snapshot, or where the log began without one."""
        self.snapshots = sorted(snapshots)
        """The offsets of the files there are, ascending."""

    # --- appends ------------------------------------------------------------------------------------------------------

    def check(self, batch: RecordBatch) -> BatchMetadata | None:
        """Check a client's batch: None to append it, or the earlier append of which it is a duplicate.

        KafkaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
        """
        state = self.producers.get(batch.producer_id)
        if state is None:
            if batch.attributes & TRANSACTIONAL_BIT:
                self._check_begin(batch)
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
        if batch.attributes & TRANSACTIONAL_BIT:
            if state.current_txn_first_offset < 0 or epoch != state.producer_epoch:
                self._check_begin(batch)
        elif state.current_txn_first_offset >= 0:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected a transactional write from producer {batch.producer_id}, whose transaction began at offset "
                f"{state.current_txn_first_offset}",
            )
        return None

    def _check_begin(self, batch: RecordBatch) -> None:
        verification = self.verifications.get(batch.producer_id)
        if verification is None or not verification.is_confirmed:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"The batch of producer {batch.producer_id} was not part of an ongoing transaction",
            )
        # An earlier batch of the producer waits for the same verification, or is sent again; this one must not pass it.
        if batch.base_sequence > verification.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {batch.producer_id}: {batch.base_sequence} (incoming seq. "
                f"number), {verification.lowest_sequence} (earliest seen sequence)",
            )

    def check_coordinators(self, batch: RecordBatch, transaction_version: int) -> None:
        """Check an end marker, or offsets that a group coordinator commits in a transaction.

        KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        state = self.producers.get(batch.producer_id)
        if state is None:
            return
        epoch = batch.producer_epoch
        is_stale = epoch < state.producer_epoch
        if batch.is_control and transaction_version >= _STRICT_MARKER_EPOCHS_FROM:
            # A marker that is written a second time finds its own epoch, and no transaction.
            is_stale |= epoch == state.producer_epoch and state.current_txn_first_offset >= 0
        if is_stale:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {batch.producer_id} is {epoch}, and the last seen epoch {state.producer_epoch}",
            )
        if batch.is_control:
            marker = _read_marker(batch)
            coordinator_epoch = -1 if marker is None else marker[1]
            if coordinator_epoch < state.coordinator_epoch:
                raise KafkaError(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"Invalid coordinator epoch for producer {batch.producer_id}: {coordinator_epoch} (zombie), "
                    f"{state.coordinator_epoch} (current)",
                )

    # --- transactions -------------------------------------------------------------------------------------------------

    def has_ongoing(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has a transaction open here, under this epoch."""
        state = self.producers.get(producer_id)
        return state is not None and state.current_txn_first_offset >= 0 and state.producer_epoch == producer_epoch

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int
    ) -> VerificationStateEntry:
        """The transaction's coordinator is about to be asked whether this partition is part of it."""
        known = self.verifications.get(producer_id)
        if known is None or known.producer_epoch < producer_epoch:
            known = self.verifications[producer_id] = VerificationStateEntry(producer_epoch, sequence, now_ms)
        elif known.producer_epoch == producer_epoch:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
        return known

    def confirm(self, producer_id: int, verification: VerificationStateEntry) -> None:
        """The coordinator said yes. KafkaError INVALID_TXN_STATE when the transaction has ended meanwhile."""
        if self.verifications.get(producer_id) is not verification:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the transaction ended before the batch was written")
        verification.is_confirmed = True

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where what is unstable begins; None when everything below the high watermark is stable."""
        unreplicated = self.unreplicated
        while unreplicated and unreplicated[0][1] < high_watermark:
            del unreplicated[0]
        first = next(iter(self.ongoing), None)
        for begin, _ in unreplicated:
            if first is None or begin < first:
                first = begin
        return first

    def update(self, batch: RecordBatch) -> AbortedTxn | None:
        """Take note of a batch that is in the log, with its offsets stamped; a transaction that it aborts."""
        state = self.producers.get(batch.producer_id)
        if state is None:
            state = self.producers[batch.producer_id] = ProducerStateEntry(batch.producer_id)
        if state.producer_epoch != batch.producer_epoch:
            state.producer_epoch = batch.producer_epoch
            state.batches.clear()
        state.last_timestamp = batch.max_timestamp
        if batch.is_control:
            return self._end_transaction(state, batch)
        if len(state.batches) == RETAINED_BATCHES:
            del state.batches[0]
        state.batches.append(
            BatchMetadata(
                batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp
            )
        )
        if batch.attributes & TRANSACTIONAL_BIT and state.current_txn_first_offset < 0:
            state.current_txn_first_offset = batch.base_offset
            self.ongoing[batch.base_offset] = batch.producer_id
            self.verifications.pop(batch.producer_id, None)
        return None

    def _end_transaction(self, state: ProducerStateEntry, batch: RecordBatch) -> AbortedTxn | None:
        self.verifications.pop(state.producer_id, None)
        first, marker_offset = state.current_txn_first_offset, batch.base_offset
        marker = _read_marker(batch)
        if marker is None:  # compaction has removed the transaction and its marker
            return None
        is_commit, state.coordinator_epoch = marker
        if first < 0:
            return None
        state.current_txn_first_offset = -1
        self.ongoing.pop(first, None)
        self.unreplicated.append((first, marker_offset))
        if is_commit:
            return None
        # Transactions enter ``ongoing`` by ascending offsets, so its first key is where the unstable part begins.
        stable_end = next(iter(self.ongoing), marker_offset + 1)
        return AbortedTxn(state.producer_id, first, marker_offset, stable_end)

    def replay(self, batches: Iterable[RecordBatch], end_offset: int) -> None:
        """Bring the state from ``map_end_offset`` to ``end_offset`` by the batches between; what they raise, this does.

        Whatever verification they ended has ended when they were appended: one that is under way now began after them, and
        stands (Kafka drops it, and a transaction whose leader truncates at that moment is aborted).
        """
        under_way, self.verifications = self.verifications, {}
        try:
            self._replay(batches, end_offset)
        finally:
            self.verifications = under_way
        self.map_end_offset = end_offset

    def _replay(self, batches: Iterable[RecordBatch], end_offset: int) -> None:
        for batch in batches:
            if batch.last_offset >= end_offset:
                break
            if batch.producer_id >= 0:
                self.update(batch)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have been idle for ``expiration_ms`` and are in no transaction."""
        expired = [
            state.producer_id
            for state in self.producers.values()
            if state.current_txn_first_offset < 0 and now_ms - state.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if now_ms - verification.created_ms >= expiration_ms:
                del self.verifications[producer_id]

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def path_of(self, offset: int) -> str:
        return join(self.directory, file_name(offset, SNAPSHOT_SUFFIX))

    @property
    def wants_snapshot(self) -> bool:
        """Whether a clean stop is to take one. A log without producers needs none, unless it has an older one."""
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
        self._forget()
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
            begun = [(s.current_txn_first_offset, s.producer_id) for s in states if s.current_txn_first_offset >= 0]
            self.ongoing = dict(sorted(begun))
            self.map_end_offset = self.last_snapshot_offset = offset
            return
        self.map_end_offset = self.last_snapshot_offset = first_offset

    def copy_state_from(self, other: ProducerStateManager) -> None:
        """Go on with the producers of another manager, which has seen the same batches; its snapshots stay its own."""
        self.producers = other.producers
        self.ongoing = other.ongoing
        self.unreplicated = other.unreplicated
        self.verifications = other.verifications

    def _forget(self) -> None:
        """Forget what the log said. What a coordinator was asked stands: only a marker, or the first batch, ends that."""
        self.producers = {}
        self.ongoing = {}
        self.unreplicated.clear()

    def remove_snapshot(self, offset: int) -> None:
        """Remove one file, if it is there. Raises OSError."""
        if offset in self.snapshots:
            self.snapshots.remove(offset)
            self.disk.remove(self.path_of(offset))

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Remove the files that belong to no segment, except for the newest, left by a clean stop. Raises OSError."""
        kept = set(base_offsets)
        if self.snapshots and (not kept or self.snapshots[-1] > max(kept)):
            kept.add(self.snapshots[-1])
        for offset in [offset for offset in self.snapshots if offset not in kept]:
            self.remove_snapshot(offset)

    def truncate_fully(self, offset: int) -> None:
        """Forget every producer and remove every snapshot; the log starts again at ``offset``. Raises OSError.

        Markers between may be skipped, so verifications are forgotten, too.
        """
        self._forget()
        self.verifications.clear()
        for old in list(self.snapshots):
            self.remove_snapshot(old)
        self.map_end_offset = self.last_snapshot_offset = offset


def _read_marker(batch: RecordBatch) -> tuple[bool, int] | None:
    """Whether an end marker commits, and its coordinator epoch; None when the batch has none."""
    for record in batch.records(MAX_CONTROL_BYTES):
        if record.key is not None and record.value is not None and len(record.value) >= _MARKER.size:
            return record.key[2:4] == _COMMIT, _MARKER.unpack_from(record.value)[1]
    return None
