"""Serves the requests of a formation on the controllers' listener, beside Kafka's requests.

Such a request is the first of its connection behind the authentication. Any other request there is one of Kafka's, and opens the
gate: the requests that follow go to dispatch as on other listeners.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from ...base.errors import KafkaError
from ...handlers.call import CloseConnection, NodeCall
from ...handlers.connection_context import ConnectionContext
from ...handlers.node_services import NodeServices
from ...handlers.rights import refusal
from ...security.acl import Operation, ResourceType
from ..listeners.dispatch import Answer, answer
from ..listeners.gate import Gate
from ..listeners.listener_security import ListenerSecurity
from ..listeners.monitor import Monitor
from .messages import decode_request, encode_refusal, encode_response, is_of_formation
from .protocol import FormationStatement

if TYPE_CHECKING:
    from ...handlers.controller.call import ControllerCall

RespondTo = Callable[[NodeCall, FormationStatement], Awaitable[FormationStatement]]
"""Takes what another node says of itself; returns what this one says."""


class FormationGate:
    """The gate of one connection; ``inner`` is that of SASL, if there is one."""

    def __init__(self, inner: Gate | None, context: ConnectionContext, respond: RespondTo) -> None:
        self.is_open = False
        self.frame_limit: int | None = None if inner is None else inner.frame_limit
        self._inner = inner
        self._context = context
        self._respond = respond

    async def take(self, call: NodeCall, frame: memoryview) -> Answer:
        inner = self._inner
        if is_of_formation(frame) and (inner is None or not self._context.is_authenticating):
            return [await self._response(call, frame)]
        if inner is not None and not inner.is_open:
            taken = await inner.take(call, frame)
            self.frame_limit = inner.frame_limit
            return taken
        if int.from_bytes(frame[:2]) not in call.node.served.by_key:
            raise CloseConnection("this node does not serve the request, maybe because it is not in a cluster yet")
        self.is_open = True
        return await answer(call, frame)

    async def _response(self, call: NodeCall, frame: memoryview) -> bytes:
        correlation_id, said = decode_request(frame)
        try:
            _check_rights(call)
            return encode_response(await self._respond(call, said), correlation_id)
        except KafkaError as error:
            return encode_refusal(error.message or error.code.name, correlation_id)


def _check_rights(call: NodeCall) -> None:
    """Raises KafkaError for a client that may not do what nodes do."""
    authorizer = call.node.authorizer
    if authorizer is None:
        return
    # Not by ``rights.check``: the call knows no request before this one, and none that is not Kafka's.
    cluster = ResourceType.CLUSTER
    is_node = authorizer.allows(call.connection, Operation.CLUSTER_ACTION, cluster, request="Formation")
    if not is_node:
        raise refusal(cluster)


def with_formation(security: ListenerSecurity, respond: RespondTo) -> ListenerSecurity:
    """The security of a controllers' listener, which responds to requests of a formation as well."""
    inner = security.make_gate

    def make_gate(context: ConnectionContext, services: NodeServices, monitor: Monitor) -> Gate:
        return FormationGate(None if inner is None else inner(context, services, monitor), context, respond)

    return dataclasses.replace(security, make_gate=make_gate)


async def say_formed(call: NodeCall, _said: FormationStatement) -> FormationStatement:
    """What a running controller says of itself."""
    identity = cast("ControllerCall", call).controller.quorum_node.driver.node.quorum.identity
    return FormationStatement(identity.key.node_id, (), identity.key.directory_id, None, identity.cluster_id)
