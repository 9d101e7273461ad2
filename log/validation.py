"""Validation of a batch by the leader before the append, and the changes that the leader makes to it.

A produce request brings exactly one batch per partition (format v2). It is checked by its header, whose CRC covers the
records, and then the records are walked, because a batch whose bytes are no records stops every consumer for good. Rules and
error codes are Apache Kafka's (``LogValidator``, ``UnifiedLog``). There are two walks:

- ``lengths``, the default: from record to record by their lengths, and all fields of the last record only. It takes a tenth
  of the time. What it does not notice: fields that contradict each other inside a record whose length is right.
- ``fields``: all fields of all records. It is made where a rule needs them (a compacted topic wants keys, a topic with
  ``message.timestamp.before.max.ms`` every timestamp), where ``max_timestamp`` of the header is in doubt, and of every batch
  with ``ottla.record.validation=fields``. With ``header`` a batch is walked only where a rule needs it.

In a compressed batch the offsets must count from 0, since nothing is rewritten in it: the last one in any case, each one in a
walk of fields. A topic with its own codec has what was walked compressed again on the way.

Everything that goes by time (retention, rolling, the time index, ListOffsets, compaction lag) goes by ``max_timestamp``,
so Kafka takes it from the records of every batch. Here the header's is used as the client sent it, unless the fields are walked
or there is reason to doubt it: there is no base timestamp (librdkafka's base of -1 comes with 0), it is below the base, it is
another one than the base although there is a single record, it is too far in the future, or so old that retention would delete
the batch at once. What goes unnoticed is a batch of several records whose maximum is wrong, but not below its first record's
time; no client is known to send one.

A few compressed bytes can hold millions of records, so the walk holds one piece of them at a time, and what takes longer than a
step of the loop may (``prepare_now``) is made by a worker (``batch_preparation``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..wire import compression
from ..wire.batch_layout import APPEND_TIME_BIT, BATCH_HEADER_SIZE, CODEC_MASK, CONTROL_BIT
from ..wire.record_codec import append_record, last_offset_delta, rest_after
from ..wire.records import CREATE_TIME, NO_TIMESTAMP, Record, RecordBatch, with_body
from .settings import LONG_MAX, LogSettings

_SHOWN_RECORD_ERRORS = 100
_CODECS = {"uncompressed": compression.NONE, "gzip": compression.GZIP, "snappy": compression.SNAPPY}
_CODECS |= {"lz4": compression.LZ4, "zstd": compression.ZSTD}
_CODEC_OR_CONTROL = CODEC_MASK | CONTROL_BIT
MAX_DECOMPRESSED_BYTES = 1 << 28
"""The most that the records of a batch may have when decompressed; with more, a batch is refused, or cannot be read."""
_MAX_RECORD_BYTES = 16 << 20
"""The most that one compressed record of a client may have when decompressed, where its topic does not take larger batches."""

_MOST_LENGTHS_NOW = 16_384
_MOST_RECORDS_NOW = 2_048
_MOST_COMPRESSED_NOW = 64 << 10
_MOST_DECOMPRESSED_NOW = 256 << 10


class RecordsRefusedError(KafkaError):
    """A batch refused for some of its records."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors
        """(index in the batch, what is wrong) of the first ones."""


def check_batch(batch: RecordBatch, settings: LogSettings, topic: str) -> None:
    """Check size, header and CRC of a client's batch. Raises KafkaError."""
    if batch.size > settings.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {topic} is {batch.size} bytes "
            f"which exceeds the maximum configured value of {settings.max_message_bytes}.",
        )
    if batch.base_offset:
        raise _invalid(
            f"The baseOffset of the record batch in the append to {topic} should be 0, but it is {batch.base_offset}"
        )
    batch.check_crc()
    count = batch.record_count
    if count != batch.last_offset_delta + 1 or count <= 0:
        raise _invalid(f"The batch counts {count} records, but spans {batch.last_offset_delta + 1} offsets in {topic}")
    attributes = batch.attributes
    if attributes & _CODEC_OR_CONTROL:
        if attributes & CONTROL_BIT:
            raise _invalid(f"Clients are not allowed to write control records in {topic}")
        if attributes & CODEC_MASK > compression.ZSTD:
            # Kafka gives UNKNOWN_SERVER_ERROR. This one is final too, and says what is wrong.
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"There is no compression type {attributes & CODEC_MASK}"
            )
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(f"Invalid sequence number {batch.base_sequence} of producer {batch.producer_id} in {topic}")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def prepare_now(batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int) -> RecordBatch | None:
    """``prepare_batch`` where that takes two milliseconds at most; None where it may take longer. Raises KafkaError."""
    codec = batch.attributes & CODEC_MASK
    if (
        (codec and settings.record_validation != "header")
        or _CODECS.get(settings.compression_type, codec) != codec
        or _wants_fields(batch, settings, now_ms)
    ):
        return _prepare_some_now(batch, settings, topic, now_ms)
    if settings.record_validation != "header":
        if batch.record_count > _MOST_LENGTHS_NOW:
            return None
        last_offset_delta(bytes(batch.view[BATCH_HEADER_SIZE:]), batch.record_count)
    if batch.attributes & APPEND_TIME_BIT:
        _take_back_append_time(batch, settings)
    if settings.message_timestamp_type != "CreateTime":
        batch.stamp_append_time(now_ms)
    return batch


