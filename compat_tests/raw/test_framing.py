"""Frames, headers and the negotiation of versions.

Not here: that tagged fields are only written where the version has them is held for every message and version by the
conformance tests of the codec; that the ranges are those of one release of Kafka, and not too old for any client, shows in the
tests of the clients, each of which derives its features from them; share groups are not served.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.wire_client import Connection
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.headers import encode_request_header
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest

pytestmark = pytest.mark.client("wire")
HELLO = ApiVersionsRequest(client_software_name="ottla-compat", client_software_version="1.0")


def api_versions(connection: Connection) -> dict[int, tuple[int, int]]:
    """The advertised ranges by key."""
    answer = connection.call(HELLO, 3)
    assert answer.error_code == ErrorCode.NONE
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


@pytest.mark.capability("ApiVersions at an unknown version")
def test_unknown_api_versions_version(wire: Connection) -> None:
    # The body after the header's tags is of an unknown version: it must not be parsed.
    wire.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, 4) + b"test\x00" + b"\xff" * 9)
    frame = wire.receive_frame()
    assert struct.unpack_from(">i", frame) == (7,)
    answer = decode(ApiVersionsResponse, 0, frame[4:])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    (own,) = [each for each in answer.api_keys if each.api_key == ApiKey.API_VERSIONS]
    assert (own.min_version, own.max_version >= 4) == (0, True)
    # The connection stays open, and the client tries again on it.
    assert ApiKey.METADATA in api_versions(wire)


@pytest.mark.capability("ApiVersions")
def test_response_header_has_no_tags(wire: Connection) -> None:
    header = encode_request_header(ApiKey.API_VERSIONS, 3, 9, "test")
    wire.send_frame(header + encode_bytes(HELLO, 3))
    frame = wire.receive_frame()
    # Correlation id, then the body at once: its error code and a compact array.
    assert decode(ApiVersionsResponse, 3, frame[4:]).error_code == ErrorCode.NONE


@pytest.mark.capability("ApiVersions")
@pytest.mark.parametrize("version", range(5))
def test_every_version_has_its_own_layout(wire: Connection, version: int) -> None:
    assert wire.call(HELLO, version).error_code == ErrorCode.NONE


@pytest.mark.capability("ApiVersions")
def test_advertised_ranges(wire: Connection) -> None:
    ranges = api_versions(wire)
    # The minimum keeps librdkafka before 2.11.1 compressing (KAFKA-18659); versions 0 to 2 are refused anyway.
    assert ranges[ApiKey.PRODUCE][0] == 0
    assert ranges[ApiKey.PRODUCE][1] >= 11
    # ListOffsets 0 means something else, and without InitProducerId default producers lose idempotence.
    assert ranges[ApiKey.LIST_OFFSETS][0] == 1
    assert ApiKey.INIT_PRODUCER_ID in ranges
    assert ranges[ApiKey.METADATA] >= (0, 12)
    # With telemetry keys librdkafka would push metrics.
    assert not ranges.keys() & {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert all(lowest <= highest for lowest, highest in ranges.values())


@pytest.mark.capability("ApiVersions")
@pytest.mark.parametrize(
    "software", [("", "1.0"), ("ottla", ""), ("with space", "1.0"), ("ottla", "1.0 beta"), ("-ottla", "1.0")]
)
def test_bad_software_name(wire: Connection, software: tuple[str, str]) -> None:
    request = ApiVersionsRequest(client_software_name=software[0], client_software_version=software[1])
    assert wire.call(request, 3).error_code == ErrorCode.INVALID_REQUEST
    assert ApiKey.METADATA in api_versions(wire)


@pytest.mark.capability("requests that cannot be answered close the connection")
@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hhih", -1, 0, 1, -1),
        struct.pack(">hhih", ApiKey.LEADER_AND_ISR, 0, 1, -1),
        struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1),
        struct.pack(">hhih", ApiKey.METADATA, -1, 1, -1),
        struct.pack(">hhih", ApiKey.PRODUCE, 2, 1, -1) + struct.pack(">hii", 1, 1000, 0),
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, 1000) + b"short",
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -7) + struct.pack(">i", 0x7FFFFFFF),
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1) + struct.pack(">ih", 1, 0x7FFF) + b"short",
        struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1),
        b"\x00",
        b"",
    ],
    ids=[
        "unknown-key",
        "negative-key",
        "removed-key",
        "version-too-high",
        "negative-version",
        "refused-produce",
        "client-id-too-long",
        "array-too-long",
        "string-too-long",
        "no-body",
        "one-byte",
        "empty-frame",
    ],
)
def test_closes(wire: Connection, connections: Callable[[], Connection], frame: bytes) -> None:
    wire.send_frame(frame)
    with pytest.raises(EOFError):
        wire.receive_frame()
    assert ApiKey.METADATA in api_versions(connections())


@pytest.mark.capability("requests that cannot be answered close the connection")
@pytest.mark.parametrize("size", [-1, -0x80000000, 0x7FFFFFFF])
def test_announced_size(wire: Connection, connections: Callable[[], Connection], size: int) -> None:
    wire.socket.sendall(struct.pack(">i", size))
    with pytest.raises(EOFError):
        wire.receive_frame()
    assert ApiKey.METADATA in api_versions(connections())


@pytest.mark.capability("client id and header tags")
@pytest.mark.parametrize("version", [1, 8, 9, 12])
@pytest.mark.parametrize("client_id", [None, "", "gr\u00fc\u00dfe"])
def test_client_id(wire: Connection, version: int, client_id: str | None) -> None:
    assert wire.call(MetadataRequest(topics=[]), version, client_id=client_id).brokers


@pytest.mark.capability("client id and header tags")
@pytest.mark.parametrize("client_id", [struct.pack(">h", -1), struct.pack(">h", 2) + b"me"], ids=["null", "named"])
def test_unknown_header_tags_are_skipped(wire: Connection, client_id: bytes) -> None:
    tags = bytes([2, 0, 3]) + b"abc" + bytes([200, 1, 0])  # tag 0 of three bytes, tag 200 of none
    body = encode_bytes(MetadataRequest(topics=[]), 12)
    wire.send_frame(struct.pack(">hhi", ApiKey.METADATA, 12, 5) + client_id + tags + body)
    frame = wire.receive_frame()
    assert frame[:5] == struct.pack(">ib", 5, 0)


@pytest.mark.capability("client id and header tags")
def test_bytes_after_a_request_are_ignored(wire: Connection) -> None:
    # librdkafka asks for all topics like this.
    header = encode_request_header(ApiKey.METADATA, 12, 1, "test")
    wire.send_frame(header + encode_bytes(MetadataRequest(topics=[]), 12) + b"\x01\x00\x00")
    assert struct.unpack_from(">i", wire.receive_frame()) == (1,)


@pytest.mark.capability("every advertised version is answered in its layout")
def test_metadata_and_find_coordinator(wire: Connection) -> None:
    ranges = api_versions(wire)
    for version in range(ranges[ApiKey.METADATA][0], min(13, ranges[ApiKey.METADATA][1]) + 1):
        # Decoding is strict: a field too many or too few of this version fails.
        assert wire.call(MetadataRequest(topics=[]), version).brokers
    for version in range(ranges[ApiKey.FIND_COORDINATOR][0], min(6, ranges[ApiKey.FIND_COORDINATOR][1]) + 1):
        request = FindCoordinatorRequest(coordinator_keys=["g"]) if version >= 4 else FindCoordinatorRequest(key="g")
        wire.call(request, version)
