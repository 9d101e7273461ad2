"""Snapshots of a metadata log: files beside its segments that replace everything before an offset (KIP-630).

``00000000000000000023-0000000002.checkpoint`` ends at offset 23, which is the first one that it does not have, and the record
before that is of epoch 2. While a snapshot is written or fetched its name has ``.part`` at the end; it is synced and then
renamed, so one without ``.part`` is whole. What is to be removed is renamed to ``.checkpoint.deleted`` first. 0-0 is special: the
voters that a node was formatted with, which the first leader takes over into the log.

A snapshot is a sequence of batches: a control batch with SnapshotHeader, and where ``kraft.version`` is 1 KRaftVersion and
KRaftVoters; batches of metadata records; a control batch with SnapshotFooter. Offsets in it count from 0, its leader epoch is
that of its name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..base.errors import KafkaError, ProtocolError
from ..wire.batch_layout import BATCH_LENGTH_POSITION, LENGTH_PREFIX_SIZE
from ..wire.control_records import build_quorum_batch, decode_quorum_record
from ..wire.messages.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ..wire.metadata_records import VersionedRecord, encode_metadata_record, versioned_records
from ..wire.records import RecordBatch, RecordsBuilder, iter_batches, iter_complete_batches
from ..wire.schema import Message
from .checkpoints import CorruptFileError
from .disk import Bytes, Disk, join
from .files import CHECKPOINT_SUFFIX, DELETED_SUFFIX, METADATA_PARTITION_DIR

PART_SUFFIX = ".part"
RECORDS_IN_BATCH = 1024
BATCH_BYTES = 1 << 20
"""A batch is closed by the record that makes it larger."""

_NAME = re.compile(r"(\d{20})-(\d{10})" + re.escape(CHECKPOINT_SUFFIX))


class MetadataSnapshotId(NamedTuple):
    """The end offset of a snapshot, and the epoch of the record before it."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{CHECKPOINT_SUFFIX}"


BOOTSTRAP_ID = MetadataSnapshotId(0, 0)
"""Of the voters that a node was formatted with; no other node is sent it."""


