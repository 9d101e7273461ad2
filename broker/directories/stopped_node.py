"""Offline access to the metadata of a stopped node that is its own quorum: reads it and appends records.

So the first user is made of a cluster whose listeners all ask for a password. The records go

- into ``bootstrap.checkpoint``, as long as the metadata log has not begun. It may be the only file: the node formats its
  directories at its first start, with the credentials that it finds there (``pending_credentials``);
- else to the end of the metadata log, in the epoch of the last leader. What is in the log of the only voter is committed: no
  other node can have a log that ends otherwise.

Whoever uses it holds the lock of the directory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.seams import Clock, InlineWorkers, SystemClock
from ...controller.quorum.active.state import ControllerState
from ...controller.quorum.bootstrap import bootstrap_records, read_bootstrap, write_bootstrap
from ...controller.quorum.metadata_version import FEATURE, HIGHEST
from ...controller.quorum.replay import RecordReplay
from ...controller.raft.metadata_log import MetadataLog
from ...controller.raft.settings import MetadataLogSettings
from ...controller.zookeeper.leaving.old_state import has_state, is_being_set_aside
from ...log.checkpoints import read_meta_properties
from ...log.disk import Disk, join
from ...log.files import BOOTSTRAP_CHECKPOINT
from ...log.log_directory import LogDirectory
from ...metadata.image import ClusterImage
from ...metadata.types import LogPosition
from ...wire.messages.access_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ...wire.metadata_records import VersionedRecord, encode_metadata_record
from ...wire.records import RecordsBuilder
from ...wire.schema import Message

_NOWHERE = LogPosition(-1, 0, 0)


class NotItsOwnQuorumError(Exception):
    """The directory's metadata cannot be changed while the node is stopped. ``str()`` says why in one line."""


class StoppedNode:
    """``directory`` is that of the metadata log."""

    def __init__(self, disk: Disk, directory: str, clock: Clock | None = None) -> None:
        """Raises NotItsOwnQuorumError, CorruptFileError, KafkaError, OSError."""
        self._disk = disk
        self._directory = directory
        self._clock = clock or SystemClock()
        if has_state(disk, directory) or is_being_set_aside(disk, directory):
            raise NotItsOwnQuorumError(
                f"{directory} has the metadata of an Ottla before KRaft: start the broker once, so that it takes them over"
            )
        meta = read_meta_properties(disk, directory)
        self._log: MetadataLog | None = None
        self.image = ClusterImage()
        """What there is."""
        if meta is not None:
            if meta.version != 1 or meta.broker_id is None:
                raise NotItsOwnQuorumError(f"{directory} is of a broker of ZooKeeper mode: start it once")
            self._open(meta.broker_id)
        if self._log is None:
            self.image = _replayed([record for record, _ in self._first_records()])

    def _open(self, node_id: int) -> None:
        """Read the metadata log, if it has begun."""
        folder = LogDirectory(self._disk, self._directory, self._clock, InlineWorkers())
        log = MetadataLog(folder, MetadataLogSettings())
        log.open_at_once()
        voters = log.snapshot_head(LogPosition(log.end_offset - 1, 0, 0)).voters
        ids = [] if voters is None else [voter.voter_id for voter in voters.voters]
        if ids != [node_id]:
            log.close()
            known = f"with the controllers {', '.join(map(str, ids))}" if ids else "whose controllers are a property"
            raise NotItsOwnQuorumError(
                f"{self._directory} is of node {node_id} of a cluster {known}: only a running controller changes its metadata"
            )
        state = _read(log)
        if state.image.features is None:
            log.close()  # it has nothing but the quorum's own records, or half of the first ones, which come once more
        else:
            self._log, self.image = log, state.image

    def _first_records(self) -> list[VersionedRecord]:
        if self._disk.exists(join(self._directory, BOOTSTRAP_CHECKPOINT)):
            return read_bootstrap(self._disk, self._directory)
        return list(bootstrap_records({FEATURE: HIGHEST}, ()))

    def append(self, records: Sequence[VersionedRecord]) -> None:
        """Add records, on stable storage at the return. Raises KafkaError, OSError."""
        if self._log is None:
            first = _without_removed([*self._first_records(), *records])
            write_bootstrap(self._disk, self._directory, first, self._clock.now_ms())
            self.image = _replayed([record for record, _ in first])
        else:
            log, builder, now_ms = self._log, RecordsBuilder(), self._clock.now_ms()
            for record, version in records:
                builder.append(None, encode_metadata_record(record, version), now_ms)
            log.append_batch(builder.build(), log.end_offset, log.last_epoch)
            log.flush_at_once()
            self.image = _read(log).image

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def pending_credentials(disk: Disk, directory: str) -> list[UserScramCredentialRecord]:
    """The users that were made before the first start of a node, whose directories are not formatted yet.

    Raises CorruptFileError, OSError.
    """
    if not disk.exists(join(directory, BOOTSTRAP_CHECKPOINT)):
        return []
    return [record for record, _ in read_bootstrap(disk, directory) if isinstance(record, UserScramCredentialRecord)]


def _read(log: MetadataLog) -> ControllerState:
    """All that the log holds."""
    state = ControllerState()
    newest = log.newest_snapshot
    offset = 0
    if newest is not None:
        position = LogPosition(newest.end_offset - 1, newest.epoch, 0)
        batches = log.read_snapshot(newest).batches()
        state = ControllerState.of(_replayed([record for batch in batches for record in batch], position))
        offset = newest.end_offset
    log.advance_high_watermark(log.end_offset)
    while offset < log.end_offset:
        for batch in log.committed(offset):
            state = state.apply(batch.records, batch.position)
            offset = batch.position.offset + 1
    return state


def _replayed(records: Sequence[Message], position: LogPosition = _NOWHERE) -> ClusterImage:
    replay = RecordReplay(ClusterImage())
    replay.replay_all(records)
    return ClusterImage().apply(replay.delta(position))


def _without_removed(records: Sequence[VersionedRecord]) -> list[VersionedRecord]:
    """The records a cluster begins with, each credential once, and none that is removed."""
    kept: dict[object, VersionedRecord] = {}
    for number, (record, version) in enumerate(records):
        if isinstance(record, (UserScramCredentialRecord, RemoveUserScramCredentialRecord)):
            key = record.name, record.mechanism
            kept.pop(key, None)
            if isinstance(record, UserScramCredentialRecord):
                kept[key] = record, version
        else:
            kept[number] = record, version
    return list(kept.values())
