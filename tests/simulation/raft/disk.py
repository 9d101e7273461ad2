"""A model of a node's metadata log, snapshots and quorum-state on a disk that forgets what was not synced.

It stands in for ``PartitionLog`` over a ``MemoryDisk``, for speed. What it keeps of them: batches in segments; a log that is
recovered from its first segment on; snapshots that count once they have their name; changes of the log that survive a loss of
power in their order, up to some point, unless they were flushed; removals that may come undone.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from ottla.controller.raft.election_file import ElectionState
from ottla.controller.raft.log_outline import LogOutline, QuorumEntry
from ottla.controller.raft.voter_set import VoterSet
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, SnapshotId, parse_snapshot_head
from ottla.wire.control_records import decode_quorum_record
from ottla.wire.records import RecordBatch

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
        self.dropped = 0
        """How many batches are in segments that were deleted."""

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.base_offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else -1

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

    def delete_segments(self, offset: int) -> None:
        """Those that end at or below; the newest stays."""
        while len(self.batches) > SEGMENT_BATCHES and self.batches[SEGMENT_BATCHES - 1].next_offset <= offset:
            del self.batches[:SEGMENT_BATCHES]
            self.base_offset = self.batches[0].base_offset

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
        self.snapshots: dict[SnapshotId, bytes] = {}
        self._forgotten: dict[SnapshotId, bytes] = {}
        """Removed, which may come undone."""
        self.is_full = False
        self.persisting: ElectionState | None = None
        self.download: bytearray | None = None

    def write(self, change: _Change) -> None:
        if self.is_full and change.batch is not None:
            raise DiskFullError
        self.log.apply(change)
        self._changes.append(change)

    def append(self, data: bytes) -> StoredBatch:
        batch = RecordBatch(memoryview(data))
        stored = StoredBatch(batch.base_offset, batch.next_offset, batch.partition_leader_epoch, data)
        self.write(_Change(stored))
        return stored

    def truncate(self, offset: int) -> None:
        self.write(_Change(offset=offset))

    def begin_flush(self) -> int:
        return len(self._changes)

    def end_flush(self, count: int) -> None:
        """The first ``count`` of the changes that were not synced are so now."""
        for change in self._changes[:count]:
            self.synced.apply(change)
        del self._changes[:count]

    def add_snapshot(self, snapshot: SnapshotId, data: bytes) -> None:
        self.snapshots[snapshot] = data

    def start_after(self, snapshot: SnapshotId) -> None:
        """A snapshot that was fetched takes the place of the log."""
        assert self.download is not None
        self.add_snapshot(snapshot, bytes(self.download))
        self.download = None
        self.write(_Change(offset=snapshot.end_offset, starts=True))
        self._forget_before(snapshot)

    def delete_before(self, snapshot: SnapshotId) -> None:
        self.log.delete_segments(snapshot.end_offset)
        self._forget_before(snapshot)

    def _forget_before(self, snapshot: SnapshotId) -> None:
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

    # --- start --------------------------------------------------------------------------------------------------------

    def open(self) -> LogOutline:
        """What a process finds; nothing of it counts as flushed."""
        real = sorted(each for each in self.snapshots if each != BOOTSTRAP_ID)
        newest = real[-1] if real else None
        log = self.log
        if newest is not None and not log.base_offset == log.end_offset == newest.end_offset:
            ends_before = newest.end_offset > log.end_offset or newest.epoch > max(log.last_epoch, 0)
            if ends_before:
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

    def has_synced(self, batch: StoredBatch) -> bool:
        """Whether a batch, or a snapshot that stands for it, survives a loss of power."""
        for snapshot in self.snapshots:
            if snapshot.end_offset >= batch.next_offset and snapshot != BOOTSTRAP_ID:
                return True
        return self.synced.find(batch.base_offset) == batch