def _prepare_some_now(batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int) -> RecordBatch | None:
    if batch.record_count > _MOST_RECORDS_NOW or batch.size > _MOST_COMPRESSED_NOW:
        return None
    try:
        return prepare_batch(batch, settings, topic, now_ms, _MOST_DECOMPRESSED_NOW)
    except KafkaError as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            return None
        raise


def _take_back_append_time(batch: RecordBatch, settings: LogSettings) -> None:
    """Undo what is the broker's to say. Raises KafkaError(INVALID_TIMESTAMP) where the broker will say it."""
    if settings.message_timestamp_type != "CreateTime":
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "Producer should not set timestamp type to LogAppendTime.")
    batch.stamp_timestamp(CREATE_TIME, batch.max_timestamp)


def prepare_batch(
    batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int, limit: int = MAX_DECOMPRESSED_BYTES
) -> RecordBatch:
    """Apply the topic's rules to a checked batch whose buffer is writable: records, timestamps, keys, codec.

    Returns the batch to append, which is ``batch`` itself unless it had to be rebuilt. Raises KafkaError; MESSAGE_TOO_LARGE
    where the records have more than ``limit`` bytes.
    """
    if batch.attributes & APPEND_TIME_BIT:
        _take_back_append_time(batch, settings)
    codec = _CODECS.get(settings.compression_type, batch.compression)
    try:
        if codec == batch.compression:
            _walk(batch, batch.body_pieces(limit), settings, topic, now_ms)
        else:
            batch = _recompressed(batch, settings, topic, now_ms, codec, limit)
    except KafkaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            # The CRC was right, so sending it again will not help: clients retry CORRUPT_MESSAGE.
            raise _invalid(str(error.message)) from error
        raise
    if settings.message_timestamp_type != "CreateTime":
        batch.stamp_append_time(now_ms)
    return batch


def _wants_fields(batch: RecordBatch, settings: LogSettings, now_ms: int) -> bool:
    return (
        settings.is_compacted
        or settings.record_validation == "fields"
        or (
            settings.message_timestamp_type == "CreateTime"
            and (
                batch.base_timestamp <= 0
                or batch.max_timestamp < batch.base_timestamp
                or (batch.record_count == 1 and batch.max_timestamp != batch.base_timestamp)
                or batch.max_timestamp > now_ms + settings.message_timestamp_after_max_ms
                or 0 <= settings.retention_ms < now_ms - batch.max_timestamp
                or settings.message_timestamp_before_max_ms != LONG_MAX
            )
        )
    )


def _walk(batch: RecordBatch, pieces: Iterable[bytes], settings: LogSettings, topic: str, now_ms: int) -> bool:
    """Walk the records of ``pieces``, and correct the header's largest timestamp where their fields are walked.

    Returns whether offsets do not count from 0, which only records that were not compressed may do. Raises KafkaError.
    """
    if _wants_fields(batch, settings, now_ms):
        return _walk_fields(batch, pieces, settings, topic, now_ms)
    last_index = batch.record_count - 1
    (last,) = batch.records_of(rest_after(pieces, last_index), last_index, largest=_largest_record(settings))
    is_disordered = last.offset != last_index
    if is_disordered and batch.compression:
        raise _disordered(last_index, last, topic)
    return is_disordered


