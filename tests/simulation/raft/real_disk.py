"""The metadata log of the product on a ``MemoryDisk``, for a part of the seeds.

A ``ModelDisk`` goes along, which says what a loss of power may leave: the log that is found afterwards is what had been synced,
with the changes since then up to some point, and nothing else.
"""

from __future__ import annotations

import random

from ottla.base.errors import KafkaError
from ottla.base.seams import InlineWorkers
from ottla.controller.raft import effects
from ottla.controller.raft.log_outline import LogOutline
from ottla.controller.raft.metadata_log import MetadataLog
from ottla.controller.raft.settings import MetadataLogSettings
from ottla.controller.raft.storage import LogEffect, RaftStorage
from ottla.log.disk import join
from ottla.log.files import METADATA_PARTITION_DIR
from ottla.log.log_directory import LogDirectory
from ottla.log.memory_disk import MemoryDisk
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId, list_snapshots
from ottla.tests.simulation.raft.disk import DiskFullError, LogFiles, ModelDisk, StoredBatch
from ottla.tests.simulation.run import Violation
from ottla.wire.records import RecordBatch, iter_batches

FOLDER = "/data"
_SETTINGS = MetadataLogSettings({"segment_bytes": 1200})


class _StandingClock:
    """Always the same time: nothing in the metadata log goes by age here."""

    def now_ms(self) -> int:
        return 1_000_000

    def elapsed(self) -> float:
        return 0.0


class _Folder(LogDirectory):
    """Files that are to be removed later stay until the next start."""

    def call_later(self, delay_ms: int, function: object) -> None:
        pass


class RealDisk(ModelDisk):
    """See the module."""

    def __init__(self, randomness: random.Random) -> None:
        super().__init__(randomness)
        self._files = MemoryDisk()
        self._files.make_dir(FOLDER)
        self._directory = join(FOLDER, METADATA_PARTITION_DIR)
        self._storage: RaftStorage
        self._has_started = False
        self._has_lost_power = False
        self._half_appended: list[StoredBatch] = []

    # --- effects ------------------------------------------------------------------------------------------------------

    def perform(self, effect: LogEffect) -> None:
        log = self._storage.log
        before = log.end_offset
        try:
            self._storage.perform(effect, 0)
        except (KafkaError, OSError) as error:
            if not self.is_full:
                raise Violation(f"the log cannot be kept: {error}") from error
            if isinstance(effect, effects.AppendFetched):
                self._half_appended = [_stored(batch) for batch in iter_batches(memoryview(effect.records))]
            raise DiskFullError from error
        if isinstance(effect, effects.Append | effects.AppendControl | effects.AppendFetched):
            for stored in _batches_of(log, before):
                self.note_append(stored)
        else:
            self.note(effect)

    def fill(self) -> None:
        """A few bytes more can be written, so that the write that fails is torn."""
        super().fill()
        self._files.capacity = (1 << 62) - self._files.free_bytes() + self._randomness.randint(0, 200)

    def make_room(self) -> None:
        super().make_room()
        self._files.capacity = None

    def complete(self, effect: effects.Respond) -> None:
        self._storage.complete(effect)

    def end_flush(self, count: int) -> None:
        try:
            self._storage.log.flush_at_once()
        except (KafkaError, OSError) as error:
            if not self.is_full:
                raise Violation(f"the log cannot be flushed: {error}") from error
            raise DiskFullError from error
        super().end_flush(count)

    def advance(self, high_watermark: int) -> None:
        self._storage.log.advance_high_watermark(high_watermark)

    def add_snapshot(self, snapshot: MetadataSnapshotId, data: bytes) -> None:
        super().add_snapshot(snapshot, data)
        log = self._storage.log
        if snapshot not in log.snapshots:
            file = log.create_snapshot(snapshot)
            assert file is not None, f"{snapshot} is not made"
            file.append(data)
            file.freeze()
            log.add_snapshot(snapshot)

    # --- lives --------------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        self._files.kill()
        self.persisting = self.download = None

    def lose_power(self, keeps: int | None = None) -> None:
        self.kill()
        self._files.crash(self._randomness)
        self._has_lost_power = True

    def open(self) -> LogOutline:
        if not self._has_started:
            self._format()
        log = MetadataLog(_Folder(self._files, FOLDER, _StandingClock(), InlineWorkers()), _SETTINGS)
        log.open_at_once()
        self._storage = RaftStorage(log)
        self.election = log.election
        self.snapshots = {
            each: self._files.read_file(join(self._directory, each.file_name))
            for each in list_snapshots(self._files, self._directory)
        }
        found = LogFiles()
        found.base_offset = log.start_offset
        found.batches = _batches_of(log, log.start_offset)
        self._compare(found)
        return log.outline()

    def _format(self) -> None:
        self._has_started = True
        self._files.make_dir(self._directory)
        for snapshot, data in self.snapshots.items():
            self._files.write_file(join(self._directory, snapshot.file_name), data)
        self._files.sync_dir(FOLDER)
        self._files.sync_dir("/")

    def _compare(self, found: LogFiles) -> None:
        """What was found is one of the logs that may be left: after a kill all, after a loss of power any from ``synced`` on."""
        candidates = self.changed_logs() if self._has_lost_power else [self.log]
        for stored in self._half_appended:  # some of what did not fit all together
            candidates.append(candidates[-1].copy())
            candidates[-1].batches.append(stored)
        self._half_appended = []
        newest = max(self.snapshots, default=BOOTSTRAP_ID)
        for candidate in candidates:
            if newest != BOOTSTRAP_ID and candidate.ends_before(newest):
                candidate = LogFiles()
                candidate.base_offset = newest.end_offset
            if _have_same_end(candidate, found):
                break
        else:
            ends = [(each.base_offset, each.end_offset, each.last_epoch) for each in candidates]
            raise Violation(
                f"a log from {found.base_offset} to {found.end_offset}, epoch {found.last_epoch}, was found after "
                f"{'a loss of power' if self._has_lost_power else 'a kill'}, where {ends} may be left"
            )
        self.restart_from(found, is_synced=self._has_lost_power)
        self._has_lost_power = False


def _batches_of(log: MetadataLog, offset: int) -> list[StoredBatch]:
    """Those from ``offset`` on; one read has those of one segment."""
    found: list[StoredBatch] = []
    while offset < log.end_offset:
        for batch in iter_batches(memoryview(log.read_records(offset, log.end_offset, 1 << 30))):
            found.append(_stored(batch))
            offset = batch.next_offset
    return found


def _stored(batch: RecordBatch) -> StoredBatch:
    return StoredBatch(batch.base_offset, batch.next_offset, batch.partition_leader_epoch, bytes(batch.view))


def _have_same_end(expected: LogFiles, found: LogFiles) -> bool:
    """Segments at the beginning may have been deleted, or be back."""
    count = min(len(expected.batches), len(found.batches))
    if not count:
        return expected.end_offset == found.end_offset
    return expected.batches[-count:] == found.batches[-count:]
