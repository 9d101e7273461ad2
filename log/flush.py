"""Flushes of a log to stable storage in a worker thread, which advance its recovery point.

What is below the recovery point is never scanned again, so everything that recovery would rebuild goes first: batches,
the indexes and the producer snapshots of inactive segments, leader epochs, and the names of new files. The indexes of
the active segment are not among them: the segment that holds the recovery point is always scanned.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

import trio

from .checkpoints import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, write_leader_epochs
from .disk import Disk, OpenFile, join
from .files import SEGMENT_INDEX_SUFFIXES, SNAPSHOT_SUFFIX, file_name
from .leader_epochs import LeaderEpochCache
from .log_segments import LogSegments
from .segment import LogSegment


class FlushJob:
    """What one flush has to do, gathered on the loop; ``run`` touches files only. The caller pins the segments."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        files: Sequence[OpenFile],
        paths: Sequence[str],
        epochs: list[tuple[int, int]] | None,
        *,
        has_new_names: bool,
        has_new_folder: bool,
    ) -> None:
        """``paths`` are of further files to sync, if they are there; ``epochs`` the leader epochs to write, None for none."""
        self._disk = disk
        self._directory = directory
        self._files = files
        self._paths = paths
        self._epochs = epochs
        self._has_new_names = has_new_names
        self._has_new_dir = has_new_folder

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
        if self._has_new_dir:
            disk.sync_dir(os.path.dirname(self._directory))


class LogFlusher:
    """Flushes one log, one flush at a time, and owns its recovery point.

    ``on_flush`` is called when the recovery point has moved.
    """

    __slots__ = (
        "_leader_epochs",
        "_lowered",
        "_on_flush",
        "_segments",
        "recovery_point",
        "under_way",
        "unflushed_truncation",
    )

    def __init__(
        self,
        segments: LogSegments,
        leader_epochs: LeaderEpochCache,
        recovery_point: int,
        on_flush: Callable[[], None],
    ) -> None:
        self._segments = segments
        self._leader_epochs = leader_epochs
        self._on_flush = on_flush
        self.recovery_point = recovery_point
        """Everything below this offset is on stable storage."""
        self.under_way: trio.Event | None = None
        """Set at the end of the flush that is running; None while none is."""
        self.unflushed_truncation: int | None = None
        """The lowest offset that the log was truncated to and that no flush has passed since, or None.

        From there on a power loss may bring the removed records back in place of those that were appended after them.
        """
        self._lowered = 0  # calls of ``lower``, by which a flush notices one during its wait

    def lower(self, recovery_point: int) -> None:
        """The log is about to change from ``recovery_point`` on: what a running flush has brought to disk is void."""
        self._lowered += 1
        self.recovery_point = min(self.recovery_point, recovery_point)
        if self.unflushed_truncation is None or recovery_point < self.unflushed_truncation:
            self.unflushed_truncation = recovery_point

    def start_at(self, offset: int) -> None:
        """The log is empty and goes on at ``offset``."""
        self.recovery_point = offset

    async def flush(self, *, inactive_only: bool) -> None:
        """Return once every record there is, or those of inactive segments, is on stable storage.

        Raises KafkaError(KAFKA_STORAGE_ERROR).
        """
        segments = self._segments
        wanted = self._target(inactive_only)
        # A truncation during the wait may leave the end below ``wanted``, which no flush would reach.
        while min(wanted, self._target(False)) > self.recovery_point and not segments.is_closed:
            if self.under_way is not None:
                await self.under_way.wait()
                continue
            segments.folder.check_online()
            self.under_way = trio.Event()
            try:
                with self._job(self._target(inactive_only), is_last=False) as job:
                    await segments.folder.workers.run(job.run)
            finally:
                self.under_way.set()
                self.under_way = None
        if segments.is_closed:
            segments.folder.check_online()  # or it was deleted, or is in another folder

    def _target(self, inactive_only: bool) -> int:
        active = self._segments.active
        if active is None:
            return self.recovery_point
        return active.base_offset if inactive_only else active.next_offset

    async def flush_last(self) -> None:
        """Flush for a clean stop: also the indexes and the snapshot of the active segment, which the caller has written.

        Raises KafkaError.
        """
        with self._job(self._target(False), is_last=True) as job:
            await self._segments.folder.workers.run(job.run)

    def flush_at_once(self) -> None:
        """Bring everything to stable storage before anything else happens in the broker. Raises KafkaError."""
        with self._job(self._target(False), is_last=False) as job:
            job.run()

    @contextlib.contextmanager
    def _job(self, end_offset: int, *, is_last: bool) -> Iterator[FlushJob]:
        """What brings the records below ``end_offset`` to disk, to be run in the block; then the recovery point moves there.

        The segments stay open meanwhile. Raises KafkaError.
        """
        segments, leader_epochs, lowered = self._segments, self._leader_epochs, self._lowered
        epochs = leader_epochs.entries() if leader_epochs.is_dirty else None
        active = segments.active
        assert active is not None
        flushed = [s for s in segments if s.next_offset > self.recovery_point and s.base_offset < end_offset]
        if is_last and active not in flushed:
            flushed.append(active)
        with contextlib.ExitStack() as stack:
            for segment in flushed:
                stack.enter_context(segment.file.pinned())
            began = segments.folder.clock.elapsed()
            try:
                yield self._make_job(flushed, epochs, is_last=is_last)
                segments.folder.flush_times.note((segments.folder.clock.elapsed() - began) * 1000)
            except OSError as error:
                if segments.is_closed:
                    return  # the log was deleted or has moved during the flush, and its files have gone
                raise segments.folder.fail(f"cannot flush {segments.directory}", error) from error
        if self._lowered != lowered:
            return  # truncated meanwhile: what was synced may have been overwritten since
        if segments.active is not active:
            # It was rolled meanwhile, and is not scanned once the recovery point is at its end; but the job took it
            # for active, and left its indexes out.
            end_offset = min(end_offset, active.base_offset)
        self.recovery_point = max(self.recovery_point, end_offset)
        if self.unflushed_truncation is not None and self.recovery_point > self.unflushed_truncation:
            self.unflushed_truncation = None
        self._on_flush()
        if epochs == leader_epochs.entries():  # an append may have begun another epoch meanwhile
            leader_epochs.is_dirty = False

    def _make_job(
        self, flushed: Sequence[LogSegment], epochs: list[tuple[int, int]] | None, *, is_last: bool
    ) -> FlushJob:
        """Raises OSError."""
        segments, recovery_point = self._segments, self.recovery_point
        directory = segments.directory
        paths: list[str] = []
        for segment in flushed:
            if is_last or segment is not segments.active:
                segment.aborted.write()
                paths += [segment.file.path_of(suffix) for suffix in SEGMENT_INDEX_SUFFIXES]
                paths.append(join(directory, file_name(segment.next_offset, SNAPSHOT_SUFFIX)))
        has_new_folder = recovery_point <= segments[0].base_offset
        if has_new_folder:
            # A log that has lost its topic's id is no replica of a KRaft cluster, whatever records are in it.
            paths.append(join(directory, PARTITION_METADATA))
        return FlushJob(
            segments.folder.disk,
            directory,
            [segment.file.open() for segment in flushed],
            paths,
            epochs,
            has_new_names=is_last
            or epochs is not None
            or bool(paths)
            or self.unflushed_truncation is not None  # the removal of its segments has to last as well
            or any(segment.base_offset >= recovery_point for segment in flushed),
            has_new_folder=has_new_folder,
        )
