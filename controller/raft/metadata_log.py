"""The log of the cluster's metadata on one node: ``__cluster_metadata-0``, and the snapshots beside its segments.

A node fetches the log from the quorum's leader as a follower does, in the form of a ``PartitionLog``; a snapshot stands in for
what the leader does not keep any more. Invariants: the log begins at 0 or there is a snapshot that reaches to its start; nothing
below the high watermark is ever truncated; the high watermark never falls.

What is deleted of the log is covered by a snapshot (``metadata_cleaning``). The log is never compacted, and has no checkpoints: a
start recovers it from the first segment on, as Kafka's does (``KafkaRaftLog``), and may begin lower than before the stop.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...base.errors import ErrorCode, KafkaError, ProtocolError
from ...log.checkpoints import CorruptFileError
from ...log.disk import Bytes, join
from ...log.files import DELETED_SUFFIX, METADATA_PARTITION_DIR
from ...log.follower_append import append_as_follower
from ...log.log_directory import LogDirectory
from ...log.log_loader import LogLoader
from ...log.log_state import LogState
from ...log.metadata_snapshots import (
    BOOTSTRAP_ID,
    MetadataSnapshotId,
    SnapshotFile,
    SnapshotHead,
    SnapshotReader,
    list_snapshots,
    read_snapshot_head,
    remove_unfinished,
)
from ...log.partition_log import PartitionLog
from ...log.settings import LogSettings
from ...metadata.types import LogPosition
from ...wire.control_records import build_quorum_batch, decode_quorum_record
from ...wire.messages.control_records import KRaftVersionRecord, VotersRecord
from ...wire.metadata_records import metadata_records
from ...wire.records import RecordBatch, iter_batches
from ...wire.schema import Message
from .election_file import ElectionState, read_election, write_election
from .log_outline import LogOutline, QuorumEntry
from .settings import MetadataLogSettings
from .voter_set import VoterSet

logger = logging.getLogger(__name__)

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
MAX_BATCH_BYTES = 8 << 20

_READ_BYTES = 1 << 20


class CommittedBatch(NamedTuple):
    """A batch of the log below the high watermark, and where its last record is. One of control records has no others."""

    position: LogPosition
    records: list[Message]
    size: int
    """Bytes of the batch in the log."""


class SnapshotFacts(NamedTuple):
    """The size of a snapshot's file, and when the newest record was made that the snapshot stands for."""

    size: int
    last_contained_ms: int


