"""A model of a node's metadata log, snapshots and quorum-state on a disk that forgets what was not synced.

It stands in for ``PartitionLog`` over a ``MemoryDisk``, for speed. What it keeps of them: batches in segments; a log that is
recovered from its first segment on; snapshots that count once they have their name; changes of the log that survive a loss of
power in their order, up to some point, unless they were flushed; removals that may come undone.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from ottla.controller.raft import effects
from ottla.controller.raft.election_file import ElectionState
from ottla.controller.raft.log_outline import LogOutline, QuorumEntry
from ottla.controller.raft.storage import LogEffect
from ottla.controller.raft.voter_set import VoterSet
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId, parse_snapshot_head
from ottla.wire.control_records import build_quorum_batch, decode_quorum_record
from ottla.wire.records import RecordBatch, iter_batches

SEGMENT_BATCHES = 4


class DiskFullError(Exception):
    """A write does not fit: the process ends."""


class StoredBatch(NamedTuple):
    """A batch of the log."""

    base_offset: int
    next_offset: int
    epoch: int
    data: bytes


class _Change(NamedTuple):
    """An append, or a cut at ``offset``; ``starts`` empties the log, which begins there."""

    batch: StoredBatch | None = None
    offset: int = -1
    starts: bool = False


class LogFiles:
    """Batches, and the offset that the first segment begins with."""

    def __init__(self) -> None:
        self.base_offset = 0
        self.batches: list[StoredBatch] = []

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.base_offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else -1

    def copy(self) -> LogFiles:
        copied = LogFiles()
        copied.base_offset, copied.batches = self.base_offset, list(self.batches)
        return copied

    def apply(self, change: _Change) -> None:
        batch = change.batch
        if batch is not None:
            assert batch.base_offset == self.end_offset, f"{batch.base_offset} follows {self.end_offset}"
            assert batch.epoch >= self.last_epoch, "epochs do not decrease"
            self.batches.append(batch)
        elif change.starts:
            self.base_offset, self.batches = change.offset, []
        else:
            while self.batches and self.batches[-1].next_offset > change.offset:
                assert self.batches[-1].base_offset >= change.offset, "a cut within a batch"
                self.batches.pop()

    def ends_before(self, snapshot: MetadataSnapshotId) -> bool:
        """Whether the log lacks what the snapshot stands for, so that it begins anew behind it."""
        if self.base_offset == self.end_offset == snapshot.end_offset:
            return False
        return snapshot.end_offset > self.end_offset or snapshot.epoch > max(self.last_epoch, 0)

    def delete_segments(self, offset: int) -> None:
        """Those that end at or below; the newest stays."""
        while len(self.batches) > SEGMENT_BATCHES and self.batches[SEGMENT_BATCHES - 1].next_offset <= offset:
            del self.batches[:SEGMENT_BATCHES]
            self.base_offset = self.batches[0].base_offset

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Batches from ``offset`` on, at least one."""
        pieces: list[bytes] = []
        size = 0
        while offset < end_offset and (batch := self.find(offset)) is not None:
            if pieces and size + len(batch.data) > max_bytes:
                break
            pieces.append(batch.data)
            size += len(batch.data)
            offset = batch.next_offset
        assert pieces, f"no records at {offset}"
        return b"".join(pieces)

    def find(self, offset: int) -> StoredBatch | None:
        """The batch that holds an offset."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].next_offset <= offset:
                low = middle + 1
            else:
                high = middle
        found = self.batches[low] if low < len(self.batches) else None
        return found if found is not None and found.base_offset <= offset else None


class ModelDisk:
    """See the module. ``log`` is what a process reads, ``synced`` what a loss of power leaves at least."""

    def __init__(self, randomness: random.Random) -> None:
        self._randomness = randomness
        self.election: ElectionState | None = None
        self.log = LogFiles()
        self.synced = LogFiles()
        self._changes: list[_Change] = []
        self.snapshots: dict[MetadataSnapshotId, bytes] = {}
        self._forgotten: dict[MetadataSnapshotId, bytes] = {}
        """Removed, which may come undone."""
        self._is_full = False
        self.persisting: ElectionState | None = None
        self.download: bytearray | None = None

    @property
    def is_full(self) -> bool:
        return self._is_full

    def fill(self) -> None:
        """No more can be written."""
        self._is_full = True

    def make_room(self) -> None:
        self._is_full = False

    def write(self, change: _Change) -> None:
        self.log.apply(change)
        self._changes.append(change)

    def append(self, data: bytes) -> StoredBatch:
        batch = RecordBatch(memoryview(data))
        stored = StoredBatch(batch.base_offset, batch.next_offset, batch.partition_leader_epoch, data)
        self.note_append(stored)
        return stored

    def note_append(self, stored: StoredBatch) -> None:
        self.write(_Change(stored))

    def truncate(self, offset: int) -> None:
        self.write(_Change(offset=offset))

    def perform(self, effect: LogEffect) -> None:
        """Raises DiskFullError."""
        if self.is_full and not isinstance(effect, effects.Truncate | effects.DropSnapshot | effects.DeleteBefore):
            raise DiskFullError
        self.note(effect)

    def note(self, effect: LogEffect) -> None:
        """Perform an effect, for which there is room."""
        match effect:
            case effects.Persist(election, _):
                self.election, self.persisting = election, None
            case effects.Append(base_offset, epoch, records, _):
                data = bytearray(records)
                RecordBatch(memoryview(data)).stamp(base_offset, epoch)
                self.append(bytes(data))
            case effects.AppendControl(base_offset, epoch, messages):
                batch = build_quorum_batch(messages, base_offset=base_offset, leader_epoch=epoch, timestamp=0)
                self.append(bytes(batch))
            case effects.AppendFetched(records, end_offset):
                for fetched in iter_batches(memoryview(records)):
                    self.append(bytes(fetched.view))
                assert self.log.end_offset == end_offset
            case effects.Truncate(end_offset):
                self.truncate(end_offset)
            case effects.DeleteBefore(snapshot):
                self.log.delete_segments(snapshot.end_offset)
                self._forget_before(snapshot)
            case effects.BeginSnapshot() | effects.DropSnapshot():
                self.download = bytearray()
            case effects.AppendToSnapshot(_, position, data):
                assert self.download is not None and len(self.download) == position
                self.download += data
            case effects.FinishSnapshot(snapshot):
                self.start_after(snapshot)

    def complete(self, effect: effects.Respond) -> None:
        """Put into a response what it takes from the log or a snapshot."""
        read: Any = effect.read
        response: Any = effect.response
        if isinstance(read, effects.SnapshotRead):
            data = self.snapshots[read.snapshot]
            piece = data[read.position : read.position + read.max_bytes]
            response.topics[0].partitions[0].unaligned_records = piece
        elif read is not None:
            response.responses[0].partitions[0].records = self.log.read(read.offset, read.end_offset, read.max_bytes)

    def advance(self, high_watermark: int) -> None:
        """The log's high watermark has moved."""

    def begin_flush(self) -> int:
        return len(self._changes)

    def end_flush(self, count: int) -> None:
        """The first ``count`` of the changes that were not synced are so now."""
        for change in self._changes[:count]:
            self.synced.apply(change)
        del self._changes[:count]

    def add_snapshot(self, snapshot: MetadataSnapshotId, data: bytes) -> None:
        self.snapshots[snapshot] = data

    def start_after(self, snapshot: MetadataSnapshotId) -> None:
        """A snapshot that was fetched takes the place of the log."""
        assert self.download is not None
        self.add_snapshot(snapshot, bytes(self.download))
        self.download = None
        self.write(_Change(offset=snapshot.end_offset, starts=True))
        self._forget_before(snapshot)

    def _forget_before(self, snapshot: MetadataSnapshotId) -> None:
        for each in [each for each in self.snapshots if each < snapshot]:
            self._forgotten[each] = self.snapshots.pop(each)

    # --- ends of processes --------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """The process ends at any point; what the kernel was given stays."""
        if self.persisting is not None and self._randomness.random() < 0.5:
            self.election = self.persisting
        self.persisting = self.download = None
        self._forgotten.clear()

    def lose_power(self, keeps: int | None = None) -> None:
        """What was not synced is there up to some point; ``keeps`` says up to which change of the log."""
        if self._randomness.random() < 0.5:
            self.snapshots.update(self._forgotten)
        self.kill()
        self.end_flush(self._randomness.randint(0, len(self._changes)) if keeps is None else keeps)
        self._changes.clear()
        self.log = LogFiles()
        self.log.base_offset, self.log.batches = self.synced.base_offset, list(self.synced.batches)

    def changed_logs(self) -> list[LogFiles]:
        """What was synced, then the same with one change more each. A cut goes from segment to segment, from the end on."""
        logs = [self.synced.copy()]
        for change in self._changes:
            while change.batch is None and logs[-1].end_offset > change.offset and logs[-1].batches:
                logs.append(logs[-1].copy())
                logs[-1].batches.pop()
            logs.append(logs[-1].copy())
            logs[-1].apply(change)
        return logs

    def restart_from(self, found: LogFiles, *, is_synced: bool) -> None:
        """Go on with a log that was found; what it lacks of what was synced is in a snapshot."""
        before, self.log = self.log, found
        if is_synced:
            self.synced = found.copy()
            self._changes.clear()
        elif not found.batches and before.end_offset != found.end_offset:
            self._changes.append(_Change(offset=found.end_offset, starts=True))
        else:
            more = [batch for batch in found.batches if batch.base_offset >= before.end_offset]
            self._changes += [_Change(batch) for batch in more]

    # --- start --------------------------------------------------------------------------------------------------------

    def open(self) -> LogOutline:
        """What a process finds; nothing of it counts as flushed."""
        real = sorted(each for each in self.snapshots if each != BOOTSTRAP_ID)
        newest = real[-1] if real else None
        log = self.log
        if newest is not None and log.ends_before(newest):
            self.write(_Change(offset=newest.end_offset, starts=True))
        start = log.base_offset
        assert not start or (newest is not None and newest.end_offset >= start), (
            f"no snapshot of what is before {start}"
        )
        for each in [each for each in real if each.end_offset < start]:
            del self.snapshots[each]
        epochs: list[tuple[int, int]] = []
        for batch in log.batches:
            if not epochs or epochs[-1][0] != batch.epoch:
                epochs.append((batch.epoch, batch.base_offset))
        sizes = {each: len(data) for each, data in self.snapshots.items()}
        return LogOutline(start, log.end_offset, start, epochs, sizes, self._quorum())

    def _quorum(self) -> list[QuorumEntry]:
        outline = LogOutline()
        start = 0
        if self.snapshots:
            newest = max(self.snapshots)
            head = parse_snapshot_head(self.snapshots[newest])
            assert head is not None
            start = newest.end_offset
            voters = None if head.voters is None else VoterSet.of_record(head.voters)
            outline.history.append(QuorumEntry(start - 1, head.kraft_version, voters))
        for stored in self.log.batches:
            if stored.base_offset >= start:
                batch = RecordBatch(memoryview(stored.data))
                if batch.is_control:
                    outline.note_control(
                        stored.base_offset, [decode_quorum_record(record) for record in batch.records()]
                    )
        return outline.history

    def remove_pending_sync_member(self, batch: StoredBatch) -> bool:
        """Whether a batch, or a snapshot that stands for it, survives a loss of power."""
        for snapshot in self.snapshots:
            if snapshot.end_offset >= batch.next_offset and snapshot != BOOTSTRAP_ID:
                return True
        return self.synced.find(batch.base_offset) == batch