def _largest_record(settings: LogSettings) -> int:
    return max(_MAX_RECORD_BYTES, settings.max_message_bytes)


def _walk_fields(batch: RecordBatch, pieces: Iterable[bytes], settings: LogSettings, topic: str, now_ms: int) -> bool:
    create_time = settings.message_timestamp_type == "CreateTime"
    is_compacted = settings.is_compacted
    earliest = now_ms - settings.message_timestamp_before_max_ms
    latest = now_ms + settings.message_timestamp_after_max_ms
    errors: dict[int, str] = {}
    refused = 0
    has_untimely = is_disordered = False
    largest = NO_TIMESTAMP
    for index, record in enumerate(batch.records_of(pieces, largest=_largest_record(settings))):
        if record.offset != index:
            if batch.compression:
                raise _disordered(index, record, topic)
            is_disordered = True
        timestamp = record.timestamp
        if is_compacted and record.key is None:
            why = f"Compacted topic cannot accept message without key in topic {topic}."
        elif create_time and timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            why = f"Timestamp {timestamp} is out of range. It should be within [{earliest}, {latest}]"
            has_untimely = True
        else:
            largest = max(largest, timestamp)
            continue
        refused += 1
        if refused <= _SHOWN_RECORD_ERRORS:
            errors[index] = why
    if refused:
        raise _refused(errors, refused, has_untimely=has_untimely)
    if create_time:
        batch.stamp_timestamp(CREATE_TIME, largest)
    return is_disordered


def _disordered(index: int, record: Record, topic: str) -> KafkaError:
    return _invalid(f"The record with index {index} in a compressed batch has the offset {record.offset} in {topic}")


def _refused(errors: dict[int, str], count: int, *, has_untimely: bool) -> RecordsRefusedError:
    """The refusal of ``count`` records, of which ``errors`` has the first ones; a record of both kinds is named for its key."""
    if has_untimely:
        code = ErrorCode.INVALID_TIMESTAMP
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        code = ErrorCode.INVALID_RECORD
        message = f"{counted(count, 'record')} refused; the first one: {next(iter(errors.values()))}"
    return RecordsRefusedError(code, message, list(errors.items()))


class _Recompression:
    """The pieces of a batch, which are compressed with another codec while they are walked."""

    def __init__(self, pieces: Iterable[bytes], codec: int, settings: LogSettings) -> None:
        self._pieces = pieces
        self._compressor = compression.compressor(codec, _level(codec, settings))
        self._most = settings.max_message_bytes
        self.body = bytearray()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.body += self._compressor.compress(piece)
            self._check_size()
            yield piece
        self.body += self._compressor.flush()
        self._check_size()

    def _check_size(self) -> None:
        size = len(self.body) + BATCH_HEADER_SIZE
        if size > self._most:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"Message batch size is {size} bytes or more after compression, "
                f"which exceeds the maximum configured size of {self._most}.",
            )


def _level(codec: int, settings: LogSettings) -> int | None:
    levels = {
        compression.GZIP: settings.compression_gzip_level if settings.compression_gzip_level >= 0 else None,
        compression.LZ4: settings.compression_lz4_level,
        compression.ZSTD: settings.compression_zstd_level,
    }
    return levels.get(codec)


def _recompressed(
    batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int, codec: int, limit: int
) -> RecordBatch:
    """The batch, walked, with another codec. Raises KafkaError."""
    if batch.compression != compression.NONE:
        recompression = _Recompression(batch.body_pieces(limit), codec, settings)
        _walk(batch, recompression, settings, topic, now_ms)
        return RecordBatch(with_body(batch, codec, recompression.body))
    is_disordered = _walk(batch, batch.body_pieces(), settings, topic, now_ms)
    recompression = _Recompression([_renumbered(batch)] if is_disordered else batch.body_pieces(), codec, settings)
    for _ in recompression:
        pass
    return RecordBatch(with_body(batch, codec, recompression.body))


def _renumbered(batch: RecordBatch) -> bytes:
    """The records with offsets that count from 0, whatever offsets the client put inside; the header's range is checked."""
    body = bytearray()
    for index, record in enumerate(batch.records()):
        delta = record.timestamp - batch.base_timestamp
        append_record(body, record.attributes, delta, index, record.key, record.value, record.headers)
    return bytes(body)
