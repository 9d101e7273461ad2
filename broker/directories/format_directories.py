"""Formatting of a KRaft node's log directories before its first start: ids, first records, first voters.

Every folder gets ``meta.properties`` of version 1 with an id of its own, and ``bootstrap.checkpoint``. Where the first voters are
given, the folder of the metadata log gets a snapshot with them as well. ``meta.properties`` is written last, once everything else
is in all folders, and in the folder of the metadata log at the very end. So a folder which says whose it is, is complete, and
once that one does, all are. The first records of a controller turn off the features that Ottla lacks; those of a broker alone
are read by nobody, and are Kafka's. Source: Kafka's Formatter and StorageTool (``kafka-storage format``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...controller.quorum.bootstrap import bootstrap_records, write_bootstrap
from ...controller.quorum.features import initial_levels
from ...controller.quorum.metadata_version import FEATURE, HIGHEST, KRAFT_VERSION, LOWEST, level_of, release_of
from ...controller.quorum.supported_features import SUPPORTED
from ...controller.raft.voters import InitialVoter, voters_record
from ...log.checkpoints import (
    META_PROPERTIES,
    CorruptFileError,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from ...log.disk import Disk, join
from ...log.files import METADATA_PARTITION_DIR
from ...log.metadata_snapshots import BOOTSTRAP_ID, SnapshotHead, encode_snapshot
from ...wire.messages.access_records import UserScramCredentialRecord
from ...wire.metadata_records import VersionedRecord
from ..listeners.addresses import configured_listeners
from ..settings import BrokerSettings
from .directory_ids import random_directory_id


class FormatError(Exception):
    """The folders cannot be formatted so. ``str()`` says why in one line."""


@dataclass(frozen=True)
class Formatting:
    """What is to be formatted, and as what."""

    node_id: int
    cluster_id: str
    folders: Sequence[str]
    metadata_log_dir: str
    controller_listener: str
    is_dynamic: bool
    is_controller: bool = False
    """Whether the node has that role, so that the cluster may begin with its levels of features."""
    release: str | None = None
    levels: Mapping[str, int] | None = None
    voters: Sequence[InitialVoter] = ()
    """The first voters; none where they are a property or unknown."""
    credentials: Sequence[UserScramCredentialRecord] = ()
    ignores_formatted: bool = False
    records: Sequence[VersionedRecord] = ()
    """What the cluster begins with beside levels and credentials."""
    is_anew: bool = False
    """Whether every folder is formatted: also one of a broker before KRaft, and one that was formatted by an attempt which was
    not finished. They have to be of the same node and cluster."""
    directory_ids: Mapping[str, bytes] = field(default_factory=dict)
    """By folder; the others get random ones."""


def format_folders(
    disk: Disk, wanted: Formatting, randomness: random.Random, now_ms: int, report: Callable[[str], None]
) -> None:
    """Format the folders that are not formatted yet, with a line for each to ``report``. Raises FormatError, OSError."""
    levels = levels_of(wanted)
    level = levels[FEATURE]
    if wanted.credentials and level < level_of("3.5-IV2"):
        raise FormatError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
    empty = _unformatted(disk, wanted)
    if not empty:
        report("All of the log directories are already formatted.")
        return
    records = [*bootstrap_records(levels, wanted.credentials), *wanted.records]
    for folder in empty:
        report(f"Formatting {_kind_of(folder, wanted)} {folder} with {FEATURE} {release_of(level)}.")
        disk.make_dir(folder)
        write_bootstrap(disk, folder, records, now_ms)
        if folder == wanted.metadata_log_dir and wanted.voters:
            head = SnapshotHead(now_ms, levels[KRAFT_VERSION], voters_record(wanted.voters, wanted.controller_listener))
            log_folder = join(folder, METADATA_PARTITION_DIR)
            disk.make_dir(log_folder)
            batches = encode_snapshot(head, (), epoch=0, now_ms=now_ms)
            disk.write_file(join(log_folder, BOOTSTRAP_ID.file_name), b"".join(batches))
    # Last of all, see the module: a crash before this leaves directories that count as unformatted.
    for folder in sorted(empty, key=lambda each: each == wanted.metadata_log_dir):
        directory_id = wanted.directory_ids.get(folder) or random_directory_id(randomness)
        if folder == wanted.metadata_log_dir and wanted.voters:
            directory_id = _own_directory_id(wanted) or directory_id
        meta = MetaProperties(wanted.node_id, wanted.cluster_id, version=1, directory_id=directory_id)
        write_meta_properties(disk, folder, meta)


def standalone_voter(broker: BrokerSettings, listener: str, directory_id: bytes) -> InitialVoter:
    """This node as the only first voter. Raises FormatError where it has no such listener, SettingError."""
    listeners, advertised = configured_listeners(broker)
    for endpoint in (*advertised, *listeners):
        if endpoint.name == listener:
            return InitialVoter(broker.node_id, endpoint.host or "localhost", endpoint.port, directory_id)
    raise FormatError("No controller listeners found.")


def levels_of(wanted: Formatting) -> dict[str, int]:
    """The levels of features that the cluster begins with. Raises FormatError."""
    try:
        supported = SUPPORTED if wanted.is_controller else None
        level = _metadata_version(wanted)
        return initial_levels(level, wanted.levels or {}, is_dynamic=wanted.is_dynamic, supported=supported)
    except ValueError as error:
        raise FormatError(str(error)) from None


def _metadata_version(wanted: Formatting) -> int:
    level = (wanted.levels or {}).get(FEATURE)
    if level is None:
        try:
            return HIGHEST if wanted.release is None else level_of(wanted.release)
        except ValueError as error:
            raise FormatError(str(error)) from None
    if wanted.release is not None:
        raise FormatError(f"Use --release-version instead of --feature {FEATURE}=X to avoid ambiguity.")
    if not LOWEST <= level <= HIGHEST:
        raise FormatError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {LOWEST} to {HIGHEST}."
        )
    return level


def _unformatted(disk: Disk, wanted: Formatting) -> list[str]:
    """The folders that are to be formatted: those without ``meta.properties``, or all. What there is has to be this node's.

    Raises FormatError.
    """
    empty: list[str] = []
    formatted: list[str] = []
    for folder in wanted.folders:
        try:
            meta = read_meta_properties(disk, folder)
        except CorruptFileError as error:
            raise FormatError(str(error)) from None
        (empty if meta is None or wanted.is_anew else formatted).append(folder)
        if meta is None:
            continue
        path = join(folder, META_PROPERTIES)
        if meta.cluster_id not in (None, wanted.cluster_id):
            raise FormatError(
                f"Invalid cluster.id in: {path}. Expected {wanted.cluster_id}, but read {meta.cluster_id}"
            )
        if meta.broker_id not in (None, wanted.node_id):
            raise FormatError(f"Invalid node.id in: {path}. Expected {wanted.node_id}, but read {meta.broker_id}")
    if formatted and not wanted.ignores_formatted:
        raise FormatError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore this directory and format the "
            "others."
        )
    return empty


def _own_directory_id(wanted: Formatting) -> bytes | None:
    return next((voter.directory_id for voter in wanted.voters if voter.node_id == wanted.node_id), None)


def _kind_of(folder: str, wanted: Formatting) -> str:
    if folder != wanted.metadata_log_dir:
        return "data directory"
    if not wanted.voters:
        return "metadata directory"
    return "dynamic metadata directory" if _own_directory_id(wanted) is None else "dynamic metadata voter directory"
