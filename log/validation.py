"""What a leader checks of a batch before it appends it, and what it changes in it.

A produce request brings exactly one batch per partition (format v2). It is checked by its header, whose CRC covers the
records; the records themselves are looked at only where a rule needs them: a compacted topic wants keys, a topic with
``message.timestamp.before.max.ms`` wants every timestamp, a topic with its own codec compresses again, and a header
whose ``max_timestamp`` is in doubt gets that of its records. Rules and error codes are Apache Kafka's
(``LogValidator``, ``UnifiedLog``).

Everything that goes by time (retention, rolling, the time index, ListOffsets, compaction lag) goes by ``max_timestamp``,
so Kafka takes it from the records of every batch. Here the header's is used as the client sent it, unless there is reason
to doubt it: there is no base timestamp (librdkafka's base of -1 comes with 0), it is below the base, it is another one
than the base although there is a single record, it is too far in the future, or so old that retention would delete the
batch at once. What goes unnoticed is a batch of several records whose maximum is wrong, but not below its first record's
time; no client is known to send one.
Kafka also refuses a batch whose bytes are no records although its CRC is right, which is not noticed here.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..wire import compression
from ..wire.batch_layout import CODEC_MASK, CONTROL_BIT
from ..wire.records import CREATE_TIME, NO_TIMESTAMP, Record, RecordBatch, build_batch
from .settings import LONG_MAX, LogSettings

_SHOWN_RECORD_ERRORS = 100
_CODECS = {"uncompressed": compression.NONE, "gzip": compression.GZIP, "snappy": compression.SNAPPY}
_CODECS |= {"lz4": compression.LZ4, "zstd": compression.ZSTD}
_CODEC_OR_CONTROL = CODEC_MASK | CONTROL_BIT
MAX_DECOMPRESSED_BYTES = 1 << 28


class RecordsRefusedError(KafkaError):
    """A batch refused for some of its records: ``record_errors`` has (index in the batch, what is wrong)."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


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


def prepare_batch(batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int) -> RecordBatch:
    """Apply the topic's rules to a checked batch whose buffer is writable: timestamps, keys, codec.

    Returns the batch to append, which is ``batch`` itself unless it had to be rebuilt. Raises KafkaError.
    """
    create_time = settings.message_timestamp_type == "CreateTime"
    if batch.timestamp_type != CREATE_TIME:
        if not create_time:
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "Producer should not set timestamp type to LogAppendTime.")
        batch.stamp_timestamp(CREATE_TIME, batch.max_timestamp)
    wants_records = settings.is_compacted or (
        create_time
        and (
            batch.base_timestamp <= 0
            or batch.max_timestamp < batch.base_timestamp
            or (batch.record_count == 1 and batch.max_timestamp != batch.base_timestamp)
            or batch.max_timestamp > now_ms + settings.message_timestamp_after_max_ms
            or 0 <= settings.retention_ms < now_ms - batch.max_timestamp
            or settings.message_timestamp_before_max_ms != LONG_MAX
        )
    )
    codec = _CODECS.get(settings.compression_type, batch.compression)
    if wants_records or codec != batch.compression:
        batch = _walk(batch, settings, topic, now_ms, codec)
    if not create_time:
        batch.stamp_append_time(now_ms)
    return batch


def _walk(batch: RecordBatch, settings: LogSettings, topic: str, now_ms: int, codec: int) -> RecordBatch:
    records = _records(batch)
    create_time = settings.message_timestamp_type == "CreateTime"
    keyless = _keyless(records, topic) if settings.is_compacted else {}
    untimely = _untimely(records, settings, now_ms) if create_time else {}
    if keyless or untimely:
        raise _refused(keyless, untimely)
    if create_time:
        batch.stamp_timestamp(CREATE_TIME, max(NO_TIMESTAMP, max(record.timestamp for record in records)))
    return batch if codec == batch.compression else _recompress(batch, records, settings, codec)


def _records(batch: RecordBatch) -> list[Record]:
    try:
        return list(batch.records(MAX_DECOMPRESSED_BYTES))
    except KafkaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            # The CRC was right, so sending it again will not help: clients retry CORRUPT_MESSAGE.
            raise _invalid(str(error.message)) from error
        raise


def _keyless(records: list[Record], topic: str) -> dict[int, str]:
    why = f"Compacted topic cannot accept message without key in topic {topic}."
    return {index: why for index, record in enumerate(records) if record.key is None}


def _untimely(records: list[Record], settings: LogSettings, now_ms: int) -> dict[int, str]:
    earliest = now_ms - settings.message_timestamp_before_max_ms
    latest = now_ms + settings.message_timestamp_after_max_ms
    return {
        index: f"Timestamp {record.timestamp} is out of range. It should be within [{earliest}, {latest}]"
        for index, record in enumerate(records)
        if record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
    }


def _refused(keyless: dict[int, str], untimely: dict[int, str]) -> RecordsRefusedError:
    """The refusal of both kinds at once; a record of both is named for its key."""
    errors = sorted({**untimely, **keyless}.items())
    if untimely.keys() - keyless.keys():
        code = ErrorCode.INVALID_TIMESTAMP
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        code = ErrorCode.INVALID_RECORD
        message = f"{counted(len(errors), 'record')} refused; the first one: {errors[0][1]}"
    return RecordsRefusedError(code, message, errors[:_SHOWN_RECORD_ERRORS])


def _recompress(batch: RecordBatch, records: list[Record], settings: LogSettings, codec: int) -> RecordBatch:
    levels = {
        compression.GZIP: settings.compression_gzip_level if settings.compression_gzip_level >= 0 else None,
        compression.LZ4: settings.compression_lz4_level,
        compression.ZSTD: settings.compression_zstd_level,
    }
    for index, record in enumerate(records):
        record.offset = index  # whatever offsets the client put inside; the header's range is checked
    built = RecordBatch(
        build_batch(
            records,
            leader_epoch=batch.partition_leader_epoch,
            compression=codec,
            compression_level=levels.get(codec),
            timestamp_type=batch.timestamp_type,
            max_timestamp=batch.max_timestamp,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
        )
    )
    if built.size > settings.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Message batch size is {built.size} bytes after compression, "
            f"which exceeds the maximum configured size of {settings.max_message_bytes}.",
        )
    return built
