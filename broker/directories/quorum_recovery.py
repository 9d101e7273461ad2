"""Recovery of a quorum that has lost its majority for good: one stopped node becomes the only voter.

Raft has no way to do this safely. What the lost nodes had committed and this one has not fetched is lost, and nobody can say what
it was. So a person has to choose the node, and to see to it that no other one comes back with its old state.

What is written: one control record with the new set of voters, at the log's end and in an epoch of its own. Voters count from
when they are in the log, so the node elects itself at its start, which commits all that it has. The epoch is far above the last
one. A node that comes back all the same, and reaches this one, finds a leader of a higher epoch and follows it, as one without a
vote: it cuts its log to this one's. If it never stopped, and that would take back what it knows to be committed, it ends. Nodes
that reach only each other would elect a leader of their own; nothing here can keep them from it.

Ottla and Apache Kafka both start on such a log. The directory of the metadata log, as it was, is kept in a tar file beside it.
"""

from __future__ import annotations

import io
import tarfile
from typing import NamedTuple

from ...base.errors import KafkaError
from ...base.seams import Clock, InlineWorkers
from ...controller.raft.election_file import ElectionState
from ...controller.raft.metadata_log import MetadataLog
from ...controller.raft.settings import MetadataLogSettings
from ...controller.raft.voter_set import Endpoints, QuorumVoter, ReplicaKey, VoterSet
from ...controller.raft.voters import KRAFT_VERSIONS
from ...log.checkpoints import META_PROPERTIES, CorruptFileError
from ...log.directory_logs import DirectoryLogs
from ...log.disk import Disk, join
from ...log.files import METADATA_PARTITION_DIR
from ...log.log_directory import LogDirectory
from ...log.memory_disk import MemoryDisk

_EPOCHS_AHEAD = 1_000_000
"""More elections than nodes that are left to themselves will hold."""
_LAST_EPOCH = (1 << 31) - 1


class QuorumRecoveryError(Exception):
    """Nothing was changed. ``str()`` says why, in one line for people."""


class QuorumRemains(NamedTuple):
    """What a stopped node has of its quorum."""

    key: ReplicaKey
    cluster_id: str
    epoch: int
    """The epoch of the last record."""
    end_offset: int
    newest_ms: int | None
    """When the last record was written; None of a log without records."""
    known_epoch: int
    """The newest epoch that the node has heard of."""
    voters: VoterSet
    kraft_version: int


class QuorumRecovery(NamedTuple):
    """What a recovery has done."""

    before: QuorumRemains
    epoch: int
    """The epoch of the new set of voters."""
    kept: str
    """The path of the file with the old state."""


def examine(disk: Disk, directory: str, clock: Clock) -> QuorumRemains:
    """What the node with this log directory has; nothing is changed there.

    Raises QuorumRecoveryError; BlockingIOError while a process has the directory; and OSError.
    """
    part = _taken(disk, directory, clock)
    try:
        return _remains(part, _copy_of(disk, directory), clock)
    finally:
        part.release()


def recover_quorum(disk: Disk, directory: str, clock: Clock, endpoints: Endpoints = ()) -> QuorumRecovery:
    """Make the node with this log directory the only voter. Without ``endpoints`` it has those it had as a voter.

    Raises as ``examine``.
    """
    part = _taken(disk, directory, clock)
    try:
        copy = _copy_of(disk, directory)
        archive = _archive(copy, directory)  # before the copy is opened, which repairs it
        before = _remains(part, copy, clock)
        endpoints = endpoints or _known_endpoints(before)
        epoch = max(before.epoch, before.known_epoch) + _EPOCHS_AHEAD
        if epoch > _LAST_EPOCH:
            raise QuorumRecoveryError(f"epoch {epoch} is too high: this log was recovered too often")
        kept = join(directory, f"quorum-before-epoch-{epoch}.tar")
        # On stable storage before the log changes: whatever ends this from here on can be undone with it.
        disk.write_file(kept, archive)
        _write_voters(part.folder, VoterSet([QuorumVoter(before.key, endpoints, *KRAFT_VERSIONS)]), before, epoch)
        return QuorumRecovery(before, epoch, kept)
    finally:
        part.release()


