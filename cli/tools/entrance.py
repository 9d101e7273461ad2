"""Whether a listener lets a client in, and if not, why: one connection that goes as far as the first request.

kafka-python tries again for seconds, whatever the reason, and keeps that to its log. Here a certificate that is not trusted, a
wrong password and the like are found at once. Where a connection is closed, another one shows whether the listener wants TLS or
SASL instead. What may be better the next time (no answer, a connection that is closed for no reason known) is left to the client,
which tries again; only when that has failed is it told of here, too.
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
from .plain_probe import Connect
from .running import ToolError

_CLIENT_ID = "ottla"
_MOST_STEPS = 10
_MOST_BYTES = 1 << 24
_TLS_ALERT = 0x15
_CLOSED = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
_AT_REQUEST = "at a request"
_HOW = "(--command-config)"


class _ClosedError(OSError):
    """The broker has closed the connection before it answered; ``str()`` says when."""


def check_entrance(
    connect: Connect, host: str, port: int, options: Mapping[str, Any], *, has_failed: bool = False
) -> None:
    """Raises ToolError when the listener refuses a client with these options of kafka-python, for good; OSError when there is no
    connection at all. ``has_failed``: the client has tried for long, so a closed connection is told of whatever it means.
    """
    address, protocol = join_host_port(host, port), options.get("security_protocol", "PLAINTEXT")
    plain = connect()
    try:
        with _secured(plain, host, options) as connection:
            _ask(connection, ApiVersionsRequest(), 0)
            if protocol.startswith("SASL"):
                _authenticate(connection, host, address, options)
            else:
                try:
                    _ask(connection, MetadataRequest(topics=[]), 1)
                except _ClosedError:
                    _check_sasl(connect, host, address, options)
                    raise
    except ssl.SSLCertVerificationError as error:
        raise ToolError(_untrusted(address, error)) from None
    except ssl.SSLError as error:
        if (why := _tls_refusal(address, protocol, error)) is not None:
            raise ToolError(why) from None
    except _ClosedError as error:
        if (why := _other_side(connect, address, protocol)) is None and has_failed:
            other = f"its listener may have another security.protocol than {protocol}"
            why = f"{address} closes the connection {error}: {other} {_HOW}"
        if why is not None:
            raise ToolError(why) from None
    except OSError:
        return  # the client tries for itself
    finally:
        plain.close()


def _check_sasl(connect: Connect, host: str, address: str, options: Mapping[str, Any]) -> None:
    """Raises ToolError where a listener that has closed the connection of a client without SASL takes a handshake, OSError."""
    with _secured(connect(), host, options) as connection:
        _ask(connection, ApiVersionsRequest(), 0)
        shaken: SaslHandshakeResponse = _ask(connection, SaslHandshakeRequest(mechanism=""), 1)
    if shaken.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        protocol = options.get("security_protocol", "PLAINTEXT")
        wanted = "SASL_SSL" if protocol == "SSL" else "SASL_PLAINTEXT"
        raise ToolError(
            f"{address} wants SASL ({', '.join(shaken.mechanisms)}), and security.protocol is {protocol}: "
            f"it has to be {wanted} {_HOW}"
        )


def _other_side(connect: Connect, address: str, protocol: str) -> str | None:
    """Whether it is the other one of TLS and plain text that the listener answers in; None where that is not known."""
    is_sasl = protocol.startswith("SASL")
    try:
        if protocol.endswith("SSL"):
            with connect() as connection:
                _ask(connection, ApiVersionsRequest(), 0)
            return _no_tls(address, protocol)
        if _answers_tls(connect):
            wanted = "SASL_SSL" if is_sasl else "SSL, or SASL_SSL"
            return f"{address} answers with TLS, and security.protocol is {protocol}: it has to be {wanted} {_HOW}"
    except OSError:
        pass
    return None


def _answers_tls(connect: Connect) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent: any certificate is an answer
    with connect() as plain:
        try:
            context.wrap_socket(plain).close()
        except ssl.SSLError as error:
            return "ALERT" in (error.reason or "")
    return True


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
        raise ToolError(f"{address} does not want SASL: its security.protocol is PLAINTEXT or SSL {_HOW}")
    if shaken.error_code:
        taken = ", ".join(shaken.mechanisms) or "none"
        raise ToolError(f"{address} does not take the sasl.mechanism {name}; it takes {taken} {_HOW}")
    mechanism = get_sasl_mechanism(name)(host=host, **options)
    for _ in range(_MOST_STEPS):
        if mechanism.is_done():
            return
        answer: SaslAuthenticateResponse = _ask(
            connection, SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes()), 0
        )
        if answer.error_code:
            why = answer.error_message or known_code(answer.error_code).name
            raise ToolError(f"{address} does not let this client in: {why.rstrip('.')} {_HOW}")
        mechanism.receive(bytes(answer.auth_bytes))


def _untrusted(address: str, error: ssl.SSLCertVerificationError) -> str:
    why = error.verify_message.rstrip(".")
    if "mismatch" in why.lower():
        return f"the certificate of {address} is not accepted: {why}"
    return (
        f"the certificate of {address} is not trusted: {why}; ssl.truststore.location has to name the authority that signed it "
        f"{_HOW}"
    )


def _tls_refusal(address: str, protocol: str, error: ssl.SSLError) -> str | None:
    """What a failure of TLS says for good; None for one that may pass."""
    reason = (error.reason or "").replace("_", " ").lower()
    if "certificate required" in reason or "handshake failure" in reason:
        return f"{address} refuses the connection ({reason}): it may want a certificate (ssl.keystore.location)"
    if "alert" in reason:
        return f"{address} refuses the connection: {reason}"
    if "wrong version number" in reason or "record layer failure" in reason or "http request" in reason:
        return _no_tls(address, protocol)
    return None


def _no_tls(address: str, protocol: str) -> str:
    return f"{address} does not speak TLS, and security.protocol is {protocol} {_HOW}"
