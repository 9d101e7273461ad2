"""Record batches of message format v2 (magic 2), as they are produced, fetched and stored in the log.

A batch is a header (``batch_layout``) and its records, compressed as one piece or not at all. The CRC does
not cover base offset and leader epoch, which the leader stamps.

A batch may hold fewer records than its offsets span, or none: compaction removes records and keeps the range. Magic 0
and 1 are refused. Format: https://kafka.apache.org/documentation/#messageformat, KIP-98, KIP-534 (delete horizon).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

from crc32c import crc32c

from ..base.errors import ErrorCode, KafkaError
from .batch_layout import (
    APPEND_TIME_BIT,
    ATTRIBUTES_POSITION,
    BATCH_HEADER_SIZE,
    BATCH_LENGTH_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    HEADER,
    LENGTH_PREFIX_SIZE,
    MAGIC,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    STAMP,
    TRANSACTIONAL_BIT,
)
from .compression import NONE, Buffer, Compressor, compress, compressor, decompressed_pieces
from .record_codec import Record as Record
from .record_codec import append_record, iter_records

CREATE_TIME = 0
LOG_APPEND_TIME = 1
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

_MIN_LEGACY_LENGTH = 14
_COMPRESSED_AT_ONCE = 256 << 10
_MAX_INT32 = 0x7FFFFFFF

_INT16 = Struct(">h")
_UINT32 = Struct(">I")
_INT32 = Struct(">i")
_INT64 = Struct(">q")


class IncompleteBatch(KafkaError):
    """The buffer ends before the batch does.

    The code is the one with which Kafka refuses such a batch in a Produce request.
    """

    def __init__(self, available: int, needed: int) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, f"a record batch of {needed} bytes has only {available}")
        self.needed = needed
        """The size of the batch, or that of its header while that is not complete."""


class RecordBatch:
    """A view over the batch that begins at ``start`` of ``buffer``; only its header has been read and checked.

    KafkaError: IncompleteBatch when the buffer ends inside the batch, INVALID_RECORD for magic 0 and 1,
    CORRUPT_MESSAGE for a malformed header. The caller checks the CRC. The view keeps the buffer alive; if that is a
    bytearray, it cannot be resized meanwhile.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
        "view",
    )
    attributes: int
    base_offset: int
    base_sequence: int
    base_timestamp: int
    """In ms; with a delete horizon it is that time (``delete_horizon_ms``)."""
    crc: int
    last_offset_delta: int
    magic: int
    max_timestamp: int
    partition_leader_epoch: int
    producer_epoch: int
    producer_id: int
    record_count: int
    size: int
    """Bytes of the whole batch."""
    view: memoryview
    """The bytes of the batch in the caller's buffer."""

    def __init__(self, buffer: Buffer, start: int = 0) -> None:
        available = len(buffer) - start
        if available < BATCH_HEADER_SIZE:
            raise _header_error(buffer, start)
        (
            self.base_offset,
            batch_length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(buffer, start)
        self.size = size = batch_length + LENGTH_PREFIX_SIZE
        if self.magic != MAGIC or not BATCH_HEADER_SIZE <= size <= available:
            raise _header_error(buffer, start)
        self.view = memoryview(buffer)[start : start + size]

    def __repr__(self) -> str:
        return (
            f"RecordBatch(base_offset={self.base_offset}, last_offset={self.last_offset}, size={self.size}, "
            f"record_count={self.record_count}, attributes={self.attributes:#x})"
        )

    @property
    def compression(self) -> int:
        """The codec number: 0-4; 5-7 are not used."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """CREATE_TIME (0) or LOG_APPEND_TIME (1)."""
        return (self.attributes & APPEND_TIME_BIT) >> 3

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may drop this batch's tombstones and markers; None when it is not set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last offset; -1 without sequence numbers. Numbers wrap from 2^31-1 to 0."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _MAX_INT32

    def compute_crc(self) -> int:
        return crc32c(self.view[ATTRIBUTES_POSITION:])

    def check_crc(self) -> None:
        """Raise KafkaError(CORRUPT_MESSAGE) when the stored CRC is not the one of the bytes."""
        computed = crc32c(self.view[ATTRIBUTES_POSITION:])
        if computed != self.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the record batch has CRC {self.crc:#010x} in its header, but its bytes give {computed:#010x}",
            )

    def stamp(self, base_offset: int, leader_epoch: int) -> None:
        """Write base offset and leader epoch into the buffer, which must be writable. The CRC does not cover them."""
        STAMP.pack_into(self.view, 0, base_offset, self.size - LENGTH_PREFIX_SIZE, leader_epoch)
        self.base_offset = base_offset
        self.partition_leader_epoch = leader_epoch

    def stamp_append_time(self, now_ms: int) -> None:
        """Make this a LogAppendTime batch whose records all have the time ``now_ms``: type bit, max timestamp, CRC."""
        self.stamp_timestamp(LOG_APPEND_TIME, now_ms)

    def stamp_timestamp(self, timestamp_type: int, max_timestamp: int) -> None:
        """Write timestamp type and max timestamp into the buffer, and the new CRC if that changed anything."""
        if timestamp_type == self.timestamp_type and max_timestamp == self.max_timestamp:
            return
        self.attributes = self.attributes & ~APPEND_TIME_BIT | timestamp_type << 3
        self.max_timestamp = max_timestamp
        _INT16.pack_into(self.view, ATTRIBUTES_POSITION, self.attributes)
        _INT64.pack_into(self.view, MAX_TIMESTAMP_POSITION, max_timestamp)
        self.crc = self.compute_crc()
        _UINT32.pack_into(self.view, CRC_POSITION, self.crc)

    def records(self, limit: int | None = None) -> Iterator[Record]:
        """Yield the records in order, and decompress them on the way: at most one piece of them is in memory.

        KafkaError: CORRUPT_MESSAGE when they cannot be decompressed, MESSAGE_TOO_LARGE when they are longer than
        ``limit`` bytes when decompressed, INVALID_RECORD when they are not what the header says.
        """
        return self.records_of(self.body_pieces(limit))

    def records_of(self, pieces: Iterable[bytes], first: int = 0, largest: int | None = None) -> Iterator[Record]:
        """As ``records``, of a body that comes in pieces, from its record with the index ``first`` on.

        KafkaError(MESSAGE_TOO_LARGE), too, for a record of more than ``largest`` bytes that is not in one piece.
        """
        count = self.record_count - first
        if count == 0:
            return iter(())
        if count < 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"a record batch cannot hold {self.record_count} records")
        append_time = self.max_timestamp if self.attributes & APPEND_TIME_BIT else None
        return iter_records(pieces, count, self.base_offset, self.base_timestamp, append_time, largest)

    def body_pieces(self, limit: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of the records, decompressed, piece by piece. Raises KafkaError as ``records`` does."""
        return decompressed_pieces(self.compression, self.view[BATCH_HEADER_SIZE:], limit)


def _header_error(buffer: Buffer, start: int) -> KafkaError:
    """The error of a batch at ``start`` whose header is too short, or has the wrong magic or size."""
    available = len(buffer) - start
    if available <= MAGIC_POSITION:
        return IncompleteBatch(available, BATCH_HEADER_SIZE)
    batch_length: int = _INT32.unpack_from(buffer, start + BATCH_LENGTH_POSITION)[0]
    magic = buffer[start + MAGIC_POSITION]
    if batch_length < _MIN_LEGACY_LENGTH:
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record batch cannot have a length of {batch_length}")
    if magic < MAGIC:
        return KafkaError(ErrorCode.INVALID_RECORD, f"message format {magic} is not supported, only format 2")
    if magic > MAGIC:
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no message format has the magic {magic}")
    size = batch_length + LENGTH_PREFIX_SIZE
    if size < BATCH_HEADER_SIZE:
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a record batch cannot have a length of {batch_length}")
    return IncompleteBatch(available, size)


def iter_batches(buffer: Buffer) -> Iterator[RecordBatch]:
    """Yield the batches of ``buffer``. KafkaError as RecordBatch, also for an incomplete last one."""
    start = 0
    end = len(buffer)
    view = memoryview(buffer)
    while start < end:
        batch = RecordBatch(view, start)
        start += batch.size
        yield batch


def iter_complete_batches(buffer: Buffer) -> Iterator[RecordBatch]:
    """As iter_batches, but an incomplete last batch is left out: fetched bytes, and a log after a crash, may end anywhere."""
    try:
        yield from iter_batches(buffer)
    except IncompleteBatch:
        return


def with_body(batch: RecordBatch, compression: int, body: Buffer) -> bytearray:
    """The same batch with another codec: its header, and ``body``, its records compressed with ``compression``."""
    built = bytearray(batch.view[:BATCH_HEADER_SIZE])
    built += body
    _INT32.pack_into(built, BATCH_LENGTH_POSITION, len(built) - LENGTH_PREFIX_SIZE)
    _INT16.pack_into(built, ATTRIBUTES_POSITION, batch.attributes & ~CODEC_MASK | compression)
    with memoryview(built) as view:
        _UINT32.pack_into(built, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))
    return built


