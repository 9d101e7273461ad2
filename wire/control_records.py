"""Control records: the records of control batches, which brokers write and consumers skip.

The key is ``version`` int16 (0) and ``type`` int16. The value of ABORT and COMMIT, the end of a producer's transaction
in this partition, is ``version`` int16 (0) and ``coordinator_epoch`` int32; an end marker is alone in its batch, which is
transactional, has the producer's id and epoch, and no sequence number. Higher versions of both begin with these fields
and are read as if they were version 0, as Kafka does. The other types belong to a quorum's metadata log (KIP-595,
KIP-630, KIP-853): their values are messages whose first field repeats the version they are written in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from ..base.errors import ErrorCode, KafkaError, ProtocolError
from .codec import decode, encode_bytes
from .record_codec import Record
from .records import RecordsBuilder
from .schema import Message

MAX_CONTROL_BYTES = 1 << 20
"""The most that the records of a control batch may have when decompressed, to be read on the loop. A marker has 20 bytes."""

_KEY = Struct(">hh")
_END_MARKER = Struct(">hi")
_VERSION = Struct(">h")


class ControlRecordType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """The value of an ABORT or COMMIT record."""

    type: ControlRecordType
    coordinator_epoch: int
    """That of the transaction coordinator, by which a marker of an earlier one is refused."""


def encode_control_key(record_type: ControlRecordType) -> bytes:
    return _KEY.pack(0, record_type)


def decode_control_key(key: bytes | None) -> ControlRecordType | None:
    """Return the type in a control record's key; None for an unknown type, which is to be ignored.

    KafkaError(INVALID_RECORD) when the key is malformed.
    """
    if key is None or len(key) < _KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the key of a control record is too short")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the key of a control record cannot have version {version}")
    try:
        return ControlRecordType(type_id)
    except ValueError:
        return None


def encode_end_marker(marker: EndTransactionMarker) -> bytes:
    return _END_MARKER.pack(0, marker.coordinator_epoch)


def decode_end_marker(record: Record) -> EndTransactionMarker | None:
    """Decode an ABORT or COMMIT record; None for a control record of another type.

    KafkaError(INVALID_RECORD) when the record is malformed.
    """
    record_type = decode_control_key(record.key)
    if record_type is not ControlRecordType.ABORT and record_type is not ControlRecordType.COMMIT:
        return None
    if record.value is None or len(record.value) < _END_MARKER.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the value of an end transaction marker is too short")
    version, coordinator_epoch = _END_MARKER.unpack_from(record.value)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"an end transaction marker cannot have version {version}")
    return EndTransactionMarker(record_type, coordinator_epoch)


def build_end_marker_batch(
    marker: EndTransactionMarker, *, producer_id: int, producer_epoch: int, timestamp: int
) -> bytearray:
    """Return the control batch that ends the producer's transaction in a partition at ``timestamp`` (ms)."""
    builder = RecordsBuilder(
        producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
    )
    builder.append(encode_control_key(marker.type), encode_end_marker(marker), timestamp)
    return builder.build()


def build_quorum_batch(
    messages: Iterable[tuple[Message, int]], *, base_offset: int, leader_epoch: int, timestamp: int
) -> bytearray:
    """Return a control batch with a quorum's messages, each in the version that comes with it; ``timestamp`` in ms."""
    types = {message_class: record_type for record_type, message_class in _quorum_messages().items()}
    builder = RecordsBuilder(base_offset=base_offset, leader_epoch=leader_epoch, is_control=True)
    for message, version in messages:
        builder.append(encode_control_key(types[type(message)]), encode_bytes(message, version), timestamp)
    return builder.build()


def decode_quorum_record(record: Record) -> Message | None:
    """Return the message in a quorum's control record; None for end markers and unknown types.

    KafkaError(INVALID_RECORD) when the record is malformed.
    """
    record_type = decode_control_key(record.key)
    message_class = None if record_type is None else _quorum_messages().get(record_type)
    if message_class is None:
        return None
    if record.value is None or len(record.value) < _VERSION.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the value of a {message_class.__name__} is too short")
    version: int = _VERSION.unpack_from(record.value)[0]
    try:
        return decode(message_class, version, record.value)
    except (ProtocolError, ValueError) as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None


def _quorum_messages() -> dict[ControlRecordType, type[Message]]:
    from .messages import control_records as messages

    return {
        ControlRecordType.LEADER_CHANGE: messages.LeaderChangeMessage,
        ControlRecordType.SNAPSHOT_HEADER: messages.SnapshotHeaderRecord,
        ControlRecordType.SNAPSHOT_FOOTER: messages.SnapshotFooterRecord,
        ControlRecordType.KRAFT_VERSION: messages.KRaftVersionRecord,
        ControlRecordType.KRAFT_VOTERS: messages.VotersRecord,
    }
