"""Control records: keys and end transaction markers byte for byte, later versions read, damage refused."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.wire.codec import encode_bytes
from ottla.wire.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_marker_batch,
    decode_control_key,
    decode_end_marker,
    decode_quorum_record,
    encode_control_key,
    encode_end_marker,
)
from ottla.wire.messages.control_records import LeaderChangeMessage, LeaderChangeVoter
from ottla.wire.records import Record, RecordBatch


def test_keys() -> None:
    assert encode_control_key(ControlRecordType.COMMIT) == bytes.fromhex("0000 0001")
    for record_type in ControlRecordType:
        assert decode_control_key(encode_control_key(record_type)) is record_type


def test_a_key_of_a_later_version_is_read_and_a_type_of_the_future_is_none() -> None:
    assert decode_control_key(bytes.fromhex("0003 0001 ffff")) is ControlRecordType.COMMIT
    assert decode_control_key(bytes.fromhex("0000 0007")) is None
    assert decode_control_key(bytes.fromhex("0000 ffff")) is None


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_malformed_keys(key: bytes | None) -> None:
    with pytest.raises(KafkaError) as raised:
        decode_control_key(key)
    assert raised.value.code is ErrorCode.INVALID_RECORD


def test_a_marker_of_a_later_version_is_read() -> None:
    record = Record(key=bytes.fromhex("0000 0000"), value=bytes.fromhex("0001 00000005 ff"))
    assert decode_end_marker(record) == EndTransactionMarker(ControlRecordType.ABORT, 5)


def test_other_control_records_are_no_end_markers() -> None:
    assert decode_end_marker(Record(key=encode_control_key(ControlRecordType.LEADER_CHANGE))) is None


@pytest.mark.parametrize("value", [None, b"", bytes(5), b"\xff\xff" + bytes(4)])
def test_malformed_markers(value: bytes | None) -> None:
    with pytest.raises(KafkaError) as raised:
        decode_end_marker(Record(key=encode_control_key(ControlRecordType.COMMIT), value=value))
    assert raised.value.code is ErrorCode.INVALID_RECORD


def test_a_marker_batch() -> None:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 12)
    assert encode_end_marker(marker) == bytes.fromhex("0000 0000000c")
    batch = RecordBatch(build_end_marker_batch(marker, producer_id=9, producer_epoch=2, timestamp=1000))
    batch.check_crc()
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (9, 2, -1, -1)
    assert (batch.record_count, batch.last_offset_delta, batch.max_timestamp) == (1, 0, 1000)
    assert [decode_end_marker(record) for record in batch.records()] == [marker]


def test_a_quorum_record_is_read_in_the_version_it_names() -> None:
    voters = [LeaderChangeVoter(voter_id=1, voter_directory_id=bytes(range(16)))]
    message = LeaderChangeMessage(version=1, leader_id=1, voters=voters)
    key = encode_control_key(ControlRecordType.LEADER_CHANGE)
    assert decode_quorum_record(Record(key=key, value=encode_bytes(message, 1))) == message
    assert decode_quorum_record(Record(key=encode_control_key(ControlRecordType.ABORT), value=b"")) is None


@pytest.mark.parametrize("value", [None, b"", b"\x00", b"\x00\x00", b"\x00\x02\x00\x00", b"\xff\xff"])
def test_malformed_quorum_records(value: bytes | None) -> None:
    with pytest.raises(KafkaError) as raised:
        decode_quorum_record(Record(key=encode_control_key(ControlRecordType.LEADER_CHANGE), value=value))
    assert raised.value.code is ErrorCode.INVALID_RECORD
