"""Segment files as text: a line for each batch and, in depth, one for each record."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ...base.errors import KafkaError
from ...wire.batch_layout import BATCH_HEADER_SIZE
from ...wire.control_records import ControlRecordType, decode_control_key, decode_end_marker, decode_quorum_record
from ...wire.kafka_json import kafka_json, kafka_json_text
from ...wire.record_codec import Record
from ...wire.records import IncompleteBatch, RecordBatch
from ..disk import Disk
from ..files import BOOTSTRAP_CHECKPOINT, CHECKPOINT_SUFFIX
from ..scan import scan_batches
from .decoders import RecordDecoder
from .report import DumpError, Report, base_offset_of

NO_LIMIT = (1 << 31) - 1
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
_MAX_SEQUENCE = (1 << 31) - 1
_SNAPSHOT_ID = re.compile(r"(\d{20})-(\d{10})\.")
_QUORUM_RECORDS = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}


@dataclass(frozen=True)
class BatchOptions:
    """What to print of a segment."""

    is_deep: bool
    """Whether the records are printed below their batches."""
    decoder: RecordDecoder | None
    """Makes text of keys and values; None leaves them out."""
    skips_record_metadata: bool
    max_bytes: int
    """The file counts as ending here."""


def dump_segment(disk: Disk, path: str, options: BatchOptions, report: Report) -> None:
    """Print a ``.log`` file, or a snapshot of a quorum's log. Raises DumpError, OSError."""
    name = os.path.basename(path)
    report.line(_title(disk, path, name))
    file = disk.open(path)
    try:
        size = min(file.size(), options.max_bytes)
        valid_bytes = 0
        previous_offset = -1
        try:
            for position, batch in scan_batches(file, 0, size):
                report.line(batch_line(batch, position))
                if options.is_deep:
                    previous_offset = _dump_records(path, batch, previous_offset, options, report)
                valid_bytes += batch.size
        except IncompleteBatch:
            pass  # the rest of the file is no batch, which the line below says
        except KafkaError as error:
            raise DumpError(f"{path}: {error.message}") from None
    finally:
        file.close()
    if size > valid_bytes and options.max_bytes == NO_LIMIT:
        report.line(f"Found {size - valid_bytes} invalid bytes at the end of {name}")


def _title(disk: Disk, path: str, name: str) -> str:
    if not name.endswith(CHECKPOINT_SUFFIX):
        return f"Log starting offset: {base_offset_of(disk, path)}"
    if name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot"
    found = _SNAPSHOT_ID.match(name)
    if found is None:
        raise DumpError(f"{path} is not named by the end offset and the epoch of a snapshot")
    return f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"


def batch_line(batch: RecordBatch, position: int) -> str:
    """One batch."""
    horizon = batch.delete_horizon_ms
    is_valid = batch.size >= BATCH_HEADER_SIZE and batch.crc == batch.compute_crc()
    if batch.compression >= len(_CODECS):
        raise DumpError(f"Unknown compression type id: {batch.compression}")
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count}"
        f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
        f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
        f" partitionLeaderEpoch: {batch.partition_leader_epoch} isTransactional: {_java(batch.is_transactional)}"
        f" isControl: {_java(batch.is_control)}"
        f" deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'}"
        f" position: {position} {_TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp}"
        f" size: {batch.size} magic: {batch.magic} compresscodec: {_CODECS[batch.compression]}"
        f" crc: {batch.crc} isvalid: {_java(is_valid)}"
    )


def _java(value: bool) -> str:
    return "true" if value else "false"


def _dump_records(path: str, batch: RecordBatch, previous: int, options: BatchOptions, report: Report) -> int:
    """Print a batch's records; the offset of the last one. ``previous`` is the one before the first."""
    for record in batch.records():
        if record.offset != previous + 1:
            report.leaps.setdefault(os.path.abspath(path), {})[previous] = record.offset
        previous = record.offset
        words = [] if options.skips_record_metadata else [record_text(batch, record)]
        if options.decoder is not None and not batch.is_control:
            key, value = options.decoder(record)
            words += [] if key is None else [f"key: {key}"]
            words += [] if value is None else [f"payload: {value}"]
            if options.skips_record_metadata and words:
                words.insert(0, "|")
        report.line(" ".join(words))
    return previous


def record_text(batch: RecordBatch, record: Record) -> str:
    """One record without key and value."""
    sequence = batch.base_sequence
    if sequence >= 0:
        sequence = (sequence + record.offset - batch.base_offset) & _MAX_SEQUENCE
    headers = ",".join(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name, _ in record.headers)
    text = (
        f"| offset: {record.offset} {_TIMESTAMP_TYPES[batch.timestamp_type]}: {record.timestamp}"
        f" keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{headers}]"
    )
    return f"{text} {_control_text(record)}" if batch.is_control else text


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _control_text(record: Record) -> str:
    marker = decode_end_marker(record)
    if marker is not None:
        return f"endTxnMarker: {marker.type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    record_type = decode_control_key(record.key)
    message = decode_quorum_record(record)
    if message is not None and record_type is not None:
        assert record.value is not None
        version = int.from_bytes(record.value[:2], "big")
        return f"{_QUORUM_RECORDS[record_type]} {kafka_json_text(kafka_json(message, version))}"
    assert record.key is not None
    number = int.from_bytes(record.key[2:4], "big", signed=True)
    return f"controlType: {'UNKNOWN' if record_type is None else ControlRecordType(record_type).name}({number})"
