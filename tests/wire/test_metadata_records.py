"""Records of ``__cluster_metadata`` with their frames."""

from __future__ import annotations

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire.messages.setting_records import FeatureLevelRecord
from ottla.wire.messages.topic_records import PartitionChangeRecord
from ottla.wire.metadata_records import (
    RECORD_TYPES,
    decode_metadata_record,
    encode_metadata_record,
    metadata_record_class,
)

TOPIC_ID = bytes(range(16))


def test_a_frame_and_what_has_changed_of_a_partition() -> None:
    record = PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, leader=2, isr=[2, 1])
    data = encode_metadata_record(record, 0)
    assert (
        data.hex()
        == "010500" + "00000003" + TOPIC_ID.hex() + "02" + "00" + "09" + "030000000200000001" + "01" + "04" + "00000002"
    )
    assert decode_metadata_record(data) == (record, 0)


@pytest.mark.parametrize("record_type", RECORD_TYPES)
def test_every_record_comes_back_in_every_version(record_type: int) -> None:
    record_class = metadata_record_class(record_type)
    assert record_class.api_key == record_type
    for version in record_class.valid_versions:
        data = encode_metadata_record(record_class(), version)
        assert decode_metadata_record(memoryview(data)) == (record_class(), version)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "0 bytes has no frame"),
        ("010c", "2 bytes has no frame"),
        ("000c00", "frame version 0"),
        ("010600", "type 6 are unknown"),
        ("01ff0100", "type 255 are unknown"),
        ("010c01", "FeatureLevelRecord has no version 1"),
        ("010c0002610001", "ends too early"),
        ("010c00026100010000", "1 bytes are left over"),
    ],
)
def test_what_is_unknown_is_an_error(data: str, why: str) -> None:
    """Whoever passed over a record would have another cluster than the controller."""
    assert encode_metadata_record(FeatureLevelRecord(name="a", feature_level=1), 0).hex() == "010c000261000100"
    with pytest.raises(ProtocolError, match=why):
        decode_metadata_record(bytes.fromhex(data))
