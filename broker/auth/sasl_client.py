"""This broker's side of a SASL authentication at another broker, before the first request of a connection (KIP-43, KIP-152).

SaslHandshake and SaslAuthenticate are sent at version 1, which every Kafka serves since 2.2; asking first which versions the peer
serves would cost one more round trip for each connection.
"""

from __future__ import annotations

import struct
from typing import Any

from ...base.errors import ErrorCode, ProtocolError, known_code
from ...base.network import Connection, receive_exactly
from ...security.sasl import AuthenticationError, SaslClient
from ...wire.codec import decode, encode_bytes
from ...wire.headers import decode_response_header, encode_request_header
from ...wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ...wire.registry import response_class
from ...wire.schema import Message

_SIZE = struct.Struct(">i")
_VERSION = 1
_MOST_BYTES = 1 << 20
_CLIENT_ID = "ottla-broker"
_ENDED = "the peer closed the connection during authentication"
"""A Kafka that refuses a client may just close."""


async def authenticate(connection: Connection, mechanism: str, client: SaslClient) -> int:
    """Authenticate at the peer; returns for how many milliseconds the session lasts, 0 for ever.

    Raises OSError where the peer refuses it, does not prove its own identity, or is gone. The caller limits the time.
    """
    try:
        return await _converse(connection, mechanism, client)
    except (AuthenticationError, ProtocolError) as error:
        raise OSError(f"authentication by {mechanism} has failed: {error}") from error


async def _converse(connection: Connection, mechanism: str, client: SaslClient) -> int:
    token = client.respond(b"")
    handshake: SaslHandshakeResponse = await _ask(connection, SaslHandshakeRequest(mechanism=mechanism), 0)
    if handshake.error_code:
        enabled = ", ".join(handshake.mechanisms) or "none"
        raise AuthenticationError(f"{known_code(handshake.error_code).name}, the peer has enabled: {enabled}")
    lifetime_ms, correlation_id = 0, 0
    while token is not None:
        correlation_id += 1
        response: SaslAuthenticateResponse = await _ask(
            connection, SaslAuthenticateRequest(auth_bytes=token), correlation_id
        )
        if response.error_code != ErrorCode.NONE:
            raise AuthenticationError(response.error_message or known_code(response.error_code).name)
        lifetime_ms = response.session_lifetime_ms
        token = client.respond(bytes(response.auth_bytes))
    return lifetime_ms


async def _ask(connection: Connection, request: Message, correlation_id: int) -> Any:
    body = encode_request_header(request.api_key, _VERSION, correlation_id, _CLIENT_ID) + encode_bytes(
        request, _VERSION
    )
    await connection.send([_SIZE.pack(len(body)) + body])
    (size,) = _SIZE.unpack(await receive_exactly(connection, _SIZE.size, _ENDED))
    if not 0 <= size <= _MOST_BYTES:
        raise ProtocolError(f"a frame of {size} bytes, which is too large for SASL")
    frame = await receive_exactly(connection, size, _ENDED)
    answered, start = decode_response_header(frame, request.api_key, _VERSION)
    if answered != correlation_id:
        raise ProtocolError(f"answer {answered} came where {correlation_id} was expected")
    return decode(response_class(request.api_key), _VERSION, frame[start:])
