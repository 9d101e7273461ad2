"""The codec by itself: random round trips, malformed bytes, what a version cannot carry, records without copies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ProtocolError
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode, encode_bytes
from ottla.wire.headers import decode_request_header, encode_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.primitives import MOST_UNKNOWN_TAGS, write_tags, write_uvarint
from ottla.wire.registry import request_class, response_class
from ottla.wire.schema import Array, FieldSpec, Message, Primitive, Struct, WireType, uuid_from_text, uuid_to_text

CASES = [
    (cls, version)
    for key in ApiKey
    for cls in (request_class(key), response_class(key))
    for version in cls.valid_versions
]


class Slice:
    """A file slice whose bytes are in memory."""

    position = 0

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.nbytes = len(data)
        self.is_released = False

    def fileno(self) -> int:
        return -1

    def read(self) -> bytes:
        return self._data

    def release(self) -> None:
        self.is_released = True


def values(wire_type: WireType, version: int, nullable: bool, flexible: bool) -> st.SearchStrategy[Any]:
    """Values a field can have in a version."""
    return st.none() | _values(wire_type, version, flexible) if nullable else _values(wire_type, version, flexible)


def _values(wire_type: WireType, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, Array):
        return st.lists(_values(wire_type.element, version, flexible), max_size=3)
    if not isinstance(wire_type, Primitive):
        return structs(wire_type, version, flexible)
    name = wire_type.name
    if name.startswith(("int", "uint")):
        bits = int(name.removeprefix("u").removeprefix("int"))
        low = 0 if name[0] == "u" else -(1 << bits - 1)
        return st.integers(low, low + (1 << bits) - 1)
    by_name: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": st.text(st.characters(codec="utf-8"), max_size=200),
        "bytes": st.binary(max_size=200),
        "records": st.binary(max_size=200),
    }
    return by_name[name]


def structs(cls: type[Struct], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    """Structs with every field that the version has, and unknown tagged fields where it can carry them."""
    present = {spec.name: _field_values(spec, version, flexible) for spec in cls.fields if version in spec.versions}
    if flexible:
        unknown = st.dictionaries(st.integers(100, (1 << 31) - 1), st.binary(max_size=5), max_size=3)
        present["unknown_tagged_fields"] = unknown.map(lambda tags: tuple(sorted(tags.items())))
    return st.builds(cls, **present)


def _field_values(spec: FieldSpec, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    possible = values(spec.type, version, version in spec.nullable, flexible)
    if spec.is_optional_struct:
        # A tagged struct that equals its default is not written, and so comes back as None.
        return st.none() | possible.filter(lambda value: value != spec.type())
    return possible


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(CASES), label="message")
    message = data.draw(structs(cls, version, version in cls.flexible_versions), label=f"{cls.__name__} v{version}")
    body = encode_bytes(message, version)
    decoded = decode(cls, version, body)
    assert decoded == message
    assert encode_bytes(decoded, version) == body


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_or_are_another_message(data: st.DataObject) -> None:
    cls, version = data.draw(st.sampled_from(CASES), label="message")
    message = data.draw(structs(cls, version, version in cls.flexible_versions), label=f"{cls.__name__} v{version}")
    body = bytearray(encode_bytes(message, version))
    for position in data.draw(st.lists(st.integers(0, max(len(body) - 1, 0)), max_size=3)) if body else []:
        body[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    del body[data.draw(st.integers(0, len(body))) :]
    try:
        decoded = decode(cls, version, body)
    except ProtocolError:
        return
    # Once more round, because Kafka's form is not the only one: tags in any order, defaults written out, long varints.
    canonical = encode_bytes(decoded, version)
    assert encode_bytes(decode(cls, version, canonical), version) == canonical


@pytest.mark.parametrize(("cls", "version"), [(cls, max(cls.valid_versions)) for cls in dict(CASES)])
def test_every_cut_is_refused(cls: type[Message], version: int) -> None:
    body = encode_bytes(cls(), version)
    for size in range(len(body)):
        with pytest.raises(ProtocolError):
            decode(cls, version, body[:size])


@given(data=st.data())
@settings(max_examples=100)
def test_elements_are_counted_over_all_arrays(data: st.DataObject) -> None:
    topics = data.draw(st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=5))
    asked = [FetchTopic(topic="t", partitions=[FetchPartition(partition=n) for n in each]) for each in topics]
    request = FetchRequest(topics=asked, forgotten_topics_data=[ForgottenTopic(topic="t", partitions=[1, 2])])
    body = encode_bytes(request, 12)
    count = len(topics) + sum(map(len, topics)) + 3
    assert decode(FetchRequest, 12, body, most_elements=count) == request
    with pytest.raises(ProtocolError, match=f"more than {count - 1} elements"):
        decode(FetchRequest, 12, body, most_elements=count - 1)


def test_bytes_left_over_are_refused() -> None:
    body = encode_bytes(FetchRequest(), 12)
    with pytest.raises(ProtocolError, match="1 bytes are left over"):
        decode(FetchRequest, 12, body + b"\x00")


@pytest.mark.parametrize(
    ("cls", "version", "body", "reason"),
    [
        (MetadataRequest, 0, "7fffffff", "announces 2147483647, but 0 bytes"),
        (MetadataRequest, 0, "ffffffff", "must not be null"),
        (MetadataRequest, 9, "ffffffff0f", "does not fit 31 bits"),
        (MetadataRequest, 9, "ffffffffff7f", "longer than five bytes"),
        (MetadataRequest, 9, "0200000000", "MetadataRequestTopic.name must not be null"),
        (MetadataRequest, 0, "000000010003ff", "announces 3, but 1 bytes"),
        (MetadataRequest, 0, "0000000100026fff", "utf-8"),
        (ApiVersionsRequest, 3, "010101057f", "tagged field announces 127, but 0 bytes"),
        (ApiVersionsRequest, 3, "01010205000500", "tagged field occurs twice"),
        (FetchRequest, 12, "", "ends too early"),
    ],
)
def test_malformed_bodies_are_refused(cls: type[Message], version: int, body: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(cls, version, bytes.fromhex(body))


@pytest.mark.parametrize(("length", "is_taken"), [(32_767, True), (32_768, False)])
def test_a_string_of_a_flexible_version_is_no_longer_than_one_of_an_older(length: int, is_taken: bool) -> None:
    """As Kafka's generated readers have it."""
    text = b"x" * length
    in_array = b"\x02" + bytes(16) + write_uvarint(length + 1) + text + bytes(4)
    in_tag = encode_bytes(FetchRequest(), 12)[:-1] + b"\x01\x00" + write_uvarint(length + 3)
    in_tag += write_uvarint(length + 1) + text
    for cls, version, body in ((MetadataRequest, 12, in_array), (FetchRequest, 12, in_tag)):
        if is_taken:
            assert encode_bytes(decode(cls, version, body), version) == body
        else:
            with pytest.raises(ProtocolError, match="has 32768 bytes, and a string 32767 at most"):
                decode(cls, version, body)


