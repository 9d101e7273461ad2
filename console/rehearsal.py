"""A check of the visitor's rights by this broker's handler, before a request is sent to another broker.

The other broker takes this one for the client, which may do everything. So before it is sent there, the request is handled
here as the visitor's, by parts of a broker that do nothing. Where the handler comes to one of them, having looked at rights and
refused nothing, the request may be sent. From there it may go on, with that part's error, to other topics or groups.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn, cast

from ..base.errors import ErrorCode, KafkaError
from ..handlers.rights import refusal
from ..handlers.services import Services
from ..security.acl import CLUSTER_NAME, Operation, ResourceType
from ..security.authorizer import AuthorizableRequestContext, Authorizer

_KEPT = frozenset(
    ("broker_id", "cluster_id", "config", "clock", "workers", "metadata", "served", "absent_topics", "large_decoding")
)


class Rehearsal:
    """One rehearsal of one request."""

    def __init__(self, services: Services, authorizer: Authorizer) -> None:
        self._part, self._authorizer = _Elsewhere(), _Watched(authorizer)
        parts = {each.name: self._part for each in dataclasses.fields(services) if each.name not in _KEPT}
        changed: dict[str, Any] = {**parts, "authorizer": cast(Authorizer, self._authorizer)}
        self.services = dataclasses.replace(services, **changed)
        """Given to the request's handler, once."""

    def may_be_sent(self) -> bool:
        """False where the handler has answered without doing anything. Raises KafkaError, the first refusal."""
        for resource_type in self._authorizer.refused:
            raise refusal(resource_type)
        if self._part.was_reached and not self._authorizer.has_allowed:
            raise AssertionError("this handler checks no rights before it acts")
        return self._part.was_reached


class _Elsewhere:
    """In the place of each part by which a handler does something, or answers for what it has."""

    was_reached = False
    is_controller = True
    """So that rights are looked at."""
    is_on = False
    """Quotas are those of the broker that carries it out."""

    def __getattr__(self, name: str) -> NoReturn:
        self.was_reached = True
        # Handlers check rights before they act, so the first use of a part ends the rehearsal.
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "Another broker does this.")


class _Watched:
    """An authorizer that remembers its decisions."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self.refused: list[ResourceType] = []
        """The types of the refused resources, in order."""
        self.has_allowed = False
        """Whether it has allowed anything."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._authorizer, name)

    def allows(
        self,
        context: AuthorizableRequestContext,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        log_if_denied: bool = True,
        request: str = "",
    ) -> bool:
        """See ``Authorizer.allows``."""
        allowed = self._authorizer.allows(context, operation, resource_type, name, log_if_denied, request)
        if allowed:
            self.has_allowed = True
        elif log_if_denied:
            self.refused.append(resource_type)
        return allowed
