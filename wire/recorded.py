"""The file that records the requests of a connection closed for a protocol error, as they were received.

The file is one JSON object:

==========  =========================================================================================================
time        when it happened, ISO 8601 in UTC
peer        address of the client
listener    name of the listener
error       what was wrong
frames      the requests in their order, the malformed one last: ``size``, which the frame announces, and ``hex``, its bytes
            after the size, which may be cut off
==========  =========================================================================================================

A Produce request that was served has the offsets of its records in the log, because they are written in place.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..base.errors import ProtocolError
from .api_keys import ApiKey
from .codec import decode
from .describe import message_as_json
from .headers import decode_request_header
from .registry import request_class

_SIZE = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Frame:
    """One request."""

    size: int
    """The size that it announces."""
    data: bytes
    """Its bytes after the size, which may be cut off."""

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.size


def split_frames(data: bytes | bytearray | memoryview, most: int) -> Iterator[Frame]:
    """The frames that follow each other in ``data``, at most ``most`` bytes of each; the last one may be cut short."""
    position = 0
    while position + _SIZE.size <= len(data):
        (size,) = _SIZE.unpack_from(data, position)
        position += _SIZE.size
        announced = size if size >= 0 else len(data)
        yield Frame(size, bytes(data[position : position + min(announced, most)]))
        position += announced


def recording_text(time: str, peer: str, listener: str, error: str, frames: list[Frame]) -> str:
    """The content of a file."""
    listed = [{"size": frame.size, "hex": frame.data.hex()} for frame in frames]
    content = {"time": time, "peer": peer, "listener": listener, "error": error, "frames": listed}
    return json.dumps(content, indent=1) + "\n"


def decoded_recording(text: str) -> dict[str, Any]:
    """A file's content with every request decoded. Raises ValueError when it is not such a file."""
    try:
        content: dict[str, Any] = json.loads(text)
        frames = [Frame(frame["size"], bytes.fromhex(frame["hex"])) for frame in content.pop("frames")]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a recording of requests: {error!r}") from None
    content["requests"] = [_decoded(frame) for frame in frames]
    return content


def _decoded(frame: Frame) -> dict[str, Any]:
    """One request, as far as it can be decoded; ``problem`` says what is wrong with it."""
    shown: dict[str, Any] = {"size": frame.size}
    if not frame.is_whole:
        shown["kept"] = len(frame.data)
    try:
        shown |= decoded_request(frame.data)
    except (ProtocolError, ValueError) as error:
        shown |= _header(frame.data)
        shown |= {"problem": str(error), "hex": frame.data.hex()}
    return shown


def _header(data: bytes) -> dict[str, Any]:
    try:
        header, _ = decode_request_header(data)
    except ProtocolError:
        return {}
    names = {"api_key": header.api_key, "api": ApiKey(header.api_key).name, "version": header.api_version}
    return names | {"header": {"correlation_id": header.correlation_id, "client_id": header.client_id}}


def decoded_request(data: bytes) -> dict[str, Any]:
    """Header and body of a whole request without its size. Raises ProtocolError, ValueError."""
    header, offset = decode_request_header(data)
    key = ApiKey(header.api_key)
    message_class = request_class(key)
    if header.api_version not in message_class.valid_versions:
        raise ValueError(f"{message_class.__name__} has no version {header.api_version}")
    message = decode(message_class, header.api_version, data[offset:], ignore_rest=True)
    return {
        "header": {"correlation_id": header.correlation_id, "client_id": header.client_id},
        "message": message_class.__name__,
        "version": header.api_version,
        "body": message_as_json(message, header.api_version),
    }
