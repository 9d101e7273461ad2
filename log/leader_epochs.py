"""The leader epoch cache of a partition: the start offset of each leader epoch (KIP-101, KIP-279, KIP-320).

File ``leader-epoch-checkpoint``: see ``checkpoints``. It is written, with a sync, before the recovery point passes the
start of an epoch; epochs beyond the recovery point are found again in the batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochCache:
    """(epoch, start offset) entries, both ascending."""

    __slots__ = ("epochs", "is_dirty", "start_offsets")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.epochs = [epoch for epoch, _ in entries or ()]
        self.start_offsets = [start for _, start in entries or ()]
        self.is_dirty = False
        """Whether the entries differ from the file."""

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self.epochs, self.start_offsets, strict=True))

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1] if self.epochs else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that ``epoch`` writes from ``start_offset`` on; entries that contradict it go."""
        if self.epochs and epoch == self.epochs[-1] and start_offset >= self.start_offsets[-1]:
            return
        while self.epochs and (self.epochs[-1] >= epoch or self.start_offsets[-1] >= start_offset):
            self.epochs.pop()
            self.start_offsets.pop()
        self.epochs.append(epoch)
        self.start_offsets.append(start_offset)
        self.is_dirty = True

    def correct(self, epoch: int, first: int, last: int) -> None:
        """The records from offset ``first`` to ``last`` are of ``epoch``: entries that say otherwise go, and those behind.

        The file can have them of records that were truncated after it was written. Those of an old leader, which it had
        written alone, have a later epoch than what took their place.
        """
        if epoch < 0 or self.epoch_for_offset(first) == epoch == self.epoch_for_offset(last):
            return
        while self.epochs and (self.epochs[-1] > epoch or self.start_offsets[-1] > first):
            self.epochs.pop()
            self.start_offsets.pop()
            self.is_dirty = True
        self.assign(epoch, first)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch at or below ``epoch`` and the offset where it ends; (-1, -1) when that is unknown."""
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        higher = bisect_right(self.epochs, epoch)
        if higher == len(self.epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if higher == 0:
            # Older than all: its records are gone here, and the follower has to go on from where the first known epoch starts.
            return epoch, self.start_offsets[0]
        return self.epochs[higher - 1], self.start_offsets[higher]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch that wrote ``offset``; -1 when unknown."""
        slot = bisect_right(self.start_offsets, offset) - 1
        return self.epochs[slot] if slot >= 0 else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that start at or after ``end_offset``."""
        keep = bisect_left(self.start_offsets, end_offset)
        if keep < len(self.epochs):
            del self.epochs[keep:]
            del self.start_offsets[keep:]
            self.is_dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that end at or before ``start_offset``; the one that holds it starts there now."""
        slot = bisect_right(self.start_offsets, start_offset) - 1
        if slot >= 0 and (slot or self.start_offsets[0] != start_offset):
            del self.epochs[:slot]
            del self.start_offsets[:slot]
            self.start_offsets[0] = start_offset
            self.is_dirty = True

    def copy_state_from(self, other: LeaderEpochCache) -> None:
        """Copy the entries of another cache."""
        self.epochs, self.start_offsets = other.epochs[:], other.start_offsets[:]
        self.is_dirty = True

    def clear(self) -> None:
        if self.epochs:
            self.epochs.clear()
            self.start_offsets.clear()
            self.is_dirty = True
