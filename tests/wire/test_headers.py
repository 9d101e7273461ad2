"""Headers, byte by byte; which version goes with which API is checked against Kafka in test_kafka_bytes."""

from __future__ import annotations

import pytest

from ottla.base.errors import ProtocolError
from ottla.wire.api_keys import ApiKey
from ottla.wire.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    response_header_encoder,
)

REQUEST_HEADERS = [
    (ApiKey.FETCH, 11, "é", "0001000b00000007" + "0002c3a9"),
    (ApiKey.FETCH, 12, "é", "0001000c00000007" + "0002c3a9" + "00"),
    (ApiKey.FETCH, 12, None, "0001000c00000007" + "ffff" + "00"),
    (ApiKey.SASL_HANDSHAKE, 1, "", "0011000100000007" + "0000"),
    (ApiKey.CONTROLLED_SHUTDOWN, 0, "ignored", "0007000000000007"),
    (ApiKey.CONTROLLED_SHUTDOWN, 1, "b", "0007000100000007" + "000162"),
]


@pytest.mark.parametrize(("key", "version", "client_id", "expected"), REQUEST_HEADERS)
def test_request_headers(key: ApiKey, version: int, client_id: str | None, expected: str) -> None:
    encoded = encode_request_header(key, version, 7, client_id)
    assert encoded.hex() == expected
    header, offset = decode_request_header(memoryview(encoded + b"body"))
    has_client_id = key != ApiKey.CONTROLLED_SHUTDOWN or version > 0
    assert header == RequestHeader(key, version, 7, (client_id or "") if has_client_id else "")
    assert offset == len(encoded)


def test_a_header_of_a_version_nobody_knows_is_read() -> None:
    """A broker answers UNSUPPORTED_VERSION to ApiVersions of any version, so it must get past the header (KIP-511)."""
    encoded = encode_request_header(ApiKey.API_VERSIONS, 32767, 1, "future")
    assert decode_request_header(encoded)[0].api_version == 32767


def test_unknown_tagged_fields_in_a_header_are_skipped() -> None:
    plain = encode_request_header(ApiKey.FETCH, 12, 7, "c")
    header, offset = decode_request_header(plain[:-1] + bytes.fromhex("02" + "0001ff" + "6400") + b"body")
    assert header.client_id == "c"
    assert offset == len(plain) + 5


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "cut short, 0 bytes"),
        ("0001000c0000", "cut short"),
        ("0001000c00000007000263", "announces 2 bytes"),
        ("0001000c000000070001ff00", "client id"),
        ("0001000c00000007000163", "cut short"),
        ("0001000c00000007000163" + "010005", "tagged field announces 5"),
        ("7fff000c000000070000", "API key 32767 does not exist"),
        ("ffff000c000000070000", "API key -1 does not exist"),
    ],
)
def test_malformed_request_headers(data: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode_request_header(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("key", "version", "expected"),
    [(ApiKey.FETCH, 11, "00000007"), (ApiKey.FETCH, 12, "0000000700"), (ApiKey.API_VERSIONS, 4, "00000007")],
)
def test_response_headers(key: ApiKey, version: int, expected: str) -> None:
    encoded = response_header_encoder(key, version)(7)
    assert encoded.hex() == expected
    assert decode_response_header(encoded + b"body", key, version) == (7, len(encoded))


def test_malformed_response_header() -> None:
    with pytest.raises(ProtocolError, match="cut short"):
        decode_response_header(bytes(4), ApiKey.FETCH, 12)
