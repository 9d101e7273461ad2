"""Envelope (key 58): a client's request that a broker forwards, with the client's principal and address (KIP-590).

Behaviour: only who has CLUSTER_ACTION may speak for others; else CLUSTER_AUTHORIZATION_FAILED. The request in the envelope is
handled as if its client had made it here: rights and quotas are the client's, and errors are in the response that the envelope
brings back. Errors of the envelope itself: PRINCIPAL_DESERIALIZATION_FAILURE, INVALID_REQUEST for an address that is none or an
API that is not forwarded, UNSUPPORTED_VERSION for a request that cannot be read. With NOT_CONTROLLER the broker looks for
another controller, so that is the envelope's error too (RequestChannel). A client that is held up is told for how long, and the
broker's connection goes on (EnvelopeUtils, RequestHandlerHelper).
"""

from __future__ import annotations

import functools
import ipaddress
from struct import Struct
from struct import error as struct_error
from typing import Any

from ...base.addresses import join_host_port
from ...base.errors import ErrorCode, KafkaError, ProtocolError
from ...base.worker_errors import run_expecting
from ...controller.quorum.envelope import FORWARDED
from ...security.principal import Principal
from ...wire.api_keys import ApiKey
from ...wire.codec import decode, encode_bytes
from ...wire.error_codes import error_finder
from ...wire.headers import RequestHeader, decode_request_header, response_header_encoder, start_of_request
from ...wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ...wire.messages.principal_data import DefaultPrincipalData
from ..connection_context import ConnectionContext
from ..request_cost import RequestCost
from ..table import Handler
from .call import ControllerCall

FORWARDABLE = frozenset({*FORWARDED, ApiKey.ALLOCATE_PRODUCER_IDS})
"""APIs that an envelope may have (``ApiKeys.forwardable``)."""
_LARGE_REQUEST = 256 << 10
"""Bytes from which on a request is read, and its response encoded, by a worker."""
_VERSION = Struct(">h")


async def handle(call: ControllerCall, envelope: EnvelopeRequest) -> EnvelopeResponse:
    if call.cost is not None:
        call.cost.exempt()
    principal = _principal(envelope.request_principal)
    context = ConnectionContext(
        call.connection.listener, _peer(envelope.client_host_address), call.connection.security_protocol
    )
    context.principal = principal
    data = memoryview(envelope.request_data)
    key, header, start = _header(data)
    handler = _handler(call, key, header)
    request = await _decoded(call, handler, header, data[start:])
    inner = ControllerCall(call.controller, context, call.flush, is_forwarded=True)
    inner.key, inner.version = key, header.api_version
    inner.correlation_id, inner.client_id = header.correlation_id, header.client_id
    response = await _response(inner, handler, request, len(data))
    if inner.failed:
        call.fail(inner.reason)
    if ErrorCode.NOT_CONTROLLER in error_finder(type(response))(response):
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    head = response_header_encoder(header.api_key, header.api_version)(header.correlation_id)
    if len(data) > _LARGE_REQUEST:
        body = await call.node.workers.run(encode_bytes, response, header.api_version)
    else:
        body = encode_bytes(response, header.api_version)
    return EnvelopeResponse(response_data=head + body)


async def _response(inner: ControllerCall, handler: Handler, request: Any, size: int) -> Any:
    """The response to the client's request, charged to the client's quotas."""
    assert handler.handle is not None
    node = inner.node
    if node.client_quotas.is_on:
        inner.cost = RequestCost(node.client_quotas, node.clock, inner.connection.principal.name, inner.client_id)
    try:
        response = await handler.handle(inner, request)
    except KafkaError as error:
        inner.fail(error.message)
        response = handler.refuse(inner.version, request, error)
    return response if inner.cost is None else inner.charge(inner.cost, handler.api_key, size, response)


def _principal(data: bytes | None) -> Principal:
    """Raises KafkaError PRINCIPAL_DESERIALIZATION_FAILURE."""
    try:
        if data is None:
            raise ProtocolError("there is none")
        (version,) = _VERSION.unpack_from(data)
        if version not in DefaultPrincipalData.valid_versions:
            raise ProtocolError(f"version {version} is not known")
        read: Any = decode(DefaultPrincipalData, version, data[_VERSION.size :])
    except (ProtocolError, struct_error) as error:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            f"The client's principal cannot be read from the envelope: {error}",
        ) from None
    return Principal(read.type, read.name, token_authenticated=read.token_authenticated)


def _peer(address: bytes) -> str:
    """Raises KafkaError INVALID_REQUEST."""
    try:
        return join_host_port(str(ipaddress.ip_address(bytes(address))), 0)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "The client's address in the envelope is none of 4 or 16 bytes."
        ) from None


def _header(data: memoryview) -> tuple[int, RequestHeader, int]:
    """API key and version as one number, the header, and where the body begins. Raises KafkaError UNSUPPORTED_VERSION."""
    try:
        return start_of_request(data)[0], *decode_request_header(data)
    except ProtocolError as error:
        raise _unreadable(error) from None


def _handler(call: ControllerCall, key: int, header: RequestHeader) -> Handler:
    """Raises KafkaError INVALID_REQUEST, UNSUPPORTED_VERSION."""
    if header.api_key not in FORWARDABLE:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{ApiKey(header.api_key).name} is not forwarded.")
    served = call.node.served
    try:
        return (served.routes.get(key) or served.find_route(key)).handler
    except ProtocolError as error:
        raise _unreadable(error) from None


async def _decoded(call: ControllerCall, handler: Handler, header: RequestHeader, body: memoryview) -> Any:
    """Raises KafkaError UNSUPPORTED_VERSION."""
    assert handler.request_class is not None
    read = functools.partial(decode, handler.request_class, header.api_version, body)
    try:
        if len(body) <= _LARGE_REQUEST:
            return read()
        async with call.node.large_decoding:
            return await run_expecting(call.node.workers, ProtocolError, read)
    except ProtocolError as error:
        raise _unreadable(error) from None


def _unreadable(error: ProtocolError) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"The request in the envelope cannot be read: {error}")


def error_response(request: EnvelopeRequest, error: KafkaError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.code)
