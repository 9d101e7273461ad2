"""File and directory names in a log directory, as in Apache Kafka.

A partition's folder is ``<topic>-<partition>``; one that is being deleted ``<topic>-<partition>.<32 hex digits>-delete``;
one that is being filled, to replace the partition's folder in another entry of log.dirs, has ``-future`` at that place, and
one that belongs to no topic of the cluster ``-stray``.
A segment's files are named by its base offset in 20 digits and a suffix; ``.deleted`` is appended to one that is to be
removed. ``.cleaned`` and ``.swap`` are compaction's: a ``.swap`` file is complete and replaces segments, a ``.cleaned``
file was never finished.
"""

from __future__ import annotations

import random
import re

from ..base.partitions import TopicPartition

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SEGMENT_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
SEGMENT_SUFFIXES = (LOG_SUFFIX, *SEGMENT_INDEX_SUFFIXES)
"""What a segment may consist of; only one with aborted transactions has all of it."""
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETE_DIR_SUFFIX = "-delete"
FUTURE_DIR_SUFFIX = "-future"
STRAY_DIR_SUFFIX = "-stray"
CHECKPOINT_SUFFIX = ".checkpoint"
"""Of a snapshot of a quorum's metadata log (see ``metadata_snapshots``)."""
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
"""The first records of a cluster, in the form of a snapshot."""
METADATA_PARTITION_DIR = "__cluster_metadata-0"
"""The log of the cluster's metadata on a KRaft node. It belongs to no topic, and no other broker opens it."""

OLD_STATE_DIR = "__cluster_state"
"""Where a broker before KRaft kept the cluster's metadata; a file for people once they were taken over."""
OLD_STATE_TAKEN_DIR = "__cluster_state_taken"
"""The same directory, while it is being set aside."""

_MAX_NAME_LENGTH = 255
_OFFSET_FILE = re.compile(r"(\d{20})(\.[a-z]+)")
_LOG_DIR_NAME = re.compile(r"([A-Za-z0-9._-]+)-(\d+)(?:\.[0-9a-f]{32}" + FUTURE_DIR_SUFFIX + ")?")


def file_name(offset: int, suffix: str) -> str:
    """The name of the file of ``offset``."""
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str] | None:
    """Offset and suffix of ``file_name``; None for another name."""
    match = _OFFSET_FILE.fullmatch(name)
    return None if match is None else (int(match[1]), match[2])


def log_dir_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_topic_partition_name(name: str) -> TopicPartition | None:
    """Topic and partition of a partition's folder, or of that of a future log; None for another name."""
    match = _LOG_DIR_NAME.fullmatch(name)
    return None if match is None or name == METADATA_PARTITION_DIR else TopicPartition(match[1], int(match[2]))


def log_future_dir_name(topic: str, partition: int, randomness: random.Random) -> str | None:
    """A new name for the folder of a future log; None when file systems do not allow one so long."""
    name = f"{topic}-{partition}.{randomness.getrandbits(128):032x}{FUTURE_DIR_SUFFIX}"
    return name if len(name) <= _MAX_NAME_LENGTH else None


def log_delete_dir_name(topic: str, partition: int, randomness: random.Random) -> str:
    """A new name for the folder of a deleted partition, cut to what file systems allow."""
    return _log_dir_name_capped(topic, partition, randomness, DELETE_DIR_SUFFIX)


def log_stray_dir_name(topic: str, partition: int, randomness: random.Random) -> str:
    """A new name for a folder that is set aside, cut to what file systems allow."""
    return _log_dir_name_capped(topic, partition, randomness, STRAY_DIR_SUFFIX)


def _log_dir_name_capped(topic: str, partition: int, randomness: random.Random, suffix: str) -> str:
    ending = f"-{partition}.{randomness.getrandbits(128):032x}{suffix}"
    return topic[: _MAX_NAME_LENGTH - len(ending)] + ending
