"""Taking the end of a log away, and deleting segments.

A deleted segment's files are renamed to ``.deleted`` and removed after ``file.delete.delay.ms``; slices of it stay good.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from .files import DELETED_SUFFIX, SEGMENT_SUFFIXES
from .producer_state import replay_producers

if TYPE_CHECKING:
    from .partition_log import PartitionLog
    from .segment import LogSegment

logger = logging.getLogger(__name__)


def delete_segment(partition_log: PartitionLog, segment: LogSegment, *, keeps_snapshot: bool = False) -> None:
    """Delete a segment that the log's list no longer has. Raises OSError."""
    folder = partition_log.folder
    partition_log.size -= segment.size
    for suffix in SEGMENT_SUFFIXES:
        path = segment.path_of(suffix)
        with contextlib.suppress(FileNotFoundError):
            folder.disk.rename(path, path + DELETED_SUFFIX)
            folder.delete_later(path + DELETED_SUFFIX, partition_log.settings.file_delete_delay_ms)
    if not keeps_snapshot:
        partition_log.producer_state.remove_snapshot(segment.base_offset)
    segment.close()


def truncate(partition_log: PartitionLog, offset: int) -> None:
    """Remove the batches that reach to ``offset``, which lies in the log, or beyond. Raises OSError, KafkaError.

    The log then ends where the first of them began: a leader sends it whole again, and a start that finds segments
    with a gap between them takes it for damage.
    """
    segments = partition_log.segments
    holder = next(segment for segment in reversed(segments) if segment.base_offset <= offset)
    offset = min(offset, holder.batch_base_offset(offset))
    logger.info("%s: truncating to offset %d", partition_log.directory, offset)
    _lower_checkpoints(partition_log, min(partition_log.log_start_offset, offset), offset)
    while segments[-1].base_offset > offset:
        delete_segment(partition_log, segments.pop())
    active = segments[-1]
    size = active.size
    active.truncate_to(offset)
    partition_log.size -= size - active.size
    partition_log.log_end_offset = offset
    partition_log.high_watermark = min(partition_log.high_watermark, offset)
    partition_log.leader_epochs.truncate_from_end(offset)
    producers = partition_log.producer_state
    had_producers = bool(producers.producers)
    producers.load_newest_snapshot(segments[0].base_offset, offset)
    if had_producers:
        replay_producers(producers, segments, offset)
    producers.map_end_offset = offset


def truncate_fully(partition_log: PartitionLog, offset: int) -> None:
    """Remove everything; the next record gets ``offset``. Raises OSError."""
    logger.info("%s: starting anew at offset %d", partition_log.directory, offset)
    _lower_checkpoints(partition_log, 0, 0)
    old, partition_log.segments = partition_log.segments, []
    for segment in old:
        delete_segment(partition_log, segment)
    partition_log.producer_state.truncate_fully(offset)
    partition_log.leader_epochs.clear()
    partition_log.log_start_offset = partition_log.log_end_offset = offset
    partition_log.high_watermark = partition_log.recovery_point = offset
    partition_log.start_first_segment()
    partition_log.folder.checkpoint_soon()


def _lower_checkpoints(partition_log: PartitionLog, log_start_offset: int, recovery_point: int) -> None:
    """Before the log changes below them: the checkpoints must not vouch for what is written there later."""
    partition_log.truncations += 1
    cleaned_offset = partition_log.cleaned_offset
    if cleaned_offset is not None:
        partition_log.cleaned_offset = min(cleaned_offset, recovery_point)
    if (
        log_start_offset < partition_log.log_start_offset
        or recovery_point < partition_log.recovery_point
        or partition_log.cleaned_offset != cleaned_offset
    ):
        partition_log.log_start_offset = min(partition_log.log_start_offset, log_start_offset)
        partition_log.recovery_point = min(partition_log.recovery_point, recovery_point)
        partition_log.folder.checkpoint_now()