def test_no_request_is_made_of_tagged_fields_alone() -> None:
    def with_tags(count: int) -> tuple[bytes, bytes]:
        tags = write_tags([(number, b"") for number in range(100, 100 + count)])
        header = encode_request_header(ApiKey.API_VERSIONS, 3, 7, "c")[:-1] + tags
        return header, encode_bytes(ApiVersionsRequest(), 3)[:-1] + tags

    header, body = with_tags(MOST_UNKNOWN_TAGS)
    assert decode_request_header(header)[1] == len(header)
    assert len(decode(ApiVersionsRequest, 3, body).unknown_tagged_fields) == MOST_UNKNOWN_TAGS
    header, body = with_tags(MOST_UNKNOWN_TAGS + 1)
    with pytest.raises(ProtocolError, match="tagged fields, more than 1000"):
        decode_request_header(header)
    with pytest.raises(ProtocolError, match="tagged fields, more than 1000"):
        decode(ApiVersionsRequest, 3, body)
    fetch = encode_bytes(FetchRequest(), 12)[:-1]
    with pytest.raises(ProtocolError, match="tagged fields, more than 1000"):
        decode(FetchRequest, 12, fetch + write_tags([(number, b"") for number in range(100, 1200)]))


def test_a_null_array_is_read_where_it_may_be_null() -> None:
    assert decode(MetadataRequest, 1, bytes.fromhex("ffffffff")).topics is None
    assert decode(MetadataRequest, 1, bytes.fromhex("00000000")).topics == []


def test_a_tagged_field_that_lies_about_its_size_is_refused() -> None:
    body = encode_bytes(FetchRequest(cluster_id="abc"), 12)
    assert body.endswith(bytes.fromhex("01000404616263"))
    with pytest.raises(ProtocolError, match="tagged field 0 of FetchRequest"):
        decode(FetchRequest, 12, body[:-5] + bytes.fromhex("0504616263") + b"x")


def test_an_unknown_tagged_field_that_is_there_twice_is_refused() -> None:
    body = encode_bytes(FetchRequest(cluster_id="abc"), 12)
    assert body.endswith(bytes.fromhex("01000404616263"))
    with pytest.raises(ProtocolError, match="occurs twice"):
        decode(FetchRequest, 12, body[:-7] + bytes.fromhex("03000404616263" + "0500" + "0500"))


