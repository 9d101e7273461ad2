"""Forcing a log to stable storage, in a worker thread, so that the recovery point may move.

What is below the recovery point is never scanned again, so everything that recovery would rebuild goes first: batches,
the indexes and the producer snapshots of inactive segments, leader epochs, and the names of new files. The indexes of
the active segment are not among them: the segment that holds the recovery point is always scanned.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .checkpoints import LEADER_EPOCH_CHECKPOINT, write_leader_epochs
from .disk import join
from .files import SEGMENT_INDEX_SUFFIXES

if TYPE_CHECKING:
    from .partition_log import PartitionLog
    from .segment import LogSegment


class FlushJob:
    """What one flush has to do, gathered on the loop; ``run`` touches files only. The caller pins the segments."""

    def __init__(
        self,
        partition_log: PartitionLog,
        segments: Sequence[LogSegment],
        epochs: list[tuple[int, int]] | None,
        *,
        is_last: bool,
    ) -> None:
        """``segments`` are to be flushed; ``epochs`` are the leader epochs to write, None for none. Raises OSError.

        ``is_last``: a clean stop, whose indexes and snapshot of the active segment are in their files already.
        """
        self._disk = partition_log.folder.disk
        self._directory = partition_log.directory
        self._epochs = epochs
        self._files = [segment.file() for segment in segments]
        self._paths: list[str] = []
        recovery_point = partition_log.recovery_point
        self._has_new_names = is_last or epochs is not None
        self._has_new_names |= any(segment.base_offset >= recovery_point for segment in segments)
        self._has_new_folder = recovery_point <= partition_log.segments[0].base_offset
        for segment in segments:
            if is_last or segment is not partition_log.segments[-1]:
                self._paths += [segment.path_of(suffix) for suffix in SEGMENT_INDEX_SUFFIXES]
                self._paths.append(partition_log.producer_state.path_of(segment.next_offset))
        self._has_new_names |= bool(self._paths)

    def run(self) -> None:
        """Write and sync. Raises OSError."""
        disk = self._disk
        for file in self._files:
            file.sync()
        for path in self._paths:
            # Retention renames files meanwhile, and few segments have aborted transactions.
            with contextlib.suppress(FileNotFoundError):
                opened = disk.open(path)
                try:
                    if opened.size():
                        opened.sync()
                finally:
                    opened.close()
        if self._epochs is not None:
            write_leader_epochs(disk, join(self._directory, LEADER_EPOCH_CHECKPOINT), self._epochs)
        if self._has_new_names:
            disk.sync_dir(self._directory)
        if self._has_new_folder:
            disk.sync_dir(os.path.dirname(self._directory))


async def flush_up_to(partition_log: PartitionLog, end_offset: int, *, is_last: bool = False) -> None:
    """Bring the records below ``end_offset`` to stable storage and move the recovery point there. Raises KafkaError."""
    with _flushing(partition_log, end_offset, is_last=is_last) as job:
        await partition_log.folder.workers.run(job.run)


def flush_at_once(partition_log: PartitionLog) -> None:
    """Bring everything to stable storage before anything else happens in the broker. Raises KafkaError."""
    with _flushing(partition_log, partition_log.log_end_offset, is_last=False) as job:
        job.run()


@contextlib.contextmanager
def _flushing(partition_log: PartitionLog, end_offset: int, *, is_last: bool) -> Iterator[FlushJob]:
    """The job, to be run in the block; its segments stay open meanwhile. Raises KafkaError."""
    truncations = partition_log.truncations
    leader_epochs = partition_log.leader_epochs
    epochs = leader_epochs.entries() if leader_epochs.is_dirty else None
    recovery_point = partition_log.recovery_point
    segments = [s for s in partition_log.segments if s.next_offset > recovery_point and s.base_offset < end_offset]
    if is_last and partition_log.segments[-1] not in segments:
        segments.append(partition_log.segments[-1])
    active = partition_log.segments[-1]
    for segment in segments:
        segment.pins += 1
    try:
        yield FlushJob(partition_log, segments, epochs, is_last=is_last)
    except OSError as error:
        if partition_log.is_closed:
            return
        raise partition_log.folder.fail(f"cannot flush {partition_log.directory}", error) from error
    finally:
        for segment in segments:
            segment.unpin()
    if partition_log.truncations == truncations:
        if partition_log.segments[-1] is not active:
            # It was rolled meanwhile, and is not scanned once the recovery point is at its end; but the job took it
            # for active, and left its indexes out.
            end_offset = min(end_offset, active.base_offset)
        partition_log.recovery_point = max(partition_log.recovery_point, end_offset)
        if partition_log.on_flush is not None:
            partition_log.on_flush()
        if epochs == partition_log.leader_epochs.entries():
            partition_log.leader_epochs.is_dirty = False
