"""Forwarding of requests from a broker of a KRaft cluster to the active controller (KIP-590).

Behaviour: the request goes in an Envelope with the client's principal and address, and the controller's response comes back as it
is. The controller checks rights, quotas and the request; what brokers are configured to, the broker checks before. An error of
the envelope is an error in the response to the client, as with any other request that fails. A client that the controller holds
up is held up here, for the longer of that time and the broker's own (``RequestHandlerHelper.sendForwardedResponse``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from ..security.acl import Operation
from ..security.principal import Principal
from ..wire.api_keys import ApiKey
from ..wire.registry import request_class
from ..wire.schema import Message
from .call import Call
from .forwarded_configs import checked_first
from .table import Handler, ServedApis, of_release, plain_error

_O = Operation

OF_QUORUMS = {
    handler.api_key: handler
    for handler in (
        Handler(ApiKey.DESCRIBE_QUORUM, 0, 2, cluster_right=_O.DESCRIBE),
        Handler(ApiKey.UPDATE_FEATURES, 0, 2, cluster_right=_O.ALTER),
        Handler(ApiKey.UNREGISTER_BROKER, 0, 0, cluster_right=_O.ALTER),
        Handler(ApiKey.ADD_RAFT_VOTER, 0, 1, cluster_right=_O.ALTER),
        Handler(ApiKey.REMOVE_RAFT_VOTER, 0, 0, cluster_right=_O.ALTER),
    )
}
"""What clients ask of a quorum only."""

_CHANGES_OF_CONFIGS = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)

_REQUESTS_FOR_TOKENS = (
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
)
_LOWEST_AT_CONTROLLERS = dict.fromkeys(_REQUESTS_FOR_TOKENS, 1)
"""Versions below are of brokers only, and have the same fields as this one."""

OF_ZOOKEEPER_MODE = (
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
)
"""Requests between brokers and a controller that is one of them."""


class Forwarder(Protocol):
    """The way of a client's request to the active controller."""

    async def forward(
        self, request: Message, version: int, client_id: str | None, principal: Principal, host: str
    ) -> Any:
        """The controller's response. Raises KafkaError."""
        ...


@dataclasses.dataclass(slots=True)
class ForwardedHandler(Handler):
    """A ``Handler`` that gives the request to ``forwarder``."""

    forwarder: Forwarder | None = None

    def load(self) -> None:
        if self.api_key in OF_QUORUMS:
            self.request_class = request_class(self.api_key)
            self.error_response = plain_error
        else:
            Handler.load(self)
        assert self.forwarder is not None
        forward = _handle_by(self.forwarder, _LOWEST_AT_CONTROLLERS.get(self.api_key, self.lowest))
        if self.api_key in _CHANGES_OF_CONFIGS:
            assert self.handle is not None
            assert self.error_response is not None
            forward = checked_first(self.handle, self.error_response, forward)
        elif self.api_key in _REQUESTS_FOR_TOKENS:
            from .forwarded_tokens import asked_first  # few clusters have tokens

            forward = asked_first(forward)
        self.handle = forward


def _handle_by(forwarder: Forwarder, lowest: int) -> Callable[[Any, Any], Awaitable[Any]]:
    async def handle(call: Call, request: Message) -> Any:
        await call.flush()
        client, version = call.connection, max(call.version, lowest)
        response = await forwarder.forward(request, version, call.client_id, client.principal, client.host)
        call.throttle_ms = max(call.throttle_ms, getattr(response, "throttle_time_ms", 0))
        return response

    return handle


def served_by_forwarding(served: ServedApis, forwarded: Collection[ApiKey], forwarder: Forwarder) -> ServedApis:
    """What a broker of KRaft serves in place of ``served``."""
    by_key: dict[int, Handler] = {
        key: handler for key, handler in served.by_key.items() if handler.api_key not in OF_ZOOKEEPER_MODE
    }
    for api_key in forwarded:
        own_handler = OF_QUORUMS.get(api_key)
        handler = by_key.get(api_key) if own_handler is None else of_release(own_handler, served.release)
        if handler is not None:
            own = {field.name: getattr(handler, field.name) for field in dataclasses.fields(Handler)}
            by_key[int(api_key)] = ForwardedHandler(**{**own, "handle": None}, forwarder=forwarder)
    return dataclasses.replace(served, by_key=by_key)
