"""Request and response headers, which precede every message body.

========  ==========================================================================================================
request   v0: key, version, correlation id (ControlledShutdown v0 alone); v1 adds the client id; v2 adds tagged fields
response  v0: correlation id; v1 adds tagged fields
========  ==========================================================================================================

The flexible header goes with the flexible versions of a body, with one exception: an ApiVersions response always has
header v0, because the client cannot know yet which versions the broker speaks (KIP-511). The client id keeps its 16-bit
length in every header, so that it can be read, like the three fields before it, also when the version is unknown.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from ..base.errors import ProtocolError
from .api_keys import ApiKey, flexible_from
from .primitives import read_unknown_tags, read_uvarint

_START = struct.Struct(">hhi")
_KEY_AND_VERSION = struct.Struct(">hh")
_KEYED_START = struct.Struct(">Iih")
_CORRELATION_ID = struct.Struct(">i")
_FLEXIBLE_RESPONSE = struct.Struct(">ix")


@dataclass(slots=True)
class RequestHeader:
    """The header of one request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    """Empty when the client sent none."""


def request_header_version(api_key: int, version: int) -> int:
    """0, 1 or 2. Raises KeyError for an unknown key."""
    if version >= flexible_from(api_key):
        return 2
    return 0 if api_key == ApiKey.CONTROLLED_SHUTDOWN and version == 0 else 1


def response_header_version(api_key: int, version: int) -> int:
    """0 or 1. Raises KeyError for an unknown key."""
    return int(api_key != ApiKey.API_VERSIONS and version >= flexible_from(api_key))


def decode_request_header(buffer: bytes | bytearray | memoryview) -> tuple[RequestHeader, int]:
    """The header at the start of a frame, and the offset of the body.

    Unknown tagged fields are skipped. Raises ProtocolError when the header is malformed or its API key is unknown.
    """
    key, correlation_id, length = start_of_request(buffer)
    api_key, version = key_and_version(key)
    try:
        header_version = request_header_version(api_key, version)
    except KeyError:
        raise ProtocolError(f"API key {api_key} does not exist") from None
    client_id, position = rest_of_header(buffer, header_version, length)
    return RequestHeader(api_key, version, correlation_id, client_id), position


def key_and_version(key: int) -> tuple[int, int]:
    """The two 16-bit numbers, with their signs, that ``start_of_request`` returns as one."""
    return _KEY_AND_VERSION.unpack(key.to_bytes(4))


def start_of_request(buffer: bytes | bytearray | memoryview) -> tuple[int, int, int]:
    """API key and version as one number (the key shifted left by 16), the correlation id, and the length of the client id.

    Raises ProtocolError when the buffer is too short.
    """
    try:
        return _KEYED_START.unpack_from(buffer)
    except struct.error:
        raise ProtocolError(f"request header cut short, {len(buffer)} bytes") from None


def rest_of_header(buffer: bytes | bytearray | memoryview, header_version: int, length: int) -> tuple[str, int]:
    """The client id, which has ``length`` bytes, and the offset of the body. Raises ProtocolError when it is malformed."""
    if header_version == 0:
        return "", _START.size
    end = _KEYED_START.size + length if length > 0 else _KEYED_START.size
    if end > len(buffer):
        raise ProtocolError(f"client id announces {length} bytes, beyond the end of the frame")
    try:
        client_id = str(buffer[_KEYED_START.size : end], "utf-8")
        return client_id, end if header_version == 1 else _skip_tags(buffer, end)
    except (struct.error, IndexError):
        raise ProtocolError(f"request header cut short, {len(buffer)} bytes") from None
    except UnicodeDecodeError as error:
        raise ProtocolError(f"client id: {error}") from None


def _skip_tags(buffer: bytes | bytearray | memoryview, position: int) -> int:
    if buffer[position] == 0:
        return position + 1
    view = memoryview(buffer)
    count, position = read_uvarint(view, position)
    return read_unknown_tags(view, position, count, len(buffer))[1]


def encode_request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header that a client sends before a body. Raises KeyError for an unknown key."""
    start = _START.pack(api_key, version, correlation_id)
    header_version = request_header_version(api_key, version)
    if header_version == 0:
        return start
    name = b"" if client_id is None else client_id.encode()
    length = struct.pack(">h", -1 if client_id is None else len(name))
    return start + length + name + (b"\x00" if header_version == 2 else b"")


def response_header_encoder(api_key: int, version: int) -> Callable[[int], bytes]:
    """A function that encodes the header of responses to requests of this key and version, given their correlation ids."""
    return (_FLEXIBLE_RESPONSE if response_header_version(api_key, version) else _CORRELATION_ID).pack


def decode_response_header(buffer: bytes | bytearray | memoryview, api_key: int, version: int) -> tuple[int, int]:
    """The correlation id and the offset of the body. Raises ProtocolError when the header is malformed."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer)
        if response_header_version(api_key, version):
            return correlation_id, _skip_tags(buffer, _CORRELATION_ID.size)
        return correlation_id, _CORRELATION_ID.size
    except (struct.error, IndexError):
        raise ProtocolError(f"response header cut short, {len(buffer)} bytes") from None