def _known_endpoints(remains: QuorumRemains) -> Endpoints:
    """Raises QuorumRecoveryError where the node cannot become the only voter, or it is not known where it is."""
    if not remains.kraft_version:
        raise QuorumRecoveryError(
            "the voters of this quorum are a property (kraft.version 0): name this node alone in controller.quorum.voters, in "
            "the file of every node"
        )
    if remains.voters.is_only_voter(remains.key):
        raise QuorumRecoveryError(f"node {remains.key.node_id} is the only voter already")
    if not remains.voters.is_voter(remains.key):
        raise QuorumRecoveryError(
            f"node {remains.key.node_id} was not a voter with this directory: name its address as a controller "
            "with --endpoint LISTENER://HOST:PORT"
        )
    return remains.voters.endpoints(remains.key.node_id)


def _taken(disk: Disk, directory: str, clock: Clock) -> DirectoryLogs:
    """The directory, locked. Raises QuorumRecoveryError, OSError."""
    if not disk.is_dir(join(directory, METADATA_PARTITION_DIR)):
        raise QuorumRecoveryError(
            f"{directory} has no metadata log: it is in metadata.log.dir, or in the first directory of log.dirs"
        )
    part = DirectoryLogs(LogDirectory(disk, directory, clock, InlineWorkers()))
    try:
        part.take()
    except CorruptFileError as error:
        part.release()
        raise QuorumRecoveryError(str(error)) from None
    meta = part.meta
    if meta is None or meta.broker_id is None or meta.cluster_id is None or meta.directory_id is None:
        part.release()
        raise QuorumRecoveryError(
            f"{join(directory, META_PROPERTIES)} does not say whose it is: node.id, cluster.id, directory.id"
        )
    return part


def _copy_of(disk: Disk, directory: str) -> MemoryDisk:
    """The files of the metadata log in memory: opening a log repairs it."""
    copy, path = MemoryDisk(), join(directory, METADATA_PARTITION_DIR)
    copy.make_dir(path)
    for name in disk.names(path):
        file = join(path, name)
        if not disk.is_dir(file):
            copy.write_file(file, disk.read_file(file))
    return copy


def _remains(part: DirectoryLogs, copy: MemoryDisk, clock: Clock) -> QuorumRemains:
    log = _opened(LogDirectory(copy, part.folder.path, clock, InlineWorkers()))
    try:
        outline, election, meta = log.outline(), log.election or ElectionState(), part.meta
        assert meta is not None and meta.broker_id is not None and meta.cluster_id is not None, "it was checked"
        assert meta.directory_id is not None
        return QuorumRemains(
            ReplicaKey(meta.broker_id, meta.directory_id),
            meta.cluster_id,
            log.last_epoch,
            log.end_offset,
            log.newest_ms(),
            max(election.epoch, log.last_epoch),
            outline.quorum.voters or VoterSet(),
            outline.quorum.kraft_version,
        )
    finally:
        log.close()


def _opened(folder: LogDirectory) -> MetadataLog:
    """Raises QuorumRecoveryError, OSError."""
    log = MetadataLog(folder, MetadataLogSettings())
    try:
        log.open_at_once()
    except (CorruptFileError, KafkaError) as error:
        why = error.message if isinstance(error, KafkaError) else str(error)
        raise QuorumRecoveryError(f"the metadata log cannot be read: {why}") from None
    return log


def _archive(copy: MemoryDisk, directory: str) -> bytes:
    """The files as they were, under the name of their directory."""
    data, path = io.BytesIO(), join(directory, METADATA_PARTITION_DIR)
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in copy.names(path):
            content = copy.read_file(join(path, name))
            entry = tarfile.TarInfo(f"{METADATA_PARTITION_DIR}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return data.getvalue()


def _write_voters(folder: LogDirectory, voters: VoterSet, before: QuorumRemains, epoch: int) -> None:
    """The record first: quorum-state of an earlier epoch than the log's does not count. Raises QuorumRecoveryError, OSError."""
    log = _opened(folder)
    try:
        assert log.end_offset == before.end_offset, "the copy was of this log"
        log.append_control([(voters.to_record(), 0)], log.end_offset, epoch)
        log.flush_at_once()
        log.write_election(ElectionState(epoch), before.kraft_version)
    except KafkaError as error:
        raise QuorumRecoveryError(f"the metadata log cannot be written: {error.message}") from None
    finally:
        log.close()
