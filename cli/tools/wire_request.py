"""Requests that kafka-python lacks, sent by its clients, with their addresses, TLS, passwords and time-outs.

The bytes are the broker's own codec's. kafka-python asks for them, and for the response's meaning, by the few methods that its
own requests have.
"""

from __future__ import annotations

import io
from typing import Any

from ...wire.api_keys import ApiKey
from ...wire.codec import decode, encode_bytes
from ...wire.headers import decode_response_header, encode_request_header
from ...wire.registry import response_class
from ...wire.schema import Message


class WireRequest:
    """One request. The broker picks its version from ``lowest`` to ``highest``."""

    API_VERSION: int | None = None

    def __init__(self, message: Message, lowest: int, highest: int) -> None:
        self._message = message
        self._correlation_id = 0
        self._client_id = ""
        self.key = ApiKey(type(message).api_key)
        self.API_KEY = int(self.key)
        self.name = type(message).__name__
        self.min_version = self._min_version = lowest
        self.max_version = self._max_version = highest

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Called before the request is encoded."""
        self._correlation_id, self._client_id = correlation_id, client_id

    @property
    def header(self) -> WireAnswer:
        """What kafka-python keeps until the response comes."""
        return WireAnswer(self.key, self._version, self._correlation_id)

    def encode(self, framed: bool, header: bool) -> bytes:
        """The request as it goes over the wire."""
        assert framed and header
        head = encode_request_header(self.key, self._version, self._correlation_id, self._client_id)
        frame = head + encode_bytes(self._message, self._version)
        return len(frame).to_bytes(4, "big") + frame

    def expect_response(self) -> bool:
        """Whether there is a response."""
        return True

    @property
    def _version(self) -> int:
        assert self.API_VERSION is not None
        return self.API_VERSION


class WireAnswer:
    """What becomes of the response: kafka-python takes it for the request's header, and for the class of the response."""

    def __init__(self, key: ApiKey, version: int, correlation_id: int) -> None:
        self.api_key = key
        self.api_version = version
        self.correlation_id = correlation_id

    def get_response_class(self) -> WireAnswer:
        return self

    def parse_header(self, stream: io.BytesIO) -> WireAnswer:
        """The header of a response, which tells whose it is; the stream is left at the body."""
        frame = stream.read()
        correlation_id, body = decode_response_header(frame, self.api_key, self.api_version)
        stream.seek(body)
        return WireAnswer(self.api_key, self.api_version, correlation_id)

    def decode(self, stream: io.BytesIO) -> Any:
        """The broker's own object of the response."""
        return decode(response_class(self.api_key), self.api_version, memoryview(stream.read()))
