"""Encoding of the records of coordinators' topics: an int16 type or version, then the fields.

A key begins with its record type, which says what kind of record it is; its body has one version only. A value begins with
the version of its schema. A record without a value is a tombstone. Unknown types are those of newer brokers and
are to be ignored; a known type with an unknown value version is an error, as in Kafka.
"""

from __future__ import annotations

import struct
from functools import cache
from importlib import import_module

from ..base.errors import ProtocolError
from .codec import decode, encode_bytes
from .schema import Message

_PREFIX = struct.Struct(">h")

_OFFSETS_TOPIC_RECORDS = {
    0: ("consumer_offsets", "LegacyOffsetCommit"),
    1: ("consumer_offsets", "OffsetCommit"),
    2: ("consumer_offsets", "GroupMetadata"),
    3: ("consumer_group_records", "ConsumerGroupMetadata"),
    4: ("consumer_group_records", "ConsumerGroupPartitionMetadata"),
    5: ("consumer_group_records", "ConsumerGroupMemberMetadata"),
    6: ("consumer_group_records", "ConsumerGroupTargetAssignmentMetadata"),
    7: ("consumer_group_records", "ConsumerGroupTargetAssignmentMember"),
    8: ("consumer_group_records", "ConsumerGroupCurrentMemberAssignment"),
    10: ("share_group_records", "ShareGroupMemberMetadata"),
    11: ("share_group_records", "ShareGroupMetadata"),
    12: ("share_group_records", "ShareGroupTargetAssignmentMetadata"),
    13: ("share_group_records", "ShareGroupTargetAssignmentMember"),
    14: ("share_group_records", "ShareGroupCurrentMemberAssignment"),
    15: ("share_group_records", "ShareGroupStatePartitionMetadata"),
    16: ("consumer_group_records", "ConsumerGroupRegularExpression"),
    17: ("streams_group_records", "StreamsGroupMetadata"),
    19: ("streams_group_records", "StreamsGroupMemberMetadata"),
    20: ("streams_group_records", "StreamsGroupTargetAssignmentMetadata"),
    21: ("streams_group_records", "StreamsGroupTargetAssignmentMember"),
    22: ("streams_group_records", "StreamsGroupCurrentMemberAssignment"),
    23: ("streams_group_records", "StreamsGroupTopology"),
}
_TRANSACTION_TOPIC_RECORDS = {0: ("transaction_state", "TransactionLog")}
_SHARE_TOPIC_RECORDS = {0: ("share_group_state", "ShareSnapshot"), 1: ("share_group_state", "ShareUpdate")}

OFFSETS_TOPIC_TYPES = tuple(_OFFSETS_TOPIC_RECORDS)
"""Record types of ``__consumer_offsets``."""
SHARE_TOPIC_TYPES = tuple(_SHARE_TOPIC_RECORDS)
"""Record types of ``__share_group_state``."""


@cache
def offsets_topic_classes(record_type: int) -> tuple[type[Message], type[Message]]:
    """Key and value class of a record of ``__consumer_offsets``. Raises KeyError for an unknown type."""
    return _classes(*_OFFSETS_TOPIC_RECORDS[record_type])


@cache
def transaction_topic_classes(record_type: int) -> tuple[type[Message], type[Message]]:
    """Key and value class of a record of ``__transaction_state``. Raises KeyError for an unknown type."""
    return _classes(*_TRANSACTION_TOPIC_RECORDS[record_type])


@cache
def share_topic_classes(record_type: int) -> tuple[type[Message], type[Message]]:
    """Key and value class of a record of ``__share_group_state``. Raises KeyError for an unknown type."""
    return _classes(*_SHARE_TOPIC_RECORDS[record_type])


def _classes(module_name: str, name: str) -> tuple[type[Message], type[Message]]:
    module = import_module(f".messages.{module_name}", __package__)
    return getattr(module, f"{name}Key"), getattr(module, f"{name}Value")


def encode_coordinator_record(message: Message, version: int) -> bytes:
    """A key or a value with its prefix: the record type of a key, the version of a value."""
    prefix = message.api_key if type(message).__name__.endswith("Key") else version
    return _PREFIX.pack(prefix) + encode_bytes(message, version)


def decode_coordinator_key(data: bytes | memoryview) -> Message | None:
    """The key of a record of ``__consumer_offsets``; None when its type is unknown. Raises ProtocolError."""
    record_type = _prefix(data)
    if record_type not in _OFFSETS_TOPIC_RECORDS:
        return None
    return decode(offsets_topic_classes(record_type)[0], 0, data[_PREFIX.size :])


def decode_coordinator_value(key: Message | None, data: bytes | memoryview) -> Message | None:
    """The value of the record with ``key`` in ``__consumer_offsets``; None with a key of unknown type."""
    return None if key is None else _value(offsets_topic_classes(key.api_key)[1], data)


def decode_transaction_key(data: bytes | memoryview) -> Message | None:
    """The key of a record of ``__transaction_state``; None when its type is unknown. Raises ProtocolError."""
    record_type = _prefix(data)
    if record_type not in _TRANSACTION_TOPIC_RECORDS:
        return None
    return decode(transaction_topic_classes(record_type)[0], 0, data[_PREFIX.size :])


def decode_transaction_value(key: Message | None, data: bytes | memoryview) -> Message | None:
    """The value of the record with ``key`` in ``__transaction_state``; None with a key of unknown type."""
    return None if key is None else _value(transaction_topic_classes(key.api_key)[1], data)


def decode_share_key(data: bytes | memoryview) -> Message | None:
    """The key of a record of ``__share_group_state``; None when its type is unknown. Raises ProtocolError."""
    record_type = _prefix(data)
    if record_type not in _SHARE_TOPIC_RECORDS:
        return None
    return decode(share_topic_classes(record_type)[0], 0, data[_PREFIX.size :])


def decode_share_value(key: Message | None, data: bytes | memoryview) -> Message | None:
    """The value of the record with ``key`` in ``__share_group_state``; None with a key of unknown type."""
    return None if key is None else _value(share_topic_classes(key.api_key)[1], data)


def _prefix(data: bytes | memoryview) -> int:
    if len(data) < _PREFIX.size:
        raise ProtocolError(f"a coordinator record of {len(data)} bytes has no type or version")
    prefix: int = _PREFIX.unpack_from(data)[0]
    return prefix


def _value(value_class: type[Message], data: bytes | memoryview) -> Message:
    version = _prefix(data)
    if version not in value_class.valid_versions:
        raise ProtocolError(f"{value_class.__name__} has no version {version}")
    return decode(value_class, version, data[_PREFIX.size :])
