"""Requests over one connection with this project's own codec, TLS and SASL, where kafka-python has no client for it.

``options`` are kafka-python's. Each call waits for its response; the socket's time-out is the only limit.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Any

from kafka.net.sasl import get_sasl_mechanism

from ...base.errors import ErrorCode, known_code
from ...wire.codec import decode, encode_bytes
from ...wire.headers import decode_response_header, encode_request_header
from ...wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ...wire.registry import response_class
from ...wire.schema import Message
from .running import ToolError

CLOSED = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
HOW = "(--command-config)"

_CLIENT_ID = "ottla"
_MOST_STEPS = 10
_MOST_BYTES = 1 << 24
_TLS_ALERT = 0x15
_AT_REQUEST = "at a request"


class ClosedConnectionError(OSError):
    """The broker has closed the connection before it responded. ``str()`` says when."""


def secured(plain: socket.socket, host: str, options: Mapping[str, Any]) -> socket.socket:
    """The connection, over TLS if the client is to use that. Raises OSError."""
    if not options.get("security_protocol", "PLAINTEXT").endswith("SSL"):
        return plain
    context: ssl.SSLContext = options.get("ssl_context") or ssl.create_default_context()
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except CLOSED as error:
        raise ClosedConnectionError("in the TLS handshake") from error


def ask(connection: socket.socket, request: Message, version: int) -> Any:
    """The response to a request; None to one that is here only to be taken. Raises OSError."""
    key = type(request).api_key
    frame = encode_request_header(key, version, 1, _CLIENT_ID) + encode_bytes(request, version)
    try:
        connection.sendall(len(frame).to_bytes(4, "big") + frame)
        head = _read(connection, 4)
        if head[0] == _TLS_ALERT:
            raise ClosedConnectionError(_AT_REQUEST)
        size = int.from_bytes(head, "big")
        if size > _MOST_BYTES:
            raise OSError(f"a response of {size} bytes")
        answer = _read(connection, size)
    except CLOSED as error:
        raise ClosedConnectionError(_AT_REQUEST) from error
    _, start = decode_response_header(answer, key, version)
    return decode(response_class(key), version, memoryview(answer)[start:])


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        received = connection.recv(size - len(data))
        if not received:
            raise ClosedConnectionError(_AT_REQUEST)
        data += received
    return data


def authenticate(connection: socket.socket, host: str, address: str, options: Mapping[str, Any]) -> None:
    """Authenticate as kafka-python does. Raises ToolError for a refusal, OSError."""
    name = options["sasl_mechanism"]
    shaken: SaslHandshakeResponse = ask(connection, SaslHandshakeRequest(mechanism=name), 1)
    if shaken.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise ToolError(f"{address} does not want SASL: its security.protocol is PLAINTEXT or SSL {HOW}")
    if shaken.error_code:
        taken = ", ".join(shaken.mechanisms) or "none"
        raise ToolError(f"{address} does not take the sasl.mechanism {name}; it takes {taken} {HOW}")
    mechanism = get_sasl_mechanism(name)(host=host, **options)
    for _ in range(_MOST_STEPS):
        if mechanism.is_done():
            return
        answer: SaslAuthenticateResponse = ask(
            connection, SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes()), 0
        )
        if answer.error_code:
            why = answer.error_message or known_code(answer.error_code).name
            raise ToolError(f"{address} does not let this client in: {why.rstrip('.')} {HOW}")
        mechanism.receive(bytes(answer.auth_bytes))
