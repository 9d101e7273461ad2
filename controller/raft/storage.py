"""The storage effects of a Raft node, performed on its ``MetadataLog`` by plain functions, some of which block.

``perform`` carries out one effect in full. A caller that must not be held up has a worker do the parts that wait for a disk:
``persist``, ``freeze_snapshot``. ``Flush`` is not performed here: the caller flushes the log itself, and tells the node when that
has ended.
"""

from __future__ import annotations

import logging
from typing import Any

from ...log.disk import Bytes
from ...log.metadata_snapshots import MetadataSnapshotId, SnapshotFile, SnapshotHead
from . import effects
from .metadata_log import MetadataLog

logger = logging.getLogger(__name__)

LogEffect = (
    effects.Persist
    | effects.Append
    | effects.AppendControl
    | effects.AppendFetched
    | effects.Truncate
    | effects.DeleteBefore
    | effects.BeginSnapshot
    | effects.AppendToSnapshot
    | effects.FinishSnapshot
    | effects.DropSnapshot
)


class RaftStorage:
    """See the module. All methods raise KafkaError, OSError, CorruptFileError: the node ends then."""

    def __init__(self, log: MetadataLog) -> None:
        self.log = log
        """It is open before the first effect."""
        self._download: SnapshotFile | None = None

    def perform(self, effect: LogEffect, now_ms: int) -> None:
        """``now_ms`` by the wall clock."""
        log = self.log
        match effect:
            case effects.Persist():
                self.persist(effect)
            case effects.Append(base_offset, epoch, records, _):
                log.append_batch(records, base_offset, epoch)
            case effects.AppendControl(base_offset, epoch, messages):
                log.append_control(messages, base_offset, epoch)
            case effects.AppendFetched(records, end_offset):
                log.append(records, _ANY_EPOCH)
                assert log.end_offset == end_offset, f"the log ends at {log.end_offset}, not at {end_offset}"
            case effects.Truncate(end_offset):
                log.truncate(end_offset)
            case effects.DeleteBefore(snapshot):
                log.delete_before(snapshot, now_ms)
                log.remove_deleted_snapshots_now()
            case effects.BeginSnapshot(snapshot):
                self._drop()
                self._download = log.begin_snapshot(snapshot)
            case effects.AppendToSnapshot(snapshot, position, data):
                self._append_to_snapshot(snapshot, position, data)
            case effects.FinishSnapshot(snapshot):
                self.start_after(snapshot, self.freeze_snapshot(snapshot))
                log.remove_deleted_snapshots_now()
            case effects.DropSnapshot(snapshot):
                logger.info("The metadata snapshot %s is fetched no further", snapshot.file_name)
                self._drop()

    def complete(self, effect: effects.Respond) -> None:
        """Put into a response what it takes from the log or a snapshot."""
        read = effect.read
        response: Any = effect.response
        if isinstance(read, effects.LogRead):
            records = self.log.read_records(read.offset, read.end_offset, read.max_bytes)
            assert records, f"no records from {read.offset} to {read.end_offset}"
            response.responses[0].partitions[0].records = records
        elif read is not None:
            piece = self.log.read_snapshot_piece(read.snapshot, read.position, read.max_bytes)
            response.topics[0].partitions[0].unaligned_records = piece

    def _append_to_snapshot(self, snapshot: MetadataSnapshotId, position: int, data: Bytes) -> None:
        download = self._download
        assert download is not None and (download.id, download.size) == (snapshot, position), "another piece is due"
        download.append(data)

    def persist(self, effect: effects.Persist) -> None:
        self.log.write_election(effect.election, effect.kraft_version)

    def freeze_snapshot(self, snapshot: MetadataSnapshotId) -> SnapshotHead:
        """Bring the snapshot that was fetched to stable storage, if it is whole."""
        download = self._download
        assert download is not None and download.id == snapshot, "another snapshot is fetched"
        reader = download.finish()
        logger.info("Fetched the metadata snapshot %s, %d bytes", snapshot.file_name, download.size)
        return reader.head

    def start_after(self, snapshot: MetadataSnapshotId, head: SnapshotHead) -> None:
        """Let the log begin after a snapshot that is frozen. What is older is set aside."""
        self._download = None
        self.log.start_after(snapshot, head)

    def close(self) -> None:
        """Close the log, and give up what is being fetched."""
        self._drop()
        self.log.close()

    def _drop(self) -> None:
        if self._download is not None:
            self._download.drop()
            self._download = None


_ANY_EPOCH = 0x7FFFFFFF
"""The node has looked at the epochs of what it appends."""
