"""Envelope (key 58): a client's request, with its header, that a broker forwards to the controller (KIP-590)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, request, response


@request(key=ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeRequest(Message):
    request_data: bytes = field()  # header and body
    request_principal: bytes | None = field()  # as the broker authenticated it
    client_host_address: bytes = field()


@response(key=ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeResponse(Message):
    response_data: bytes | None = field(default=None)
    error_code: int16 = field()
