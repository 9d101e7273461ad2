"""Checkpoints, ``meta.properties`` and the other small text files beside the logs, in Apache Kafka's formats.

In the log directory::

    recovery-point-offset-checkpoint    up to which offset each log is known to be on disk
    replication-offset-checkpoint       high watermarks
    log-start-offset-checkpoint         where logs start whose start is not the beginning of a segment
    cleaner-offset-checkpoint           up to where logs are compacted
    meta.properties                     version=0, broker.id, cluster.id; Ottla's own zookeeper.connect
                                        version=1, of a node of KRaft: node.id, cluster.id, directory.id
    .kafka_cleanshutdown                {"version":0,"brokerEpoch":-1}, there only after a clean stop; the epoch is KRaft's
    .lock                               locked by the process that uses the folder

In a partition's folder::

    leader-epoch-checkpoint             see ``leader_epochs``
    partition.metadata                  "version: 0" and "topic_id: <base64url>"

An offset checkpoint is ``0``, the number of entries, and one line ``topic partition offset`` each; a leader epoch
checkpoint is the same with lines ``epoch start_offset``. They are replaced by writing ``<name>.tmp``, sync, rename.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..base import java_properties
from ..base.partitions import TopicPartition
from ..wire.schema import uuid_from_text, uuid_to_text
from .disk import Disk, join

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
"""Those of a log directory, one offset for each partition in it."""
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
_ZOOKEEPER = "zookeeper.connect"
_DIRECTORY_ID = "directory.id"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"


class CorruptFileError(Exception):
    """A file that is not in its format. ``str()`` names file and reason."""


def _read_entries(disk: Disk, path: str, columns: int) -> list[list[str]]:
    """The lines of a checkpoint, split; none when the file is missing or empty. Raises CorruptFileError."""
    try:
        lines = disk.read_file(path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    if not lines:
        return []
    if lines[0] != "0":
        raise CorruptFileError(f"{path}: version {lines[0]!r} is not 0")
    entries = [line.split(" ") for line in lines[2:]]
    if len(lines) < 2 or lines[1] != str(len(entries)):
        raise CorruptFileError(f"{path}: the number of entries is not the one in the second line")
    if any(len(entry) != columns for entry in entries):
        raise CorruptFileError(f"{path}: a line does not have {columns} words")
    return entries


def _encode_entries(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in ("0", str(len(entries)), *entries)).encode()


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """An offset checkpoint. Raises CorruptFileError, OSError."""
    try:
        entries = _read_entries(disk, path, 3)
        return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    except ValueError as error:
        raise CorruptFileError(f"{path}: {error}") from None


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint. Raises OSError."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())
    disk.write_file(path, _encode_entries(lines))


def read_leader_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    """A leader epoch checkpoint as (epoch, start offset). Raises CorruptFileError, OSError."""
    try:
        return [(int(epoch), int(start_offset)) for epoch, start_offset in _read_entries(disk, path, 2)]
    except ValueError as error:
        raise CorruptFileError(f"{path}: {error}") from None


def write_leader_epochs(disk: Disk, path: str, entries: Iterable[tuple[int, int]]) -> None:
    """Replace a leader epoch checkpoint; the caller syncs the folder. Raises OSError."""
    lines = (f"{epoch} {start_offset}" for epoch, start_offset in entries)
    disk.write_file(path, _encode_entries(lines), sync_name=False)


def read_topic_id(disk: Disk, path: str) -> bytes | None:
    """The topic id of ``partition.metadata``; None when there is no such file. Raises CorruptFileError, OSError."""
    try:
        text = disk.read_file(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        return uuid_from_text(values["topic_id"])
    except (KeyError, ValueError):
        raise CorruptFileError(f"{path}: there is no topic id in it") from None


def write_topic_id(disk: Disk, path: str, topic_id: bytes, *, sync: bool = False) -> None:
    """Write ``partition.metadata``; without ``sync`` the log's first flush brings it to stable storage. Raises OSError."""
    disk.write_file(path, f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode(), sync=sync)


@dataclass(frozen=True)
class MetaProperties:
    """Whose log directory it is. None: the file does not say."""

    broker_id: int | None
    cluster_id: str | None
    version: int = 0
    """1 for a node of KRaft, 0 before."""
    zookeeper: str | None = None
    """Where the state of the cluster is. This property is Ottla's own; Kafka ignores it."""
    directory_id: bytes | None = None
    """The id of the log directory, which only version 1 has."""


def read_meta_properties(disk: Disk, folder: str) -> MetaProperties | None:
    """``meta.properties`` of version 0 or 1; None when there is none. Raises CorruptFileError, OSError."""
    path = join(folder, META_PROPERTIES)
    try:
        text = disk.read_file(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    properties = java_properties.loads(text)
    version = properties.get("version", "0")
    if version not in ("0", "1"):
        raise CorruptFileError(f"{path}: version {version} is unknown")
    broker_id = properties.get("broker.id" if version == "0" else "node.id")
    if broker_id is not None and not broker_id.isdecimal():
        raise CorruptFileError(f"{path}: {broker_id!r} is not a broker id")
    try:
        directory_id = None if _DIRECTORY_ID not in properties else uuid_from_text(properties[_DIRECTORY_ID])
    except ValueError:
        raise CorruptFileError(f"{path}: {properties[_DIRECTORY_ID]!r} is not a directory id") from None
    return MetaProperties(
        None if broker_id is None else int(broker_id),
        properties.get("cluster.id"),
        int(version),
        properties.get(_ZOOKEEPER),
        directory_id,
    )


def write_meta_properties(disk: Disk, folder: str, meta: MetaProperties) -> None:
    """Write ``meta.properties``. Raises OSError."""
    values = {
        "version": str(meta.version),
        "node.id" if meta.version else "broker.id": None if meta.broker_id is None else str(meta.broker_id),
        "cluster.id": meta.cluster_id,
        _DIRECTORY_ID: None if meta.directory_id is None else uuid_to_text(meta.directory_id),
        _ZOOKEEPER: meta.zookeeper,
    }
    text = java_properties.dumps({name: value for name, value in values.items() if value is not None})
    disk.write_file(join(folder, META_PROPERTIES), text.encode())


def write_clean_shutdown(disk: Disk, folder: str, broker_epoch: int = -1) -> None:
    """Leave the mark of a clean stop; ``broker_epoch`` is that of the broker's registration at a quorum. Raises OSError."""
    disk.write_file(join(folder, CLEAN_SHUTDOWN), b'{"version":0,"brokerEpoch":%d}' % broker_epoch)


def read_clean_shutdown(disk: Disk, folder: str) -> int | None:
    """The broker epoch in the mark of a clean stop, -1 where it has none; None without a mark. Raises OSError."""
    path = join(folder, CLEAN_SHUTDOWN)
    if not disk.exists(path):
        return None
    try:
        return int(json.loads(disk.read_file(path))["brokerEpoch"])
    except (ValueError, TypeError, KeyError):
        return -1  # as Kafka has it: earlier versions left an empty file


def consume_clean_shutdown(disk: Disk, folder: str) -> bool:
    """Whether the last stop was clean; the mark is gone afterwards, so that a crash from here on counts. Raises OSError."""
    path = join(folder, CLEAN_SHUTDOWN)
    if not disk.exists(path):
        return False
    disk.remove(path)
    disk.sync_dir(folder)
    return True
