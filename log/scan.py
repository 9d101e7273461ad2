"""Iteration over the batches of a segment file, from its bytes alone."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import NamedTuple

from ..base.errors import ErrorCode, KafkaError
from ..wire.batch_layout import BATCH_HEADER_SIZE, HEADER, LENGTH_PREFIX_SIZE, SPAN
from ..wire.records import IncompleteBatch, RecordBatch
from .disk import OpenFile

_WINDOW = 4096 + BATCH_HEADER_SIZE
_CHUNK = 1 << 20
_MIN_BATCH_LENGTH = BATCH_HEADER_SIZE - LENGTH_PREFIX_SIZE


def scan_batches(
    file: OpenFile, start: int, end: int, usual_chunk_size: int = _CHUNK
) -> Iterator[tuple[int, RecordBatch]]:
    """Yield (position, batch) from ``start``, the beginning of a batch, to ``end``, in large reads.

    A batch is not checked beyond its header. Raises KafkaError where no whole batch follows, and OSError.
    """
    position = start
    chunk_size = usual_chunk_size
    while position < end:
        wanted = min(chunk_size, end - position)
        chunk = file.read(wanted, position)
        at = 0
        try:
            while at < len(chunk):
                batch = RecordBatch(chunk, at)
                yield position + at, batch
                at += batch.size
        except IncompleteBatch as error:
            if at == 0:
                if len(chunk) < wanted or error.needed > end - position:
                    raise
                chunk_size = error.needed  # a batch larger than a chunk is read again, in full
                continue
        if not at:  # the file is shorter than ``end``
            raise IncompleteBatch(0, BATCH_HEADER_SIZE)
        position += at
        chunk_size = usual_chunk_size


def read_span(file: OpenFile, position: int, end: int) -> tuple[int, int, int]:
    """Base offset, last offset and end position of the batch at ``position`` of a file whose batches end at ``end``.

    Raises KafkaError(CORRUPT_MESSAGE) where no whole batch can be, and OSError, also for a file that is too short.
    """
    if position + SPAN.size > end:
        raise _no_batch(position)
    data = file.read(SPAN.size, position)
    if len(data) < SPAN.size:
        raise OSError(errno.EIO, f"the file ends inside the batch at {position}")
    base_offset, batch_length, last_offset_delta = SPAN.unpack(data)
    batch_end = position + batch_length + LENGTH_PREFIX_SIZE
    if batch_length < _MIN_BATCH_LENGTH or batch_end > end:
        raise _no_batch(position)
    return base_offset, base_offset + last_offset_delta, batch_end


def find_batch(file: OpenFile, start: int, end: int, offset: int) -> int:
    """Where the first batch begins, from ``start`` on, that ends at or above ``offset``; ``end`` when none does.

    Raises KafkaError(CORRUPT_MESSAGE) for a batch on the way whose length is too small. Behind one whose length is too large
    there is nothing. Both are Kafka's (``FileLogInputStream``). OSError as in ``read_span``.
    """
    position = window_start = start
    window = b""
    while position + SPAN.size <= end:
        at = position - window_start
        if at + SPAN.size > len(window):
            window_start, at = position, 0
            window = file.read(min(_WINDOW, end - position), position)
            if len(window) < SPAN.size:
                raise OSError(errno.EIO, f"the file ends inside the batch at {position}")
        base_offset, batch_length, last_offset_delta = SPAN.unpack_from(window, at)
        if batch_length < _MIN_BATCH_LENGTH:
            raise _no_batch(position)
        batch_end = position + batch_length + LENGTH_PREFIX_SIZE
        if batch_end > end:
            break
        if base_offset + last_offset_delta >= offset:
            return position
        position = batch_end
    return end


class BatchSpan(NamedTuple):
    """The header of a batch, as far as it tells what is in it."""

    base_offset: int
    last_offset: int
    position: int
    """Where the batch begins, and where it ends, from the beginning of what was read."""
    end: int
    attributes: int
    producer_id: int


def read_batch_spans(file: OpenFile, start: int, size: int, up_to: int, most: int) -> list[BatchSpan]:
    """The headers of the whole batches in ``size`` bytes from ``start`` on, until one ends at or above the offset ``up_to`` - 1.

    There are ``most`` of them at most.
    Raises KafkaError(CORRUPT_MESSAGE) where no whole batch follows, OSError as in ``read_span``.
    """
    spans: list[BatchSpan] = []
    position = window_start = 0
    window = b""
    while position < size and (not spans or (spans[-1].last_offset < up_to - 1 and len(spans) < most)):
        at = position - window_start
        if at + BATCH_HEADER_SIZE > len(window):
            window_start, at = position, 0
            window = file.read(min(_WINDOW, size - position), start + position)
            if len(window) < BATCH_HEADER_SIZE:
                raise OSError(errno.EIO, f"the file ends inside the batch at {start + position}")
        base_offset, length, _, _, _, attributes, delta, _, _, producer_id, _, _, _ = HEADER.unpack_from(window, at)
        end = position + length + LENGTH_PREFIX_SIZE
        if length < _MIN_BATCH_LENGTH or end > size:
            raise _no_batch(start + position)
        spans.append(BatchSpan(base_offset, base_offset + delta, position, end, attributes, producer_id))
        position = end
    return spans


def _no_batch(position: int) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"there is no batch at position {position} of the segment")