def parse_snapshot_name(name: str) -> MetadataSnapshotId | None:
    """None for the name of anything else."""
    match = _NAME.fullmatch(name)
    return None if match is None else MetadataSnapshotId(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class SnapshotHead:
    """What a snapshot says of the quorum."""

    last_contained_ms: int
    """The timestamp of the newest record that the snapshot stands for."""
    kraft_version: int = 0
    voters: VotersRecord | None = None
    """None without ``kraft.version`` 1."""


def list_snapshots(disk: Disk, folder: str) -> list[MetadataSnapshotId]:
    """Those of a folder, in order. Raises OSError."""
    return sorted(found for name in disk.names(folder) if (found := parse_snapshot_name(name)) is not None)


def read_snapshot_head(disk: Disk, path: str) -> SnapshotHead:
    """What the first batch of a snapshot says; no more of it is read. Raises CorruptFileError, OSError."""
    file = disk.open(path)
    try:
        prefix = file.read(LENGTH_PREFIX_SIZE, 0)
        size = LENGTH_PREFIX_SIZE + int.from_bytes(prefix[BATCH_LENGTH_POSITION:])
        data = file.read(min(size, file.size()), 0)
    finally:
        file.close()
    try:
        return _head([batch for batch in iter_batches(memoryview(data)) if _checked(batch)], path)
    except (KafkaError, ProtocolError) as error:
        raise CorruptFileError(f"{path}: {error}") from None


def parse_snapshot_head(data: Bytes) -> SnapshotHead | None:
    """What the first batch of a snapshot says, of which ``data`` is the beginning; None while that is not whole.

    Raises CorruptFileError.
    """
    try:
        first = next(iter_complete_batches(memoryview(bytes(data))), None)
        return None if first is None or not _checked(first) else _head([first], "a snapshot")
    except (KafkaError, ProtocolError) as error:
        raise CorruptFileError(f"a snapshot: {error}") from None


def remove_unfinished(disk: Disk, folder: str) -> None:
    """Remove what a crash has left of snapshots that were written, fetched or removed. Raises OSError."""
    endings = (CHECKPOINT_SUFFIX + PART_SUFFIX, CHECKPOINT_SUFFIX + DELETED_SUFFIX)
    for name in disk.names(folder):
        if name.endswith(endings):
            disk.remove(join(folder, name))


class SnapshotFile:
    """A snapshot that is being written or fetched, under its temporary name.

    A worker may use it, one call at a time. Its maker ends it with ``freeze`` or ``drop``. All raise OSError.
    """

    def __init__(self, disk: Disk, folder: str, snapshot: MetadataSnapshotId) -> None:
        """Begin it anew."""
        self.id = snapshot
        self.size = 0
        """Bytes that are written so far."""
        self._disk = disk
        self._folder = folder
        self._path = join(folder, snapshot.file_name + PART_SUFFIX)
        disk.make_dir(folder)
        disk.remove(self._path)
        self._file = disk.open(self._path, create=True)

    def append(self, data: Bytes) -> None:
        self._file.write(data, self.size)
        self.size += len(data)

    def finish(self) -> SnapshotReader:
        """``freeze`` one that was fetched, if it is whole; its content. Raises CorruptFileError."""
        reader = SnapshotReader(self._disk.read_file(self._path), self._path)
        self.freeze()
        return reader

    def freeze(self) -> None:
        """Bring it to stable storage, and give it its name."""
        self._file.sync()
        self._file.close()
        self._disk.rename(self._path, join(self._folder, self.id.file_name))
        self._disk.sync_dir(self._folder)

    def drop(self) -> None:
        """Remove what there is of it."""
        self._file.close()
        self._disk.remove(self._path)


def encode_snapshot(
    head: SnapshotHead, records: Iterable[tuple[Message, int]], *, epoch: int, now_ms: int
) -> Iterator[bytearray]:
    """The batches of a snapshot; each record comes with the version that it is written in."""
    controls: list[tuple[Message, int]] = [
        (SnapshotHeaderRecord(last_contained_log_timestamp=head.last_contained_ms), 0)
    ]
    if head.kraft_version:
        controls.append((KRaftVersionRecord(k_raft_version=head.kraft_version), 0))
        if head.voters is not None:
            controls.append((head.voters, 0))
    yield build_quorum_batch(controls, base_offset=0, leader_epoch=epoch, timestamp=now_ms)
    offset, left = len(controls), iter(records)
    while (builder := _next_batch(left, offset, epoch, now_ms)).record_count:
        offset = builder.next_offset
        yield builder.build()
    footer = [(SnapshotFooterRecord(), 0)]
    yield build_quorum_batch(footer, base_offset=offset, leader_epoch=epoch, timestamp=now_ms)


def _next_batch(records: Iterator[tuple[Message, int]], base_offset: int, epoch: int, now_ms: int) -> RecordsBuilder:
    builder = RecordsBuilder(base_offset=base_offset, leader_epoch=epoch)
    for record, version in itertools.islice(records, RECORDS_IN_BATCH):
        builder.append(None, encode_metadata_record(record, version), now_ms)
        if builder.uncompressed_size >= BATCH_BYTES:
            break
    return builder


class SnapshotReader:
    """The content of a snapshot: ``head``, and the batches of records, which are decoded one by one as they are asked for.

    Raises CorruptFileError, with ``name``, where it is not whole or cannot be decoded.
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self._name = name
        try:
            self._batches = [batch for batch in iter_batches(memoryview(data)) if _checked(batch)]
            self.head = _head(self._batches, name)
            self._check_footer()
        except (KafkaError, ProtocolError) as error:
            raise self._corrupt(str(error)) from None

    def _corrupt(self, why: str) -> CorruptFileError:
        return CorruptFileError(f"{self._name}: {why}")

    def _check_footer(self) -> None:
        if not any(isinstance(record, SnapshotFooterRecord) for record in _controls(self._batches[-1])):
            raise self._corrupt("it does not end with a footer")

    def batches(self) -> Iterator[list[Message]]:
        """The metadata records of each batch."""
        for records in self.versioned_batches():
            yield [record for record, _ in records]

    def versioned_batches(self) -> Iterator[list[VersionedRecord]]:
        """The same, each record with the version that it was written in."""
        for batch in self._batches:
            if not batch.is_control:
                try:
                    yield versioned_records(batch)
                except (KafkaError, ProtocolError) as error:
                    raise self._corrupt(str(error)) from None


def _checked(batch: RecordBatch) -> bool:
    batch.check_crc()
    return True


def _head(batches: Sequence[RecordBatch], name: str) -> SnapshotHead:
    """Raises CorruptFileError."""
    controls = _controls(batches[0]) if batches else []
    if not controls or not isinstance(controls[0], SnapshotHeaderRecord):
        raise CorruptFileError(f"{name}: it does not begin with a header")
    kraft_version, voters = 0, None
    for record in controls:
        if isinstance(record, KRaftVersionRecord):
            kraft_version = record.k_raft_version
        elif isinstance(record, VotersRecord):
            voters = record
    return SnapshotHead(controls[0].last_contained_log_timestamp, kraft_version, voters)


def _controls(batch: RecordBatch) -> list[Message | None]:
    return [decode_quorum_record(record) for record in batch.records()] if batch.is_control else []


def known_voters(disk: Disk, directory: str) -> list[int] | None:
    """The voters that the newest snapshot of the metadata log in ``directory`` has; None where none has any.

    Raises CorruptFileError, OSError.
    """
    folder = join(directory, METADATA_PARTITION_DIR)
    snapshots = list_snapshots(disk, folder) if disk.is_dir(folder) else []
    if not snapshots:
        return None
    voters = read_snapshot_head(disk, join(folder, snapshots[-1].file_name)).voters
    return None if voters is None else sorted(voter.voter_id for voter in voters.voters)
