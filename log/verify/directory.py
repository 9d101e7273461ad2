"""The check of a log directory: its lock, identity and checkpoints, then every partition in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from ...base.partitions import TopicPartition
from ...wire.schema import uuid_to_text
from ..checkpoints import (
    CLEAN_SHUTDOWN,
    LOCK,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    CorruptFileError,
    read_meta_properties,
    read_offsets,
)
from ..disk import Disk, join
from ..files import DELETE_DIR_SUFFIX, LOG_SUFFIX, STRAY_DIR_SUFFIX, parse_file_name, parse_topic_partition_name
from .findings import Finding, Findings, reason
from .partition import PartitionCheck
from .start import Expectations

_SIGNS = (META_PROPERTIES, LOCK, CLEAN_SHUTDOWN, *OFFSET_CHECKPOINTS)


class NotADataFolderError(Exception):
    """A folder in which no broker has kept its data. ``str()`` is one line for people."""


FurtherCheck = Callable[[Disk, str], Iterator[Finding]]


def verify_folder(disk: Disk, path: str, further: FurtherCheck = lambda disk, path: iter(())) -> Iterator[Finding]:
    """What is wrong in the log directory, as it is found. ``further`` checks what this layer does not know.

    Raises NotADataFolderError, BlockingIOError while a broker holds the folder, and OSError.
    """
    _check_kind(disk, path)
    lock = disk.lock(join(path, LOCK)) if disk.exists(join(path, LOCK)) else None
    try:
        yield from _verify(disk, path)
        yield from further(disk, path)
    finally:
        if lock is not None:
            lock.close()


def _check_kind(disk: Disk, path: str) -> None:
    names = disk.names(path)
    if any(name in names for name in _SIGNS):
        return
    folders = [name for name in names if parse_topic_partition_name(name) is not None and disk.is_dir(join(path, name))]
    if any(_has_segment(disk.names(join(path, name))) for name in folders):
        return
    if _has_segment(names):
        raise NotADataFolderError(f"{path} is the directory of one partition: check the log directory that contains it")
    raise NotADataFolderError(
        f"{path} is not a log directory of a broker: it has no {META_PROPERTIES}, no checkpoint and no partition"
    )


def _has_segment(names: Iterable[str]) -> bool:
    return any((found := parse_file_name(name)) is not None and found[1] == LOG_SUFFIX for name in names)


def _verify(disk: Disk, path: str) -> Iterator[Finding]:
    findings = Findings()
    names = disk.names(path)
    logs = [
        (found, name)
        for name in names
        if (found := parse_topic_partition_name(name)) is not None and disk.is_dir(join(path, name))
    ]
    _check_identity(disk, path, findings, has_logs=bool(logs))
    is_clean = CLEAN_SHUTDOWN in names
    if logs and not is_clean:
        problem = "it is missing, so the last stop was not clean"
        findings.add(CLEAN_SHUTDOWN, problem, "scans every log from its recovery point on")
    for name in names:
        if name.endswith(DELETE_DIR_SUFFIX):
            findings.add(name, "it is left of a deletion", "removes it")
        elif name.endswith(STRAY_DIR_SUFFIX):
            findings.add(name, "it was set aside because it is of no topic of the cluster", "leaves it alone")
        elif name.endswith(".tmp"):
            findings.add(name, "it was not written to its end", "leaves it until the file is written again")
    partitions = {found for found, _ in logs}
    checkpoints = [_read_checkpoint(disk, path, name, partitions, findings) for name in OFFSET_CHECKPOINTS]
    yield from findings.found
    topic_ids: dict[str, bytes] = {}
    for key, name in logs:
        recovery_point, log_start_offset, high_watermark, cleaned_offset = (offsets.get(key) for offsets in checkpoints)
        expected = Expectations(is_clean, recovery_point, log_start_offset, high_watermark, cleaned_offset)
        findings = Findings(name)
        check = PartitionCheck(disk, join(path, name), findings, expected)
        check.run()
        topic_id = check.topic_id
        if topic_id is not None and topic_ids.setdefault(key[0], topic_id) != topic_id:
            problem = f"the topic id is {uuid_to_text(topic_id)}, and another in the topic's other partitions"
            findings.add(
                PARTITION_METADATA, problem, "sets the partition aside (*-stray) whose id is not that of the topic"
            )
        yield from findings.found


def _check_identity(disk: Disk, path: str, findings: Findings, *, has_logs: bool) -> None:
    try:
        meta = read_meta_properties(disk, path)
    except CorruptFileError as error:
        findings.add(META_PROPERTIES, reason(error), "refuses the directory")
        return
    if meta is None:
        if has_logs:
            findings.add(META_PROPERTIES, "it is missing", "adopts the directory and writes it")
    elif meta.cluster_id is None or meta.broker_id is None:
        missing = "cluster" if meta.cluster_id is None else "broker"
        findings.add(META_PROPERTIES, f"it names no {missing}", f"adopts the directory for its own {missing}")


def _read_checkpoint(
    disk: Disk, path: str, name: str, partitions: Set[TopicPartition], findings: Findings
) -> dict[TopicPartition, int]:
    try:
        offsets = read_offsets(disk, join(path, name))
    except CorruptFileError as error:
        findings.add(name, reason(error), "continues without it")
        return {}
    for topic, partition in sorted(offsets.keys() - partitions):
        findings.add(name, f"it has an entry for {topic}-{partition}, which is not here", "forgets it")
    return offsets
