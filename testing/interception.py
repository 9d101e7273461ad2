"""Intercepts the requests of one broker, between dispatch and handlers, while a test has faults, moved leaders or a recording.

For this there is a copy of the broker's ``ServedApis`` whose handlers go through ``Interception.handle``. It replaces the plain
one from the first fault, move or recording until the last has ended: at other times requests cost nothing more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import trio

from ..base.errors import KafkaError
from ..handlers.call import Call, CloseConnection
from ..handlers.fetch import SESSION_ERRORS
from ..handlers.services import Services
from ..handlers.table import Handle, Handler
from ..wire.api_keys import ApiKey
from ..wire.messages.fetch import FetchResponse
from . import leader_moves, names, partition_errors
from .faults import Fault, Faults
from .leader_moves import LeaderMoves
from .requests import Requests

# The handlers' error answers of these are for a request as a whole; a fault has to fail partitions or topics in them.
_BY_PARTITION = (ApiKey.FETCH, ApiKey.METADATA)


class Interception:
    """Faults, moves and recording of one broker."""

    def __init__(self, in_loop: Callable[[Callable[[], Any]], None]) -> None:
        self.faults = Faults(self._changed, in_loop)
        self.requests = Requests(self._changed)
        self._moves = LeaderMoves()
        self._services: Services | None = None

    def attach(self, services: Services) -> None:
        """Begin to intercept the requests of a broker that has started."""
        self._services = services
        self._plain = services.served
        self._intercepted = dataclasses.replace(
            services.served,
            by_key={key: _Intercepted(handler, self) for key, handler in services.served.by_key.items()},
        )
        self._changed()

    def move_leader(self, topic: str, partition: int) -> None:
        """See LeaderMoves."""
        self._moves.move(topic, partition)
        self._changed()

    def _changed(self) -> None:
        if self._services is not None:
            # Otherwise requests do not pass through here at all, so that tests without faults measure the plain broker.
            is_needed = len(self.faults) or len(self._moves) or self.requests.is_recording
            self._services.served = self._intercepted if is_needed else self._plain

    async def handle(self, handler: Handler, handle: Handle, call: Call, request: Any) -> Any:
        """Handle one request, or let it fail."""
        api = handler.api_key
        if self.requests.is_recording:
            self.requests.note(api, call, request)
        fault = self.faults.due(api, call.client_id, lambda: names.topics_of(call, request))
        if fault is not None:
            return await _strike(fault, handler, handle, call, request)
        if self._moves.concerns(api, call, request):
            client_id = call.client_id
            return await partition_errors.answer(
                handler, handle, call, request, leader_moves.ERROR, lambda *at: self._moves.is_lost(client_id, *at)
            )
        response = await handle(call, request)
        if api is ApiKey.METADATA:
            self._moves.refreshed(call, response)
        return response


class _Intercepted(Handler):
    """A handler that is called through the interception; its module is loaded on its first request, as usual."""

    __slots__ = ("_interception", "_plain")

    def __init__(self, plain: Handler, interception: Interception) -> None:
        super().__init__(
            plain.api_key,
            plain.lowest,
            plain.highest,
            plain.advertise_from,
            plain.rights,
            plain.cluster_right,
            plain.is_guarded,
        )
        self._plain = plain
        self._interception = interception

    def load(self) -> None:
        if self._plain.handle is None:
            self._plain.load()
        self.request_class, self.error_response = self._plain.request_class, self._plain.error_response
        plain = self._plain.handle
        assert plain is not None

        async def handle(call: Call, request: Any) -> Any:
            may_suspend, call.may_suspend = call.may_suspend, False  # the response is looked into
            try:
                return await self._interception.handle(self, plain, call, request)
            finally:
                call.may_suspend = may_suspend

        self.handle = handle


async def _strike(fault: Fault, handler: Handler, handle: Handle, call: Call, request: Any) -> Any:
    """Let a request fail as ``fault`` says."""
    if fault.delay:
        await call.flush()
        with trio.move_on_after(fault.delay):
            await fault.over.wait()
    if fault.black_hole:
        await call.flush()
        await fault.over.wait()
        raise CloseConnection("the request is in the black hole")
    if fault.disconnect:
        raise CloseConnection("a fault was injected")
    if fault.error is not None:
        error = KafkaError(fault.error, "a fault was injected")
        if fault.topic is None and (handler.api_key not in _BY_PARTITION or fault.error in SESSION_ERRORS):
            raise error
        return await partition_errors.answer(
            handler, handle, call, request, error, lambda topic, _: fault.topic in (None, topic)
        )
    response = await handle(call, request)
    if fault.drop:
        if isinstance(response, FetchResponse):  # slices of files keep their files open until somebody releases them
            for topic in response.responses:
                for data in topic.partitions:
                    partition_errors.release(data)
        raise CloseConnection("the response is dropped by a fault")
    if fault.throttle_time_ms and response is not None:
        response.throttle_time_ms = fault.throttle_time_ms
    return response
