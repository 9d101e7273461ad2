"""The shared part of the three ACL requests: rules and filters of a request, and the check for an authorizer.

Without an authorizer each is answered SECURITY_DISABLED, as in Kafka. Elements that are UNKNOWN (0) in a request, or have a
number that does not exist, are INVALID_REQUEST with or without an authorizer.
"""

from __future__ import annotations

from typing import Protocol

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import (
    CLUSTER_NAME,
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ..security.principal import parse_principal
from ..wire.messages.create_acls import AclCreation
from .call import NodeCall

Elements = tuple[ResourceType, PatternType, Operation, Permission]


class RequestedFilter(Protocol):
    """A filter in a request."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def check_is_secured(call: NodeCall) -> None:
    """Raises KafkaError where there is no authorizer."""
    if call.node.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")


def _elements(resource_type: int, pattern_type: int, operation: int, permission: int) -> Elements:
    """Raises KafkaError."""
    try:
        found = ResourceType(resource_type), PatternType(pattern_type), Operation(operation), Permission(permission)
    except ValueError:
        found = (ResourceType.UNKNOWN, PatternType.UNKNOWN, Operation.UNKNOWN, Permission.UNKNOWN)
    if 0 in found:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The request contains elements of type UNKNOWN.")
    return found


def requested_filter(asked: RequestedFilter) -> AclFilter:
    """Raises KafkaError."""
    kind, pattern_type, operation, permission = _elements(
        asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type
    )
    name, principal, host = asked.resource_name_filter, asked.principal_filter, asked.host_filter
    return AclFilter(kind, name, pattern_type, principal, host, operation, permission)


def requested_binding(asked: AclCreation) -> AclBinding:
    """Raises KafkaError for what cannot be a rule: names are paths in ZooKeeper, so they have no slash."""
    kind, pattern_type, operation, permission = _elements(
        asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type
    )
    why = None
    if 1 in (kind, pattern_type, operation, permission) or pattern_type is PatternType.MATCH:
        why = "ANY and MATCH are for filters"
    elif kind is ResourceType.CLUSTER and asked.resource_name != CLUSTER_NAME:
        why = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not asked.resource_name:
        why = "Invalid empty resource name"
    elif "/" in asked.resource_name or asked.resource_name in (".", ".."):
        why = "Failed to create ACL"
    else:
        try:
            parse_principal(asked.principal)
        except ValueError as error:
            why = str(error)
    if why is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    pattern = ResourcePattern(kind, asked.resource_name, pattern_type)
    return AclBinding(pattern, AclEntry(asked.principal, permission, asked.host, operation))
