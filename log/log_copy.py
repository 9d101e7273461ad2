"""Copying of a log into a future log: the same batches at the same offsets, while the source is being written.

The batches are read in worker threads and appended on the loop, a few per turn. When hardly anything is missing, ``finish``
takes over the rest in one plain function, with what a log knows beside its files, so that nothing comes in between: from
then on one log is as good as the other. What was on stable storage there is on stable storage here.
"""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from ..wire.records import RecordBatch, iter_batches
from .partition_log import PartitionLog
from .segment import SegmentSlice

_CHUNK_BYTES = 256 << 10
_BATCHES_PER_TURN = 32
_MAX_REST_BYTES = 1 << 20
_MAX_GAP = 1 << 30  # compaction may leave gaps that no segment's relative offsets can hold


class CopyAborted(Exception):
    """One of the two logs was closed."""


class LogCopy:
    """Fills ``future`` from ``current``; every method raises CopyAborted and KafkaError.

    CORRUPT_MESSAGE says that a batch of ``current`` is damaged; the copy cannot go on then.
    """

    def __init__(self, current: PartitionLog, future: PartitionLog) -> None:
        """``future`` is empty, or was filled from ``current`` before a restart; what ``current`` lacks is cut from it."""
        self.current = current
        self.future = future
        self._truncations = current.truncations
        self._cut_what_differs()
        if future.cleaned_offset is None:
            future.update_cleaned_offset(current.cleaned_offset)

    def _cut_what_differs(self) -> None:
        """Leave in ``future`` only what ``current`` has, which a follower may have truncated and rewritten since.

        It is found by leader epochs, of each of which all logs have the same records (KIP-101).
        """
        current, future = self.current, self.future
        end_offset = min(future.log_end_offset, current.log_end_offset)
        while end_offset > future.log_start_offset and current.latest_epoch >= 0:
            # One epoch of ``future`` a turn, from the newest down, as a follower does it. An epoch newer than all of
            # ``current`` has no end there, so its latest one is looked up instead.
            epoch = future.epoch_for_offset(end_offset - 1)
            known, known_end = current.end_offset_for_epoch(min(epoch, current.latest_epoch))
            if known == epoch:
                end_offset = min(end_offset, known_end) if epoch >= 0 else end_offset
                break
            # ``current`` lacks this epoch: all of it goes. It begins where the one before it ends.
            epoch_start = future.end_offset_for_epoch(epoch - 1)[1]
            end_offset = min(end_offset, max(epoch_start, future.log_start_offset))
        if end_offset < future.log_end_offset:
            future.truncate_to(end_offset)

    async def step(self) -> bool:
        """Copy what comes next; False when there was nothing."""
        piece = self._next_piece()
        if piece is None:
            return False
        try:
            data = await self.current.folder.workers.run(piece.read)
        except KafkaError:
            self._check()
            if self.current.truncations != self._truncations:
                return True  # what was to be read is not there any more
            raise
        finally:
            piece.release()
        if self.current.truncations != self._truncations:
            return True  # what was read may be parts of what was there before and after
        for count, batch in enumerate(iter_batches(data)):
            if count % _BATCHES_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            self._check()
            if self.current.truncations != self._truncations:
                break
            self._append(batch)
        return True

    def finish(self) -> bool:
        """Make both logs the same, if little enough is missing; False when ``step`` has to go on first."""
        self._check()
        current, future = self.current, self.future
        missing = 0
        while (piece := self._next_piece()) is not None:
            missing += piece.nbytes
            try:
                data = piece.read()
            finally:
                piece.release()
            for batch in iter_batches(data):
                self._append(batch)
            if missing > _MAX_REST_BYTES:
                return False
        if future.log_end_offset < current.log_end_offset:
            future.skip_to(current.log_end_offset)  # its last batches were compacted away
        future.copy_state_from(current)
        return True

    def _check(self) -> None:
        if self.current.is_closed or self.future.is_closed:
            raise CopyAborted

    def _next_piece(self) -> SegmentSlice | None:
        """The batches of ``current`` that follow the end of ``future``, some of them."""
        self._check()
        current, future = self.current, self.future
        offset = future.log_end_offset
        if current.truncations != self._truncations or not current.log_start_offset <= offset <= current.log_end_offset:
            self._truncations = current.truncations
            offset = current.log_start_offset
            future.truncate_fully_and_start_at(offset)
        return current.read(offset, _CHUNK_BYTES, up_to=current.log_end_offset, at_least_one=True)

    def _append(self, batch: RecordBatch) -> None:
        current, future = self.current, self.future
        batch.check_crc()
        if batch.base_offset < future.log_end_offset:
            if future.size:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"offset {batch.base_offset} comes twice")
            future.truncate_fully_and_start_at(batch.base_offset)  # the log starts inside this batch
        elif batch.base_offset - future.log_end_offset > _MAX_GAP:
            future.skip_to(batch.base_offset)
        future.write_stamped(batch, batch.partition_leader_epoch, current.folder.clock.now_ms())
        if future.log_start_offset < current.log_start_offset <= future.log_end_offset:
            future.advance_log_start_offset(current.log_start_offset)
        future.raise_high_watermark(current.high_watermark)
