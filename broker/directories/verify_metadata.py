"""Offline checks of the cluster's metadata in a log directory: the faults, and the effect of each on a start.

They are what a broker before KRaft has left (``old_state``), the first records of a cluster, and the metadata log with its
snapshots. A directory without any of them is as sound as one that has them. Nothing here writes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ...controller.quorum.bootstrap import read_bootstrap
from ...controller.quorum.features import initial_levels
from ...controller.quorum.metadata_version import HIGHEST
from ...controller.raft.election_file import FILE_NAME as QUORUM_STATE
from ...controller.raft.election_file import read_election
from ...controller.zookeeper.leaving.old_state import (
    KEPT_PREFIX,
    examine_state,
    has_kept_state,
    has_state,
    is_being_set_aside,
)
from ...controller.zookeeper.leaving.tree_image import MoveRules, UnmovableStateError, tree_image
from ...controller.zookeeper.store.journal import JOURNAL, SNAPSHOT, CorruptStateError
from ...log.checkpoints import CorruptFileError, read_meta_properties
from ...log.disk import Disk, join
from ...log.files import (
    BOOTSTRAP_CHECKPOINT,
    CHECKPOINT_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    METADATA_PARTITION_DIR,
    OLD_STATE_DIR,
    OLD_STATE_TAKEN_DIR,
)
from ...log.metadata_snapshots import PART_SUFFIX, SnapshotReader, list_snapshots
from ...log.verify.findings import Finding, Findings, reason
from ...log.verify.partition import PartitionCheck
from ...log.verify.start import Expectations

_IS_REFUSED = "refuses the directory"


def verify_metadata(disk: Disk, path: str) -> Iterator[Finding]:
    """What is wrong with the metadata in the log directory. Raises OSError."""
    yield from _verify_state(disk, path)
    yield from _verify_bootstrap(disk, path)
    if disk.is_dir(join(path, METADATA_PARTITION_DIR)):
        yield from _verify_log(disk, path)


# --- before KRaft -----------------------------------------------------------------------------------------------------


def _verify_state(disk: Disk, path: str) -> Iterator[Finding]:
    findings = Findings()
    if has_state(disk, path):
        _check_state(disk, path, findings)
        if has_kept_state(disk, path) or is_being_set_aside(disk, path):
            problem = f"{KEPT_PREFIX}* exists, so an Ottla before KRaft has run without the metadata set aside there"
            findings.add(OLD_STATE_DIR, problem, _IS_REFUSED)
        elif disk.exists(join(path, BOOTSTRAP_CHECKPOINT)):
            findings.add(OLD_STATE_DIR, "its take-over into KRaft did not come to its end", "takes it over")
    if is_being_set_aside(disk, path):
        findings.add(OLD_STATE_TAKEN_DIR, "it was taken over, and not set aside to its end", "sets it aside")
    elif has_kept_state(disk, path):
        try:
            examine_state(disk, join(path, KEPT_PREFIX))
        except CorruptStateError as error:
            findings.add(KEPT_PREFIX + _file_of(error), _why(error), "does not look there, and there is no way back")
    yield from findings.found


def _check_state(disk: Disk, path: str, findings: Findings) -> None:
    """Whether the tree can be read, and become the records of a cluster of KRaft."""
    try:
        tree, is_torn = examine_state(disk, join(path, OLD_STATE_DIR) + "/")
        if is_torn:
            name = join(OLD_STATE_DIR, JOURNAL)
            findings.add(name, "its last write did not come to its end", "cuts that off: it was never acknowledged")
        rules = MoveRules(initial_levels(HIGHEST, {}, is_dynamic=True), broker_id=_node_id(disk, path))
        tree_image(tree, rules, random.Random(0))
    except CorruptStateError as error:
        findings.add(join(OLD_STATE_DIR, _file_of(error)), _why(error), _IS_REFUSED)
    except UnmovableStateError as error:
        findings.add(OLD_STATE_DIR, str(error), _IS_REFUSED)


def _node_id(disk: Disk, path: str) -> int:
    """Whose the directory is; what is wrong with its file is found elsewhere."""
    try:
        meta = read_meta_properties(disk, path)
    except CorruptFileError:
        return 1
    return 1 if meta is None or meta.broker_id is None else meta.broker_id


def _why(error: CorruptStateError) -> str:
    return (error.message or "").rpartition(": ")[2]


def _file_of(error: CorruptStateError) -> str:
    return next((name for name in (SNAPSHOT, JOURNAL) if f" {name}: " in (error.message or "")), JOURNAL)


# --- KRaft ------------------------------------------------------------------------------------------------------------


def _verify_bootstrap(disk: Disk, path: str) -> Iterator[Finding]:
    if disk.exists(join(path, BOOTSTRAP_CHECKPOINT)):
        try:
            read_bootstrap(disk, path)
        except CorruptFileError as error:
            yield Finding(BOOTSTRAP_CHECKPOINT, reason(error), _IS_REFUSED)


def _verify_log(disk: Disk, path: str) -> Iterator[Finding]:
    folder = join(path, METADATA_PARTITION_DIR)
    findings = Findings(METADATA_PARTITION_DIR)
    names = disk.names(folder)
    for name in names:
        if name.endswith((CHECKPOINT_SUFFIX + PART_SUFFIX, CHECKPOINT_SUFFIX + DELETED_SUFFIX)):
            findings.add(name, "it was not written, or removed, to its end", "removes it")
    try:
        read_election(disk, folder)
    except CorruptFileError as error:
        findings.add(QUORUM_STATE, reason(error), _IS_REFUSED)
    snapshots = list_snapshots(disk, folder)
    for snapshot in snapshots:
        name = snapshot.file_name
        try:
            for _ in SnapshotReader(disk.read_file(join(folder, name)), name).versioned_batches():
                pass
        except CorruptFileError as error:
            findings.add(name, reason(error), _IS_REFUSED if snapshot == snapshots[-1] else "does not look there")
    yield from findings.found
    if any(name.endswith(LOG_SUFFIX) for name in names):
        findings = Findings(METADATA_PARTITION_DIR)
        PartitionCheck(disk, folder, findings, Expectations(is_clean=False)).run()
        yield from findings.found
