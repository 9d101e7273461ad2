"""Replacement of a log by the filled *future* log from another log directory.

A future log's folder is ``<topic>-<partition>.<32 hex digits>-future``. The old folder is renamed to a deleted one's name, and
after that the new one to the plain name, each made durable before the next. A crash in between leaves a future log alone,
which the next start gives the plain name.
"""

from __future__ import annotations

import contextlib
import logging
import os

from .directory_logs import DirectoryLogs
from .files import log_dir_name
from .partition_log import PartitionLog

logger = logging.getLogger(__name__)


def exchange_names(source: DirectoryLogs, current: PartitionLog, future: PartitionLog) -> None:
    """Rename both folders; ``source`` is the folder of ``current``.

    When the future log's folder fails, the old names are back. Raises KafkaError(KAFKA_STORAGE_ERROR).
    """
    future_name = os.path.basename(future.directory)
    try:
        source.rename_to_deleted(current)
        source.folder.disk.sync_dir(source.folder.path)
    except OSError as error:
        raise source.folder.fail(f"cannot rename {current.directory}", error, is_half_done=True) from error
    try:
        _give_plain_name(future)
    except OSError as error:
        _take_back(current, future, future_name)
        raise future.folder.fail(f"cannot rename {future.directory}", error, is_half_done=True) from error


def _give_plain_name(future: PartitionLog) -> None:
    future.rename_dir(log_dir_name(future.topic, future.partition))
    future.folder.disk.sync_dir(future.folder.path)


def _take_back(current: PartitionLog, future: PartitionLog, future_name: str) -> None:
    """Undo the renames, the last one first, so that a crash does not leave the partition in two folders."""
    with contextlib.suppress(OSError):
        future.rename_dir(future_name)
    try:
        current.rename_dir(log_dir_name(current.topic, current.partition))
    except OSError as error:
        current.folder.fail(f"cannot rename {current.directory}", error, is_half_done=True)


def finish_replacement(future: PartitionLog) -> bool:
    """After a crash between the two renames: whether the future log has the plain name now."""
    logger.info("%s: finishing the move of %s-%d", future.directory, future.topic, future.partition)
    try:
        _give_plain_name(future)
    except OSError as error:
        future.folder.fail(f"cannot rename {future.directory}", error)
        return False
    return True