def test_unknown_tagged_fields_are_kept_in_order_beside_known_ones() -> None:
    request = FetchRequest(cluster_id="abc")
    request.unknown_tagged_fields = ((7, b"seven"), (1, b""))
    body = encode_bytes(request, 12)
    assert body.endswith(bytes.fromhex("03" + "000404616263" + "0100" + "0705") + b"seven")
    assert decode(FetchRequest, 12, body).unknown_tagged_fields == ((1, b""), (7, b"seven"))


def test_tagged_fields_need_a_flexible_version_and_a_tag_of_their_own() -> None:
    request = FetchRequest(cluster_id="abc")
    request.unknown_tagged_fields = ((0, b""),)
    with pytest.raises(ValueError, match="occurs twice"):
        encode(request, 12)
    request = FetchRequest()
    request.unknown_tagged_fields = ((1, b""),)
    with pytest.raises(ValueError, match="unknown_tagged_fields"):
        encode(request, 11)


def test_tagged_fields_with_their_default_are_not_written() -> None:
    partition = PartitionData(diverging_epoch=EpochEndOffset(), records=b"")
    unset = PartitionData(records=b"")
    bodies = [
        encode_bytes(FetchResponse(responses=[FetchableTopicResponse(partitions=[one])]), 12)
        for one in (partition, unset)
    ]
    assert bodies[0] == bodies[1]
    decoded = decode(FetchResponse, 12, bodies[0])
    assert decoded.responses[0].partitions[0].diverging_epoch is None


def test_a_value_that_the_version_has_no_field_for() -> None:
    with pytest.raises(ValueError, match="forgotten_topics_data is set, but version 4"):
        encode(FetchRequest(forgotten_topics_data=[ForgottenTopic()]), 4)
    ignorable = FetchRequest(rack_id="left out", max_bytes=5)
    assert encode_bytes(ignorable, 0) == encode_bytes(FetchRequest(), 0)


@pytest.mark.parametrize(
    "message",
    [
        FetchRequest(max_wait_ms=1 << 31),
        FetchRequest(topics=[FetchTopic(topic=None)]),  # type: ignore[arg-type]
        FetchRequest(topics=None),  # type: ignore[arg-type]
        FetchRequest(topics=[FetchTopic(topic="x" * 40000)]),
        FetchRequest(topics=[FetchTopic(topic="x", partitions=[FetchPartition(fetch_offset=None)])]),  # type: ignore[arg-type]
    ],
)
def test_values_that_do_not_fit_their_type(message: FetchRequest) -> None:
    with pytest.raises(ValueError, match="FetchRequest v4"):
        encode(message, 4)


def test_versions_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="0-18, not 99"):
        decode(FetchRequest, 99, b"")
    with pytest.raises(ValueError, match="0-18, not -1"):
        encode(FetchRequest(), -1)


def test_records_are_views_of_the_buffer() -> None:
    data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=b"some records")])]
    body = bytearray(encode_bytes(ProduceRequest(acks=1, topic_data=data), 9))
    records = decode(ProduceRequest, 9, body).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    body[body.index(b"some")] = ord("S")
    assert bytes(records) == b"Some records"


def test_records_are_parts_of_their_own() -> None:
    first, second = Slice(b"first records"), memoryview(b"second")
    partitions = [PartitionData(partition_index=0, records=first), PartitionData(partition_index=1, records=second)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = encode(response, 12)
    assert len(parts) == 5
    assert parts[1] is first
    assert parts[3] is second
    body = encode_bytes(response, 12)
    assert first.is_released
    decoded = decode(FetchResponse, 12, body).responses[0].partitions
    assert [bytes(one.records) for one in decoded if isinstance(one.records, memoryview)] == [
        b"first records",
        b"second",
    ]


def test_bytes_outside_records_are_copied() -> None:
    body = bytearray(encode_bytes(MetadataResponse(cluster_id="cluster"), 9))
    decoded = decode(MetadataResponse, 9, memoryview(body))
    body[:] = bytes(len(body))
    assert decoded.cluster_id == "cluster"


def test_an_empty_body_has_no_parts() -> None:
    assert encode(ApiVersionsRequest(), 0) == []
    assert decode(ApiVersionsRequest, 0, b"") == ApiVersionsRequest()


def test_uuids_as_text() -> None:
    assert uuid_to_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    value = bytes(range(240, 256))
    assert uuid_to_text(value) == "8PHy8_T19vf4-fr7_P3-_w"
    assert uuid_from_text("8PHy8_T19vf4-fr7_P3-_w") == value
    for wrong in ("", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAA", "8PHy8/T19vf4+fr7/P3+/w"):
        with pytest.raises(ValueError, match="not a Kafka uuid"):
            uuid_from_text(wrong)
