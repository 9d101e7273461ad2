"""Every API can answer that it failed, in each version served: else its connection ends, each time with a trace in the log."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.handlers.call import CloseConnection
from ottla.handlers.table import HANDLERS, SERVED, Handler
from ottla.wire.codec import encode
from ottla.wire.registry import request_class


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: handler.api_key.name.lower())
def test_an_error_can_be_said_in_every_version(handler: Handler) -> None:
    for version in range(handler.lowest, handler.highest + 1):
        found = SERVED.find_route(handler.api_key << 16 | version).handler
        request = request_class(handler.api_key)()
        try:
            response = found.refuse(version, request, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why"))
        except CloseConnection:
            continue  # of a Produce that wants no answer
        encode(response, version)