class MetadataLog:
    """The log in one log directory. ``open`` it first."""

    def __init__(self, folder: LogDirectory, settings: MetadataLogSettings) -> None:
        self._folder = folder
        self._settings = LogSettings(
            {
                "segment_bytes": settings.segment_bytes,
                "segment_ms": settings.segment_ms,
                "max_message_bytes": 1 << 30,
                "retention_ms": -1,
                "retention_bytes": -1,
            }
        )
        self.directory = join(folder.path, METADATA_PARTITION_DIR)
        self.snapshots: list[MetadataSnapshotId] = []
        self.election: ElectionState | None = None
        """What ``quorum-state`` says."""
        self._deleted_snapshots: list[str] = []
        self._log: PartitionLog
        self._quorum: list[QuorumEntry] = []
        """What the log says of the quorum, committed or not."""

    # --- start --------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read what there is. Raises OSError, KafkaError, CorruptFileError."""
        await self._folder.workers.run(self._load)
        self._begin()
        await self.remove_deleted_snapshots()
        await self._folder.workers.run(self._read_quorum)

    def open_at_once(self) -> None:
        """``open`` without waiting, which holds up the loop."""
        self._load()
        self._begin()
        self.remove_deleted_snapshots_now()
        self._read_quorum()

    def _begin(self) -> None:
        """Bring the log and the snapshots that were found together."""
        newest = self.newest_snapshot
        if newest is not None and self._ends_before(newest):
            logger.info(
                "%s ends at %d, before its newest snapshot %s", self.directory, self.end_offset, newest.file_name
            )
            self._log.truncate_fully_and_start_at(newest.end_offset)
        if self.start_offset and (newest is None or newest.end_offset < self.start_offset):
            raise CorruptFileError(
                f"{self.directory} begins at offset {self.start_offset}, and there is no snapshot of earlier records"
            )
        if self.start_offset == self.end_offset:
            # Of a log that was emptied, and whose epochs were not written again before the power failed: the snapshot's counts.
            self._log.leader_epochs.clear()
        self._delete_snapshots_before(MetadataSnapshotId(self.start_offset, 0))
        # A snapshot has committed records only. Of those behind it a node learns from its leader, as no file says it.
        self._log.high_watermark = max(self.start_offset, 0 if newest is None else newest.end_offset)

    def _ends_before(self, snapshot: MetadataSnapshotId) -> bool:
        """Whether a snapshot that was fetched, or the power, has left the log without what the snapshot stands for."""
        if self.start_offset == self.end_offset == snapshot.end_offset:
            return False
        return snapshot.end_offset > self.end_offset or snapshot.epoch > max(self._log.latest_epoch, 0)

    def _load(self) -> None:
        disk = self._folder.disk
        settings = self._settings
        state: LogState | None = None
        if disk.is_dir(self.directory):
            self.election = read_election(disk, self.directory)
            remove_unfinished(disk, self.directory)
            self.snapshots = list_snapshots(disk, self.directory)
            interval = settings.index_interval_bytes
            loader = LogLoader(self._folder, self.directory, interval, is_clean=False, may_be_compacted=False)
            state = loader.load()
        self._log = PartitionLog(self._folder, TOPIC, 0, TOPIC_ID, settings, state=state)

    def _read_quorum(self) -> None:
        """Find the newest voters: those of the newest snapshot, then those in the log behind it."""
        self._quorum = []
        snapshot = self.newest_snapshot or (BOOTSTRAP_ID if BOOTSTRAP_ID in self.snapshots else None)
        if snapshot is not None:
            self._note_head(snapshot.end_offset, self.read_snapshot(snapshot).head)
        for batch in self._batches(max(self.start_offset, snapshot.end_offset if snapshot else 0), self.end_offset):
            self._note_quorum(batch)

    def _note_head(self, offset: int, head: SnapshotHead) -> None:
        voters = None if head.voters is None else VoterSet.of_record(head.voters)
        self._quorum = [QuorumEntry(offset - 1, head.kraft_version, voters)]

    def _note_quorum(self, batch: RecordBatch) -> None:
        if not batch.is_control:
            return
        for record in batch.records():
            known, message = self._quorum[-1] if self._quorum else QuorumEntry(-1), decode_quorum_record(record)
            if isinstance(message, KRaftVersionRecord):
                self._quorum.append(QuorumEntry(record.offset, message.k_raft_version, known.voters))
            elif isinstance(message, VotersRecord):
                self._quorum.append(QuorumEntry(record.offset, known.kraft_version, VoterSet.of_record(message)))

    def close(self) -> None:
        self._log.close()

    def write_election(self, election: ElectionState, kraft_version: int) -> None:
        """In a worker: bring what is known of elections to stable storage, in the form of the level. Raises OSError."""
        self._folder.disk.make_dir(self.directory)
        write_election(self._folder.disk, self.directory, election, min(kraft_version, 1))
        self.election = election

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._log.high_watermark

    @property
    def size(self) -> int:
        """Bytes of the segments."""
        return self._log.size

    @property
    def segment_count(self) -> int:
        return len(self._log.segments)

    @property
    def last_epoch(self) -> int:
        """That of the last record; of a log without records that of the snapshot before it, else 0."""
        if self._log.latest_epoch >= 0:
            return self._log.latest_epoch
        newest = self.newest_snapshot
        return 0 if newest is None else newest.epoch

    @property
    def newest_snapshot(self) -> MetadataSnapshotId | None:
        """The newest one, that of formatting apart."""
        return self.snapshots[-1] if self.snapshots and self.snapshots[-1] != BOOTSTRAP_ID else None

    def newest_ms(self) -> int | None:
        """When the last record behind the newest snapshot was written; None where there is none. Raises KafkaError."""
        newest = self.newest_snapshot
        begin = max(self.start_offset, newest.end_offset if newest else 0)
        return max((batch.max_timestamp for batch in self._batches(begin, self.end_offset)), default=None)

    # --- changes ------------------------------------------------------------------------------------------------------

    def append(self, records: Bytes, epoch: int) -> None:
        """Append what the leader of ``epoch`` has sent, batches of that epoch or of earlier ones. Raises KafkaError."""
        before = self.end_offset
        append_as_follower(self._log, records, epoch)
        for batch in iter_batches(memoryview(records)):
            if before <= batch.base_offset < self.end_offset:
                self._note_quorum(batch)

    def append_batch(self, records: Bytes, base_offset: int, epoch: int) -> None:
        """Append a batch as the leader of ``epoch``, which is set in it with the offset. Raises KafkaError."""
        assert base_offset == self.end_offset, f"offset {base_offset} comes where {self.end_offset} is the next one"
        batch = RecordBatch(memoryview(bytearray(records)))
        batch.stamp(base_offset, epoch)
        self._log.write_stamped(batch, epoch, self._folder.clock.now_ms())
        self._note_quorum(batch)

    def append_control(self, messages: Iterable[tuple[Message, int]], base_offset: int, epoch: int) -> None:
        """Append a control batch as the leader of ``epoch``. Raises KafkaError."""
        now_ms = self._folder.clock.now_ms()
        batch = build_quorum_batch(messages, base_offset=base_offset, leader_epoch=epoch, timestamp=now_ms)
        self.append_batch(batch, base_offset, epoch)

    def truncate(self, offset: int) -> None:
        """Cut off what is from ``offset`` on, where a batch begins. Raises KafkaError."""
        assert offset >= self.high_watermark, f"{self.high_watermark} is committed, not {offset}"
        self._log.truncate_to(offset)
        self._quorum = [each for each in self._quorum if each.offset < offset]

    async def flush(self) -> None:
        """Bring what there is to stable storage. Raises KafkaError."""
        await self._log.flush()

    def flush_at_once(self) -> None:
        """``flush`` without waiting, which holds up the loop. Raises KafkaError."""
        if self._log.segments.active is not None:
            self._log.flush_at_once()

    def advance_high_watermark(self, offset: int) -> bool:
        """Follow the leader's high watermark as far as the log reaches; whether it has moved."""
        offset = min(offset, self.end_offset)
        if offset <= self.high_watermark:
            return False
        self._log.high_watermark = offset
        return True

    # --- reading ------------------------------------------------------------------------------------------------------

    def committed(self, offset: int) -> Iterator[CommittedBatch]:
        """The batches from ``offset`` on, at most a MiB of them, below the high watermark. Raises KafkaError.

        They are read at once, and decoded one by one: what is deleted of the log meanwhile does no harm.
        """
        return map(_committed_batch, self._checked(self._read(offset, self.high_watermark, _READ_BYTES), offset))

    def read_records(self, offset: int, end: int, max_bytes: int) -> bytes:
        """Whole batches from ``offset`` on and below ``end``, at least one. Raises KafkaError."""
        return bytes(self._read(offset, end, max_bytes))

    def _read(self, offset: int, end: int, max_bytes: int) -> Bytes:
        piece = self._log.read(offset, max_bytes, up_to=end, at_least_one=True)
        if piece is None:
            return b""
        try:
            return piece.read()
        finally:
            piece.release()

    def _batches(self, offset: int, end: int) -> Iterator[RecordBatch]:
        while offset < end and (data := self._read(offset, end, _READ_BYTES)):
            for batch in self._checked(data, offset):
                offset = batch.next_offset
                yield batch

    def _checked(self, data: Bytes, offset: int) -> Iterator[RecordBatch]:
        """Batches that are to begin at ``offset``, and to lie in a row."""
        for batch in iter_batches(data):
            if batch.base_offset > offset:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{self.directory} has no records from offset {offset} to {batch.base_offset}",
                )
            offset = batch.next_offset
            yield batch

    def read_snapshot(self, snapshot: MetadataSnapshotId) -> SnapshotReader:
        """Raises CorruptFileError, OSError."""
        path = join(self.directory, snapshot.file_name)
        return SnapshotReader(self._folder.disk.read_file(path), path)

    def snapshot_facts(self, snapshot: MetadataSnapshotId) -> SnapshotFacts | None:
        """In a worker: None for one that is damaged or not there. Raises OSError."""
        disk, path = self._folder.disk, join(self.directory, snapshot.file_name)
        try:
            return SnapshotFacts(disk.file_size(path), read_snapshot_head(disk, path).last_contained_ms)
        except (CorruptFileError, FileNotFoundError) as error:
            logger.warning("The snapshot %s cannot be read: %s", path, error)
            return None

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def begin_snapshot(self, snapshot: MetadataSnapshotId) -> SnapshotFile:
        """A file for a snapshot that is fetched: of offsets that this log does not have. Raises OSError."""
        return SnapshotFile(self._folder.disk, self.directory, snapshot)

    def create_snapshot(self, snapshot: MetadataSnapshotId) -> SnapshotFile | None:
        """A file for a snapshot of what this node has loaded; None where there is one, or the log begins later.

        Raises OSError, and KafkaError for one that no log could go on after (Kafka's ``createNewSnapshot``, KAFKA-17713).
        """
        offset, epoch = snapshot
        if snapshot in self.snapshots or offset < self.start_offset:
            return None
        if offset > self.high_watermark:
            raise self._misplaced(snapshot, f"only offsets below {self.high_watermark} are committed")
        if offset > self.start_offset and self._log.epoch_for_offset(offset - 1) != epoch:
            raise self._misplaced(snapshot, f"the epoch before it is {self._log.epoch_for_offset(offset - 1)}")
        if offset < self.end_offset and self._log.segments.batch_base_offset(offset) != offset:
            raise self._misplaced(snapshot, "it ends within a batch")
        return SnapshotFile(self._folder.disk, self.directory, snapshot)

    def _misplaced(self, snapshot: MetadataSnapshotId, why: str) -> KafkaError:
        what = f"the snapshot {snapshot.file_name} does not fit to {self.directory}: {why}"
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what)

    def snapshot_head(self, position: LogPosition) -> SnapshotHead:
        """What a snapshot that ends with ``position`` says of the quorum."""
        known = (entry for entry in reversed(self._quorum) if entry.offset <= position.offset)
        _, kraft_version, voters = next(known, QuorumEntry(-1))
        return SnapshotHead(position.timestamp, kraft_version, None if voters is None else voters.to_record())

    def add_snapshot(self, snapshot: MetadataSnapshotId) -> None:
        """Count a snapshot of what this node has loaded, which has its name."""
        self.snapshots = sorted({*self.snapshots, snapshot})

    def start_after(self, snapshot: MetadataSnapshotId, head: SnapshotHead) -> None:
        """Begin the log anew after a snapshot that was fetched and has its name. Raises OSError, KafkaError."""
        self._log.truncate_fully_and_start_at(snapshot.end_offset)
        self.add_snapshot(snapshot)
        self._log.high_watermark = snapshot.end_offset
        self._note_head(snapshot.end_offset, head)
        self._delete_snapshots_before(snapshot)

    def delete_before(self, snapshot: MetadataSnapshotId, now_ms: int) -> bool:
        """Let the log start at the end of a snapshot that there is, and delete older ones and segments that are below.

        False where there was nothing to delete. Raises OSError, KafkaError.
        """
        if snapshot not in self.snapshots or not self.start_offset < snapshot.end_offset <= self.high_watermark:
            return False
        self._log.delete_records_before(snapshot.end_offset)
        segments = self._log.delete_old_segments(now_ms)
        return self._delete_snapshots_before(snapshot) or segments > 0

    def _delete_snapshots_before(self, snapshot: MetadataSnapshotId) -> bool:
        """Set older snapshots aside for ``remove_deleted_snapshots``; whether there were any. Raises OSError."""
        older = [each for each in self.snapshots if each < snapshot]
        for each in older:
            path = join(self.directory, each.file_name)
            self._folder.disk.rename(path, path + DELETED_SUFFIX)
            self._deleted_snapshots.append(path + DELETED_SUFFIX)
            self.snapshots.remove(each)
        return bool(older)

    def read_snapshot_piece(self, snapshot: MetadataSnapshotId, position: int, max_bytes: int) -> bytes:
        """In a worker. Raises OSError."""
        file = self._folder.disk.open(join(self.directory, snapshot.file_name))
        try:
            return file.read(min(max_bytes, file.size() - position), position)
        finally:
            file.close()

    def outline(self) -> LogOutline:
        """What a node of the quorum has to know of the log when it starts. Nothing counts as flushed. Raises OSError."""
        sizes = {each: self._folder.disk.file_size(join(self.directory, each.file_name)) for each in self.snapshots}
        epochs = self._log.leader_epochs.entries()
        return LogOutline(self.start_offset, self.end_offset, self.start_offset, epochs, sizes, list(self._quorum))

    def remove_deleted_snapshots_now(self) -> None:
        """``remove_deleted_snapshots`` without waiting. Raises OSError."""
        while self._deleted_snapshots:
            self._folder.disk.remove(self._deleted_snapshots.pop())

    async def remove_deleted_snapshots(self) -> None:
        """Remove the files of snapshots that do not count any more. Raises OSError."""
        while self._deleted_snapshots:
            await self._folder.workers.run(self._folder.disk.remove, self._deleted_snapshots.pop())


def _committed_batch(batch: RecordBatch) -> CommittedBatch:
    position = LogPosition(batch.last_offset, batch.partition_leader_epoch, batch.max_timestamp)
    return CommittedBatch(position, _metadata_records(batch), batch.size)


def _metadata_records(batch: RecordBatch) -> list[Message]:
    """Raises KafkaError for what is unknown: a node that passed over it would have another cluster than the controller."""
    if batch.is_control:
        return []
    try:
        return metadata_records(batch)
    except ProtocolError as error:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"a record of the metadata log from offset {batch.base_offset} on: {error}"
        ) from None
