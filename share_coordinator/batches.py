"""The merge of state batches, as Kafka's PersisterStateBatchCombiner does it.

Where two batches have a record in common, the one with the higher delivery count has it, and of equal counts the one with the
higher delivery state. A leader never writes lower ones than before, so its later batch counts. A batch that is written twice
changes nothing.

The result has no batches that overlap, and no neighbours in one state with one count. It begins at the start offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from .state import NOT_BEGUN, StateBatch

_first = attrgetter("first_offset")
_last = attrgetter("last_offset")


def merge(known: Sequence[StateBatch], added: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """``known``, which is a result of this function, with ``added`` in any order; nothing below ``start_offset``.

    The cost of an added batch is that of the batches it overlaps.
    """
    merged = list(known)
    for batch in added:
        if not merged or merged[-1].last_offset < batch.first_offset:  # most are in order, and this is fast
            _append(merged, batch)
            continue
        # With the neighbours that it touches: they may be in the same state.
        begin = bisect_left(merged, batch.first_offset - 1, key=_last)
        end = bisect_right(merged, batch.last_offset + 1, key=_first)
        merged[begin:end] = _joined(_overlaid(merged[begin:end], batch))
    if start_offset == NOT_BEGUN:
        return tuple(merged)
    del merged[: bisect_left(merged, start_offset, key=_last)]
    if merged and merged[0].first_offset < start_offset:
        merged[0] = merged[0]._replace(first_offset=start_offset)
    return tuple(merged)


def _overlaid(pieces: Iterable[StateBatch], batch: StateBatch) -> Iterator[StateBatch]:
    """The parts of ``pieces`` and ``batch``, in order and without overlaps."""
    first, last, *_ = batch
    position = first  # up to which ``batch`` was given out
    for piece in pieces:
        if position <= last and position < piece.first_offset:
            yield batch._replace(first_offset=position, last_offset=min(piece.first_offset - 1, last))
        if piece.first_offset < first:
            yield piece._replace(last_offset=min(piece.last_offset, first - 1))
        common_first, common_last = max(piece.first_offset, first), min(piece.last_offset, last)
        if common_first <= common_last:
            yield max(piece, batch, key=_rank)._replace(first_offset=common_first, last_offset=common_last)
        if piece.last_offset > last:
            yield piece._replace(first_offset=max(piece.first_offset, last + 1))
        position = max(position, piece.last_offset + 1)
    if position <= last:
        yield batch._replace(first_offset=position)


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    joined: list[StateBatch] = []
    for batch in batches:
        _append(joined, batch)
    return joined


def _append(joined: list[StateBatch], batch: StateBatch) -> None:
    """Add a batch that comes after all of ``joined``."""
    if joined:
        before = joined[-1]
        if before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
            joined[-1] = before._replace(last_offset=batch.last_offset)
            return
    joined.append(batch)


def _rank(batch: StateBatch) -> tuple[int, int]:
    return batch.delivery_count, batch.delivery_state
