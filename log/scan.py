"""Walking the batches of a segment file, from its bytes alone."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from ..wire.batch_layout import BATCH_HEADER_SIZE, LENGTH_PREFIX_SIZE, SPAN
from ..wire.records import IncompleteBatch, RecordBatch
from .disk import OpenFile

_WINDOW = 4096 + BATCH_HEADER_SIZE
_CHUNK = 1 << 20


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
                chunk_size = error.needed
                continue
        if not at:
            raise IncompleteBatch(0, BATCH_HEADER_SIZE)
        position += at
        chunk_size = usual_chunk_size


def read_span(file: OpenFile, position: int) -> tuple[int, int, int]:
    """Base offset, last offset and end position of the batch at ``position``. Raises OSError."""
    data = file.read(SPAN.size, position)
    if len(data) < SPAN.size:
        raise OSError(errno.EIO, f"the file ends inside the batch at {position}")
    base_offset, batch_length, last_offset_delta = SPAN.unpack(data)
    if batch_length < 0:
        raise OSError(errno.EIO, f"there is no batch at {position}")
    return base_offset, base_offset + last_offset_delta, position + batch_length + LENGTH_PREFIX_SIZE


def find_batch(file: OpenFile, start: int, end: int, offset: int) -> int:
    """Where the first batch begins, from ``start`` on, that ends at or above ``offset``; ``end`` when none does."""
    position = window_start = start
    window = b""
    while position < end:
        at = position - window_start
        if at + SPAN.size > len(window):
            window_start, at = position, 0
            window = file.read(min(_WINDOW, end - position), position)
            if len(window) < SPAN.size:
                raise OSError(errno.EIO, f"the file ends inside the batch at {position}")
        base_offset, batch_length, last_offset_delta = SPAN.unpack_from(window, at)
        if base_offset + last_offset_delta >= offset:
            return position
        if batch_length < 0:
            raise OSError(errno.EIO, f"there is no batch at {position}")
        position += batch_length + LENGTH_PREFIX_SIZE
    return end