class RecordsBuilder:
    """Collects records into one batch.

    ``last_offset`` keeps an offset range that is wider than its records, as compaction needs. ``max_timestamp`` is by
    default the largest of the records; for a LogAppendTime batch it is the time of the append. ``delete_horizon_ms``
    takes the place of the base timestamp. ``compression_level`` is None for the codec's default.
    """

    def __init__(
        self,
        *,
        base_offset: int = 0,
        last_offset: int | None = None,
        leader_epoch: int = NO_LEADER_EPOCH,
        compression: int = NONE,
        compression_level: int | None = None,
        timestamp_type: int = CREATE_TIME,
        max_timestamp: int | None = None,
        delete_horizon_ms: int | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.record_count = 0
        self._last_offset = last_offset
        self._leader_epoch = leader_epoch
        self._compression = compression
        self._compression_level = compression_level
        self._max_timestamp = max_timestamp
        self._largest_timestamp = NO_TIMESTAMP
        self._base_timestamp = delete_horizon_ms
        self._producer = (producer_id, producer_epoch, base_sequence)
        self._attributes = (
            compression
            | timestamp_type << 3
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
            | (0 if delete_horizon_ms is None else DELETE_HORIZON_BIT)
        )
        self._body = bytearray()  # what is not compressed yet
        self._stream: Compressor | None = None
        self._compressed = bytearray()
        self._compressed_from = 0

    @property
    def uncompressed_size(self) -> int:
        """The size of the batch in bytes if it were built now without compression."""
        return BATCH_HEADER_SIZE + self._compressed_from + len(self._body)

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Sequence[tuple[str, bytes | None]] = (),
        offset: int | None = None,
        attributes: int = 0,
    ) -> int:
        """Add a record and return its offset, by default the one after the record before; offsets must ascend."""
        if offset is None:
            offset = self.next_offset
        assert offset >= self.next_offset, "offsets in a batch ascend"
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        append_record(
            self._body,
            attributes,
            timestamp - self._base_timestamp,
            offset - self.base_offset,
            key,
            value,
            headers,
        )
        self._largest_timestamp = max(self._largest_timestamp, timestamp)
        self.next_offset = offset + 1
        self.record_count += 1
        if self._compression and len(self._body) >= _COMPRESSED_AT_ONCE:
            self._compress_on()
        return offset

    def _compress_on(self) -> None:
        if self._stream is None:
            self._stream = compressor(self._compression, self._compression_level)
        self._compressed += self._stream.compress(bytes(self._body))
        self._compressed_from += len(self._body)
        self._body.clear()

    def _packed(self) -> bytes | bytearray:
        if not self._compression:
            return self._body
        if self._stream is None:
            return compress(self._compression, self._body, self._compression_level)
        self._compress_on()
        return self._compressed + self._stream.flush()

    def build(self) -> bytearray:
        """Return the batch. More records can be added afterwards, unless they are compressed."""
        body = self._packed()
        last_offset = self.next_offset - 1 if self._last_offset is None else self._last_offset
        batch = bytearray(BATCH_HEADER_SIZE)
        batch += body
        HEADER.pack_into(
            batch,
            0,
            self.base_offset,
            len(batch) - LENGTH_PREFIX_SIZE,
            self._leader_epoch,
            MAGIC,
            0,
            self._attributes,
            last_offset - self.base_offset,
            NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            self._largest_timestamp if self._max_timestamp is None else self._max_timestamp,
            *self._producer,
            self.record_count,
        )
        with memoryview(batch) as view:
            _UINT32.pack_into(batch, CRC_POSITION, crc32c(view[ATTRIBUTES_POSITION:]))
        return batch


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    last_offset: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: int = NONE,
    compression_level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """Return one batch of ``records``; the keyword arguments are those of RecordsBuilder."""
    builder = RecordsBuilder(
        base_offset=base_offset,
        last_offset=last_offset,
        leader_epoch=leader_epoch,
        compression=compression,
        compression_level=compression_level,
        timestamp_type=timestamp_type,
        max_timestamp=max_timestamp,
        delete_horizon_ms=delete_horizon_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
    )
    for record in records:
        offset = None if record.offset < 0 else record.offset
        builder.append(record.key, record.value, record.timestamp, record.headers, offset, record.attributes)
    return builder.build()
