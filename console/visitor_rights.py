"""The rights of a visitor, by the table line of the API that shows or does the same (``handlers.table``).

It is asked of the broker's authorizer by the functions that handlers ask by, as if the visitor had sent a request of that API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.routing import Route

from ..handlers.connection_context import ConnectionContext
from ..handlers.rights import GROUP, TOPIC, TRANSACTIONAL_ID, AuthorizingNode, check, may
from ..handlers.table import right_to
from ..security.acl import CLUSTER_NAME, ResourceType
from ..security.authorizer import Authorizer
from ..view.own.broker_view import ViewedBroker
from ..wire.api_keys import ApiKey
from .visitor import current


class ConsoleRoute(Route):
    """An address of the console."""

    def __init__(
        self, path: str, endpoint: Callable[..., Any], apis: Sequence[ApiKey], methods: Sequence[str] | None = None
    ) -> None:
        super().__init__(path, endpoint, methods=None if methods is None else list(methods))
        self.apis = apis
        """Those that show or do the same; their rights are the visitor's rights here."""


class _VisitorRequest(NamedTuple):
    """A request of an API by the current visitor, as far as rights depend on it (``rights.Asker``)."""

    node: AuthorizingNode
    connection: ConnectionContext
    key: int


class VisitorRights:
    """Of the visitor of the request at hand. Without an authorizer everything is allowed, as to a client."""

    def __init__(self, broker: ViewedBroker) -> None:
        self._broker = broker

    @property
    def authorizer(self) -> Authorizer | None:
        """None also before the start: there is nothing to be seen then."""
        assembly = self._broker.assembly
        return None if assembly is None or not assembly.is_started else assembly.services.authorizer

    def may(self, api: ApiKey, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """By the first right of the API on such a resource. What may not be seen is left out, which is no refusal."""
        right = right_to(api, resource_type)
        return may(self._asked(api), right.operation, resource_type, name, log_if_denied=False)

    def check(self, api: ApiKey, name: str = CLUSTER_NAME) -> None:
        """By the first right of the API. Raises KafkaError, a handler's refusal."""
        resource_type, operation = right_to(api)
        check(self._asked(api), operation, resource_type, name)

    def check_address(self, apis: Sequence[ApiKey], request: Request) -> None:
        """Of each API. A topic is in the path, a group or a transactional id in the query. Raises the same."""
        for api in apis:
            name = CLUSTER_NAME
            if (resource_type := right_to(api).resource_type) is TOPIC:
                name = request.path_params["topic"]
            elif resource_type in (GROUP, TRANSACTIONAL_ID):
                name = request.query_params.get("id", "")
            self.check(api, name)

    def _asked(self, api: ApiKey) -> _VisitorRequest:
        return _VisitorRequest(self, current().connection, api << 16)
