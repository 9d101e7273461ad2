"""The channel from a broker to the controller in its own process: a call instead of a connection.

The controller handles the request as if it had come over its own listener, but for rights: the node may do everything there. The
principal that stands for it has a name of this process's own, so that no client can have it.
"""

from __future__ import annotations

import uuid
from typing import Any

import trio

from ..base.errors import ErrorCode, KafkaError
from ..controller.quorum.active.request_source import RequestSource
from ..handlers.connection_context import ConnectionContext
from ..handlers.controller.call import ControllerCall
from ..handlers.controller.services import ControllerServices
from ..handlers.controller.table import SERVED_BY_CONTROLLERS
from ..handlers.table import Handler
from ..replication.broker_client import PeerUnavailableError
from ..security.principal import Principal
from ..wire.api_keys import ApiKey
from ..wire.messages.envelope import EnvelopeRequest
from ..wire.schema import Message

OWN_NODE = Principal("Node", str(uuid.uuid4()))
"""The node itself, in the eyes of its controller."""
_NO_PEER = "127.0.0.1:0"


class OwnController:
    """A ``ControllerPeer`` for one purpose. A request gets no response after ``timeout`` seconds."""

    def __init__(self, services: ControllerServices, client_id: str, timeout: float) -> None:
        self._services = services
        self._client_id = client_id
        self._timeout = timeout

    async def negotiate(self, request: type[Message], highest: int | None = None) -> int:
        """The highest version that the controller serves, up to ``highest``. Raises KafkaError (UNSUPPORTED_VERSION)."""
        await trio.lowlevel.checkpoint()
        served = SERVED_BY_CONTROLLERS.by_key[request.api_key]
        version = served.highest if highest is None else min(served.highest, highest)
        if version < served.lowest:
            name = ApiKey(request.api_key).name
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"The controller serves {name} from {served.lowest} on")
        return version

    async def send(self, request: Any, version: int) -> Any:
        """The response. Raises PeerUnavailableError when the time is up, and where another node is the active controller."""
        with trio.move_on_after(self._timeout):
            try:
                if isinstance(request, EnvelopeRequest):
                    return await self._open(request, version)
                node = self._services.quorum_node
                return await node.ask(request, RequestSource(version, OWN_NODE), node.driver.node.quorum.listener)
            except KafkaError as error:
                if error.code is ErrorCode.NOT_CONTROLLER:
                    raise PeerUnavailableError(f"the node's own controller: {error.message}") from None
                return _loaded(request.api_key).refuse(version, request, error)
        name = ApiKey(request.api_key).name
        raise PeerUnavailableError(f"the node's own controller: no response to {name} within {self._timeout:g} s")

    async def _open(self, envelope: EnvelopeRequest, version: int) -> Any:
        """Have the request of a client handled, by that client's rights and quotas. Raises KafkaError."""
        connection = ConnectionContext(self._services.quorum_node.driver.node.quorum.listener, _NO_PEER)
        connection.principal = OWN_NODE
        call = ControllerCall(self._services, connection, trio.lowlevel.checkpoint)
        call.key, call.version, call.client_id = envelope.api_key << 16 | version, version, self._client_id
        handle = _loaded(envelope.api_key).handle
        assert handle is not None
        return await handle(call, envelope)

    def close(self) -> None:
        """There is no connection to end."""


def _loaded(api_key: int) -> Handler:
    handler = SERVED_BY_CONTROLLERS.by_key[api_key]
    if handler.handle is None:
        handler.load()
    return handler
