"""The records of ``__cluster_metadata``: a frame, then a message (KIP-631).

The frame has three unsigned varints: its own version, 1, the type of the record, and the version of the message. What is unknown
is an error, as in Kafka: a node that passed over a record would have another cluster than the controller.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..base.errors import ProtocolError
from .codec import decode, encode_bytes
from .primitives import read_uvarint, write_uvarint
from .records import RecordBatch
from .schema import Message

FRAME_VERSION = 1

VersionedRecord = tuple[Message, int]
"""A record and the version to write it in."""

_RECORDS = {
    0: ("broker_records", "RegisterBrokerRecord"),
    1: ("broker_records", "UnregisterBrokerRecord"),
    2: ("topic_records", "TopicRecord"),
    3: ("topic_records", "PartitionRecord"),
    4: ("setting_records", "ConfigRecord"),
    5: ("topic_records", "PartitionChangeRecord"),
    7: ("broker_records", "FenceBrokerRecord"),
    8: ("broker_records", "UnfenceBrokerRecord"),
    9: ("topic_records", "RemoveTopicRecord"),
    10: ("access_records", "DelegationTokenRecord"),
    11: ("access_records", "UserScramCredentialRecord"),
    12: ("setting_records", "FeatureLevelRecord"),
    14: ("setting_records", "ClientQuotaRecord"),
    15: ("setting_records", "ProducerIdsRecord"),
    17: ("broker_records", "BrokerRegistrationChangeRecord"),
    18: ("access_records", "AccessControlEntryRecord"),
    19: ("access_records", "RemoveAccessControlEntryRecord"),
    20: ("metadata_log_records", "NoOpRecord"),
    21: ("metadata_log_records", "ZkMigrationStateRecord"),
    22: ("access_records", "RemoveUserScramCredentialRecord"),
    23: ("metadata_log_records", "BeginTransactionRecord"),
    24: ("metadata_log_records", "EndTransactionRecord"),
    25: ("metadata_log_records", "AbortTransactionRecord"),
    26: ("access_records", "RemoveDelegationTokenRecord"),
    27: ("broker_records", "RegisterControllerRecord"),
    28: ("topic_records", "ClearElrRecord"),
}
RECORD_TYPES = tuple(_RECORDS)


@cache
def metadata_record_class(record_type: int) -> type[Message]:
    """The class of a record. Raises KeyError for an unknown type."""
    module_name, name = _RECORDS[record_type]
    found: type[Message] = getattr(import_module(f".messages.{module_name}", __package__), name)
    return found


def encode_metadata_record(record: Message, version: int) -> bytes:
    """The value of a record; its key is null. Raises ValueError where the message has no such version."""
    frame = write_uvarint(FRAME_VERSION) + write_uvarint(record.api_key) + write_uvarint(version)
    return frame + encode_bytes(record, version)


def metadata_records(batch: RecordBatch) -> list[Message]:
    """The records of a batch that is no control batch. Raises ProtocolError, and KafkaError for a batch that is damaged."""
    return [record for record, _ in versioned_records(batch)]


def versioned_records(batch: RecordBatch) -> list[VersionedRecord]:
    """The same, each record with the version that it was written in."""
    return [decode_metadata_record(record.value or b"") for record in batch.records()]


def decode_metadata_record(value: bytes | memoryview) -> tuple[Message, int]:
    """A record and the version that it was written in. Raises ProtocolError."""
    data = bytes(value)
    try:
        frame_version, position = read_uvarint(data, 0)
        record_type, position = read_uvarint(data, position)
        version, position = read_uvarint(data, position)
    except IndexError:
        raise ProtocolError(f"a metadata record of {len(data)} bytes has no frame") from None
    if frame_version != FRAME_VERSION:
        raise ProtocolError(f"frame version {frame_version} of metadata records is unknown")
    if record_type not in _RECORDS:
        raise ProtocolError(f"metadata records of type {record_type} are unknown")
    record_class = metadata_record_class(record_type)
    if version not in record_class.valid_versions:
        raise ProtocolError(f"{record_class.__name__} has no version {version}")
    return decode(record_class, version, data[position:]), version
