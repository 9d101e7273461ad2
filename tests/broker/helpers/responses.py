"""A response as a client decodes it."""

from __future__ import annotations

from typing import Any

from ottla.wire.codec import decode
from ottla.wire.headers import decode_response_header
from ottla.wire.schema import Message


def body_of(answer: bytes, kind: type[Message], version: int) -> Any:
    position = decode_response_header(answer, kind.api_key, version)[1]
    return decode(kind, version, answer[position:])
