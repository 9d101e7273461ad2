"""Keys and values of the coordinators' topics with their prefixes."""

from __future__ import annotations

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire.coordinator_records import (
    OFFSETS_TOPIC_TYPES,
    decode_coordinator_key,
    decode_coordinator_value,
    decode_share_key,
    decode_share_value,
    decode_transaction_key,
    decode_transaction_value,
    encode_coordinator_record,
    offsets_topic_classes,
)
from ottla.wire.messages.consumer_group_records import ClassicMemberMetadata, ConsumerGroupMemberMetadataValue
from ottla.wire.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.messages.share_group_state import ShareUpdateKey, ShareUpdateValue, StateBatch
from ottla.wire.messages.transaction_state import TransactionLogKey, TransactionLogValue


def test_an_offset_commit() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    data = encode_coordinator_record(key, 0)
    assert data.hex() == "0001" + "000167" + "000174" + "00000003"
    assert decode_coordinator_key(data) == key

    value = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)
    data = encode_coordinator_record(value, 3)
    assert data.hex() == "0003" + "0000000000000005" + "00000002" + "00016d" + "0000000000000009"
    assert decode_coordinator_value(key, data) == value


def test_every_record_type_comes_back() -> None:
    for record_type in OFFSETS_TOPIC_TYPES:
        key_class, value_class = offsets_topic_classes(record_type)
        key_data = encode_coordinator_record(key_class(), 0)
        assert int.from_bytes(key_data[:2], "big") == record_type
        key = decode_coordinator_key(memoryview(key_data))
        assert key == key_class()
        for version in value_class.valid_versions:
            assert decode_coordinator_value(key, encode_coordinator_record(value_class(), version)) == value_class()


def test_a_member_without_classic_metadata() -> None:
    """Kafka writes a null struct in a tagged field as the varint 0, not as the -1 it writes elsewhere."""
    without = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    data = encode_coordinator_record(without, 0)
    assert data.endswith(bytes.fromhex("01" + "0001" + "00"))
    key = offsets_topic_classes(5)[0]()
    assert decode_coordinator_value(key, data) == without

    with_it = ConsumerGroupMemberMetadataValue(classic_member_metadata=ClassicMemberMetadata(session_timeout_ms=7))
    assert decode_coordinator_value(key, encode_coordinator_record(with_it, 0)) == with_it


def test_a_transaction() -> None:
    key = TransactionLogKey(transactional_id="x")
    data = encode_coordinator_record(key, 0)
    assert data.hex() == "0000" + "000178"
    assert decode_transaction_key(data) == key
    value = TransactionLogValue(producer_id=4, transaction_partitions=None, client_transaction_version=2)
    assert decode_transaction_value(key, encode_coordinator_record(value, 1)) == value


def test_an_update_of_a_share_partition() -> None:
    key = ShareUpdateKey(group_id="g", topic_id=bytes(range(16)), partition=3)
    data = encode_coordinator_record(key, 0)
    assert data.hex() == "0001" + "000167" + bytes(range(16)).hex() + "00000003"
    assert decode_share_key(data) == key
    batch = StateBatch(first_offset=1, last_offset=2, delivery_state=4, delivery_count=5)
    value = ShareUpdateValue(snapshot_epoch=7, start_offset=1, delivery_complete_count=2, state_batches=[batch])
    assert decode_share_value(key, encode_coordinator_record(value, 0)) == value


def test_unknown_types_are_passed_over() -> None:
    assert decode_coordinator_key(bytes.fromhex("7fff")) is None
    assert decode_coordinator_key(bytes.fromhex("0009aabb")) is None
    assert decode_coordinator_value(None, b"anything") is None
    assert decode_transaction_key(bytes.fromhex("0001")) is None
    assert decode_share_key(bytes.fromhex("0002")) is None
    assert decode_share_value(None, b"anything") is None


def test_damaged_records_are_refused() -> None:
    with pytest.raises(ProtocolError, match="no type or version"):
        decode_coordinator_key(b"\x00")
    with pytest.raises(ProtocolError, match="GroupMetadataKey"):
        decode_coordinator_key(bytes.fromhex("0002"))
    with pytest.raises(ProtocolError, match="OffsetCommitValue has no version 9"):
        decode_coordinator_value(OffsetCommitKey(), bytes.fromhex("0009"))
    with pytest.raises(ProtocolError, match="left over"):
        decode_coordinator_value(GroupMetadataKey(), encode_coordinator_record(GroupMetadataValue(), 3) + b"x")
