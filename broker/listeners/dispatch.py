"""Request dispatch: decodes a request, calls its handler and encodes the response.

Errors end here or in the handler, never further up: a ``KafkaError`` becomes the API's own error response, any other
exception UNKNOWN_SERVER_ERROR, logged with its trace as a bug of ours. ``ProtocolError`` (bytes that cannot be read, an API
or version that is not served) goes on to the connection, which closes, as Kafka does.
"""

from __future__ import annotations

import logging
import struct
from collections import Counter
from typing import Any, TypeAlias

from ...base.errors import ErrorCode, KafkaError, ProtocolError
from ...base.network import Part, total_size
from ...handlers.call import AnswersLost, CloseConnection, NodeCall, PendingResponse
from ...handlers.request_cost import RequestCost
from ...handlers.table import Route, ServedApis, UnservedApiVersionsError
from ...wire.api_keys import ApiKey
from ...wire.codec import decode, encode
from ...wire.error_codes import error_finder
from ...wire.headers import response_header_encoder, rest_of_header, start_of_request
from .large_requests import LARGE_FRAME, decode_large, handle_in_parts, refuse_without_rights

logger = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")
_NO_FRAME = memoryview(b"")
_SMALL_BODY = 4096  # copied after its header rather than sent as a part of its own


Answer: TypeAlias = "list[Part] | PendingAnswer | None"
"""None where the protocol has no answer (acks=0), or it was sent already."""


class PendingAnswer:
    """The response to a request that waits while its connection goes on with the next one."""

    __slots__ = ("_call", "_frame", "_noted", "_request", "_response", "_route")

    def __init__(
        self, call: NodeCall, route: Route, frame: memoryview, request: Any, response: PendingResponse
    ) -> None:
        """``frame`` is the request's, in a buffer that is used again; it is kept for an observer."""
        self._call, self._route = call, route
        self._frame = _NO_FRAME if call.observer is None else memoryview(bytes(frame))
        self._request, self._response = request, response
        self._noted = call.suspend()

    @property
    def is_ready(self) -> bool:
        """Whether ``parts`` returns without waiting."""
        return self._response.is_ready

    def parts_now(self) -> list[Part] | None:
        """The framed response, where it is ready and has no error; ``parts`` is called as well, which reports the request."""
        response = self._response.finish_now()
        if response is None:
            return None
        header = self._route.encode_response_header(self._noted.correlation_id)
        return framed(header, self._route.version, response)

    async def parts(self) -> list[Part]:
        """Wait for the framed response. Raises as ``answer`` does."""
        call, route = self._call, self._route
        call.resume(self._noted)
        header = route.encode_response_header(call.correlation_id)
        try:
            try:
                response = await self._response.finish()
            except KafkaError as error:
                call.fail(error.message)
                response = route.handler.refuse(route.version, self._request, error)
            parts = framed(header, route.version, response)
        except (ProtocolError, CloseConnection, AnswersLost):
            raise
        except Exception:
            response, parts = _bug(call, route, self._request)
        call.report_request(self._frame, response, parts)
        return parts


async def answer(call: NodeCall, frame: memoryview) -> Answer:
    """Handle one request; returns the framed response. It is pending only where ``call.may_suspend``.

    Raises ProtocolError, CloseConnection and AnswersLost, after which the connection is to be closed.
    """
    key, correlation_id, length = start_of_request(frame)
    route = call.node.served.routes.get(key)
    if route is None:
        try:
            route = call.node.served.find_route(key)
        except UnservedApiVersionsError:
            return _unsupported_api_version(correlation_id, call.node.served)
    if key != call.key:
        call.switch_api(key, route.api_key)
    elif not call.is_plain:
        call.reset()
    handler, version = route.handler, route.version
    assert handler.handle is not None
    assert handler.request_class is not None
    call.client_id, body_offset = rest_of_header(frame, route.header_version, length)
    call.cost = _begin_cost(call) if call.node.client_quotas.is_on else None
    parts: list[Part] | None
    large = len(frame) > LARGE_FRAME and route.api_key != ApiKey.PRODUCE
    if large:
        refuse_without_rights(call, frame, len(frame))
        with frame[body_offset:] as body:
            request = await decode_large(call, handler, version, body)
    else:
        # Kafka ignores what follows a request: librdkafka's Metadata 13 for all topics has three bytes too many.
        request = decode(handler.request_class, version, frame[body_offset:], ignore_rest=True)
    call.version = version
    call.route = route
    call.correlation_id = correlation_id
    try:
        try:
            if large:
                response = await handle_in_parts(call, handler, version, request)
            else:
                response = await handler.handle(call, request)
                if call.may_suspend and isinstance(response, PendingResponse):
                    return PendingAnswer(call, route, frame, request, response)
        except KafkaError as error:
            call.fail(error.message)
            if large:
                response = await call.node.workers.run(handler.refuse, version, request, error)
            else:
                response = handler.refuse(version, request, error)
        if call.cost is not None:
            response = call.charge(call.cost, route.api_key, len(frame), response)
        header = route.encode_response_header(correlation_id)
        if large:
            parts, call.error_counts = await call.node.workers.run(_framed_and_counted, header, version, response)
        else:
            parts = None if response is None else framed(header, version, response)
    except (ProtocolError, CloseConnection, AnswersLost):
        raise
    except Exception:
        response, parts = _bug(call, route, request)
    if call.is_plain:
        call.answered_count += 1
    else:
        call.report_request(frame, response, parts)
        call.error_counts = None
    return parts


def _bug(call: NodeCall, route: Route, request: Any) -> tuple[Any, list[Part]]:
    """The response to a request that failed by a bug of ours, which is being handled as an exception; response and parts.

    Encoding can fail, too: a response may have a value that its version cannot express.
    """
    call.fail()
    logger.exception("%s version %d from %s failed", route.handler.api_key.name, route.version, call.connection.peer)
    response = route.handler.refuse(route.version, request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    return response, framed(route.encode_response_header(call.correlation_id), route.version, response)


def _framed_and_counted(header: bytes, version: int, response: Any) -> tuple[list[Part], Counter[int]]:
    """What is to be sent, and the errors in it by code."""
    return framed(header, version, response), Counter(error_finder(type(response))(response))


def _begin_cost(call: NodeCall) -> RequestCost | None:
    """None before authentication, when the client is not known yet; Kafka counts nothing there either."""
    node = call.node
    if call.connection.is_authenticating:
        return None
    return RequestCost(node.client_quotas, node.clock, call.connection.principal.name, call.client_id)


def framed(header: bytes, version: int, response: Any) -> list[Part]:
    """Size, header and body, as parts for the connection."""
    parts = encode(response, version)
    if len(parts) == 1 and type(body := parts[0]) is bytes and len(body) < _SMALL_BODY:
        return [b"".join((_SIZE.pack(len(header) + len(body)), header, body))]
    size = len(header) + total_size(parts)
    return [_SIZE.pack(size) + header, *parts]


def _unsupported_api_version(correlation_id: int, served: ServedApis) -> list[Part]:
    from ...handlers.api_versions import unsupported_version

    encode_header = response_header_encoder(ApiKey.API_VERSIONS, 0)
    return framed(encode_header(correlation_id), 0, unsupported_version(served))
