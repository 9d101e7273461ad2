"""Authorization of requests: the rights that each needs, checked by ``security.authorizer``.

Each line of ``table.HANDLERS`` declares its API's rights. A right on the cluster that the whole request needs is checked before
the handler is called; the others are checked in the handler, which answers with errors for what is refused and does the rest.
Where there is no authorizer everything is allowed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType
from ..wire.api_keys import TITLES
from ..wire.headers import key_and_version

if TYPE_CHECKING:
    from ..security.authorizer import Authorizer
    from .connection_context import ConnectionContext

T = TypeVar("T")

NOT_ASKED = -(1 << 31)
"""In place of a bit field of operations that the client did not ask for."""

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

_CODES = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
_TEXTS = {
    TOPIC: "Topic authorization failed.",
    GROUP: "Group authorization failed.",
    CLUSTER: "Cluster authorization failed.",
    TRANSACTIONAL_ID: "Transactional Id authorization failed.",
    ResourceType.DELEGATION_TOKEN: "Delegation Token authorization failed.",
    ResourceType.USER: "Delegation Token authorization failed.",
}


class Right(NamedTuple):
    """A right that an API looks at."""

    resource_type: ResourceType
    operation: Operation


def of_topic(*operations: Operation) -> tuple[Right, ...]:
    return tuple(Right(TOPIC, operation) for operation in operations)


def of_group(*operations: Operation) -> tuple[Right, ...]:
    return tuple(Right(GROUP, operation) for operation in operations)


def of_cluster(*operations: Operation) -> tuple[Right, ...]:
    return tuple(Right(CLUSTER, operation) for operation in operations)


def of_configs(operation: Operation) -> tuple[Right, ...]:
    """Topics and groups have rights to their configs; those of anything else are the cluster's."""
    return (*of_topic(operation), *of_group(operation), *of_cluster(operation))


def of_transactional_id(*operations: Operation) -> tuple[Right, ...]:
    return tuple(Right(TRANSACTIONAL_ID, operation) for operation in operations)


NOTHING: tuple[Right, ...] = ()
"""No right is needed."""


class AuthorizingNode(Protocol):
    """The node that a request is made to."""

    @property
    def authorizer(self) -> Authorizer | None:
        """None where every client may do everything."""
        ...


class AuthorizableRequest(Protocol):
    """Of a ``NodeCall``, what its rights depend on: which node it is made to, by which client, and the request's key."""

    @property
    def node(self) -> AuthorizingNode: ...
    @property
    def connection(self) -> ConnectionContext: ...
    @property
    def key(self) -> int: ...


def refusal(resource_type: ResourceType) -> KafkaError:
    """The response to a client that lacks a right."""
    return KafkaError(_CODES[resource_type], _TEXTS[resource_type])


@functools.cache
def _title(key: int) -> str:
    """The name of a request, which the audit log is told. There are as many keys as the node serves versions."""
    return TITLES[key_and_version(key)[0]]


def may(
    call: AuthorizableRequest,
    operation: Operation,
    resource_type: ResourceType,
    name: str = CLUSTER_NAME,
    *,
    log_if_denied: bool = True,
) -> bool:
    """Whether the client may do this; see ``Authorizer.allows``."""
    authorizer = call.node.authorizer
    if authorizer is None:
        return True
    return authorizer.allows(call.connection, operation, resource_type, name, log_if_denied, _title(call.key))


def may_with_any(call: AuthorizableRequest, operation: Operation, resource_type: ResourceType) -> bool:
    """Whether there may be a resource of the type that the client may do this to (KIP-679)."""
    authorizer = call.node.authorizer
    if authorizer is None:
        return True
    return authorizer.allows_by_resource_type(call.connection, operation, resource_type, _title(call.key))


def check(
    call: AuthorizableRequest, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
) -> None:
    """Raises KafkaError, the refusal, when the client may not do this."""
    if not may(call, operation, resource_type, name):
        raise refusal(resource_type)


def allowed_names(
    call: AuthorizableRequest,
    operation: Operation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    log_if_denied: bool = True,
) -> set[str]:
    """Those of the names with which the client may do this; each is looked at once."""
    return {
        name for name in dict.fromkeys(names) if may(call, operation, resource_type, name, log_if_denied=log_if_denied)
    }


def split(
    call: AuthorizableRequest,
    operation: Operation,
    resource_type: ResourceType,
    asked: Iterable[T],
    name_of: Callable[[T], str],
) -> tuple[list[T], list[T]]:
    """What is allowed of ``asked``, and what is not."""
    items = list(asked)
    if call.node.authorizer is None:
        return items, []
    allowed = allowed_names(call, operation, resource_type, map(name_of, items))
    return [each for each in items if name_of(each) in allowed], [
        each for each in items if name_of(each) not in allowed
    ]


def authorized_operations(call: AuthorizableRequest, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
    """What the client may do to the resource, as a bit field whose bits are numbered as ``Operation`` is (KIP-430)."""
    authorizer = call.node.authorizer
    if authorizer is None:
        return sum(1 << operation for operation in SUPPORTED_OPERATIONS[resource_type])
    return authorizer.authorized_operations(call.connection, resource_type, name)


def cluster_operations(call: AuthorizableRequest) -> int:
    """The same of the cluster: nothing for a client that may not describe it."""
    return authorized_operations(call, CLUSTER) if may(call, Operation.DESCRIBE, CLUSTER) else 0
