"""Whether a listener lets a client in, and if not, why: one connection that goes as far as the first request.

kafka-python tries again for seconds, whatever the reason, and keeps that to its log. Here a certificate that is not trusted, a
wrong password and the like are found at once. What may be better the next time (no answer, a connection that is closed) is left
to the client, which tries again; only when that has failed is it asked here what a closed connection may mean.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Any

from kafka.net.sasl import get_sasl_mechanism

from ...base.addresses import join_host_port
from ...base.errors import ErrorCode, known_code
from ...wire.codec import decode, encode_bytes
from ...wire.headers import decode_response_header, encode_request_header
from ...wire.messages.api_versions import ApiVersionsRequest
from ...wire.messages.metadata import MetadataRequest
from ...wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ...wire.registry import response_class
from ...wire.schema import Message
from .running import ToolError

_CLIENT_ID = "ottla"
_MOST_STEPS = 10
_MOST_BYTES = 1 << 24
_TLS_ALERT = 0x15
_CLOSED = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
_AT_REQUEST = "at a request"


class _ClosedError(OSError):
    """The broker has closed the connection before it answered; ``str()`` says when."""


def check_entrance(
    plain: socket.socket, host: str, port: int, options: Mapping[str, Any], *, has_failed: bool = False
) -> None:
    """Raises ToolError when the listener refuses a client with these options of kafka-python, for good.

    ``plain`` is a new connection to it, with a time-out. ``has_failed``: the client has tried for long, so a connection that is
    closed is explained, too.
    """
    address, protocol = join_host_port(host, port), options.get("security_protocol", "PLAINTEXT")
    try:
        with _secured(plain, host, options) as connection:
            _ask(connection, ApiVersionsRequest(), 0)
            if protocol.startswith("SASL"):
                _authenticate(connection, host, address, options)
            else:
                _ask(connection, MetadataRequest(topics=[]), 1)
    except ssl.SSLCertVerificationError as error:
        raise ToolError(_untrusted(address, error)) from None
    except ssl.SSLError as error:
        if (why := _tls_refusal(address, protocol, error)) is not None:
            raise ToolError(why) from None
    except _ClosedError as error:
        if has_failed:
            raise ToolError(
                f"{address} closes the connection {error}: its listener may have another security.protocol than {protocol} "
                "(--command-config)"
            ) from None
    except OSError:
        return  # the client tries for itself


def _secured(plain: socket.socket, host: str, options: Mapping[str, Any]) -> socket.socket:
    """The connection, over TLS if the client is to use that. Raises OSError."""
    if not options.get("security_protocol", "PLAINTEXT").endswith("SSL"):
        return plain
    context: ssl.SSLContext = options.get("ssl_context") or ssl.create_default_context()
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except _CLOSED as error:
        raise _ClosedError("in the TLS handshake") from error


def _ask(connection: socket.socket, request: Message, version: int) -> Any:
    """The answer to a request; None to one that is here only to be taken. Raises OSError."""
    key = type(request).api_key
    frame = encode_request_header(key, version, 1, _CLIENT_ID) + encode_bytes(request, version)
    try:
        connection.sendall(len(frame).to_bytes(4, "big") + frame)
        head = _read(connection, 4)
        if head[0] == _TLS_ALERT:
            raise _ClosedError(_AT_REQUEST)
        size = int.from_bytes(head, "big")
        if size > _MOST_BYTES:
            raise OSError(f"an answer of {size} bytes")
        answer = _read(connection, size)
    except _CLOSED as error:
        raise _ClosedError(_AT_REQUEST) from error
    _, start = decode_response_header(answer, key, version)
    return decode(response_class(key), version, memoryview(answer)[start:])


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        received = connection.recv(size - len(data))
        if not received:
            raise _ClosedError(_AT_REQUEST)
        data += received
    return data


def _authenticate(connection: socket.socket, host: str, address: str, options: Mapping[str, Any]) -> None:
    """Authenticate as kafka-python does. Raises ToolError for a refusal, OSError."""
    name = options["sasl_mechanism"]
    shaken: SaslHandshakeResponse = _ask(connection, SaslHandshakeRequest(mechanism=name), 1)
    if shaken.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise ToolError(f"{address} does not want SASL: its security.protocol is PLAINTEXT or SSL (--command-config)")
    if shaken.error_code:
        taken = ", ".join(shaken.mechanisms) or "none"
        raise ToolError(f"{address} does not take the sasl.mechanism {name}; it takes {taken} (--command-config)")
    mechanism = get_sasl_mechanism(name)(host=host, **options)
    for _ in range(_MOST_STEPS):
        if mechanism.is_done():
            return
        answer: SaslAuthenticateResponse = _ask(
            connection, SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes()), 0
        )
        if answer.error_code:
            why = answer.error_message or known_code(answer.error_code).name
            raise ToolError(f"{address} does not let this client in: {why.rstrip('.')} (--command-config)")
        mechanism.receive(bytes(answer.auth_bytes))


def _untrusted(address: str, error: ssl.SSLCertVerificationError) -> str:
    why = error.verify_message.rstrip(".")
    if "mismatch" in why.lower():
        return f"the certificate of {address} is not accepted: {why}"
    return (
        f"the certificate of {address} is not trusted: {why}; ssl.truststore.location has to name the authority that signed it "
        "(--command-config)"
    )


def _tls_refusal(address: str, protocol: str, error: ssl.SSLError) -> str | None:
    """What a failure of TLS says for good; None for one that may pass."""
    reason = (error.reason or "").replace("_", " ").lower()
    if "certificate required" in reason or "handshake failure" in reason:
        return f"{address} refuses the connection ({reason}): it may want a certificate (ssl.keystore.location)"
    if "alert" in reason:
        return f"{address} refuses the connection: {reason}"
    if "wrong version number" in reason or "record layer failure" in reason or "http request" in reason:
        return f"{address} does not speak TLS, and security.protocol is {protocol} (--command-config)"
    return None
