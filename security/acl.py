"""Access control lists in Kafka's model: resource patterns, and entries that allow or deny operations to principals.

A *binding* is a resource pattern and one entry for it. A pattern is a type of resource with a name: the name of one resource
(LITERAL; ``*`` stands for every name), or the beginning of names (PREFIXED, KIP-290). An entry says whether a principal, from a
host, is allowed an operation or denied it; ``User:*`` is every principal, ``*`` every host and ALL every operation. Principals
are texts, ``User:alice``.

The numbers are those on the wire (``AclOperation``, ``AclPermissionType``, ``ResourceType`` and ``PatternType`` of Kafka's
clients); ``code_name`` gives the names that Kafka writes into ZooKeeper and its tools print.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
"""As the name of a literal pattern: every resource of its type. As a host: every host."""
EVERYBODY = "User:*"
CLUSTER_NAME = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class ResourceType(IntEnum):
    """The types of resources that rights are for."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a pattern's name is read. ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What is done to a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an entry allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind > ResourceType.ANY)
"""The types that a binding can have, without UNKNOWN and ANY."""

_O = Operation
SUPPORTED_OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        *(_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ),
    ResourceType.GROUP: (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        *(_O.CREATE, _O.ALTER, _O.DESCRIBE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
        _O.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE),
    ResourceType.DELEGATION_TOKEN: (_O.DESCRIBE,),
    ResourceType.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}
"""The operations on each type of resource (Kafka's ``AclEntry.supportedOperations``)."""


def code_name(code: ResourceType | PatternType | Operation | Permission) -> str:
    """``IdempotentWrite`` for IDEMPOTENT_WRITE."""
    return "".join(word.capitalize() for word in code.name.split("_"))


_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def constant_name(name: str) -> str:
    """The reverse of ``code_name``: ``IDEMPOTENT_WRITE`` for IdempotentWrite, and for itself."""
    return _WORD.sub("_", name).upper()


class ResourcePattern(NamedTuple):
    """Resources of one type, by name or by how their names begin."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL


class AclEntry(NamedTuple):
    """What one principal is allowed or denied."""

    principal: str
    permission: Permission
    host: str
    operation: Operation


class AclBinding(NamedTuple):
    """One entry and the resources that it is for."""

    pattern: ResourcePattern
    entry: AclEntry


class AclFilter(NamedTuple):
    """A selection of bindings; None, and ANY, stand for everything."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    """MATCH selects every pattern that matches the resource ``name``: the literal one, ``*`` and the prefixes."""
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.LITERAL:
            return pattern.name in (self.name, WILDCARD)
        return self.name.startswith(pattern.name)

    def matches_entry(self, entry: AclEntry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def patterns(self) -> tuple[ResourcePattern, ...]:
        """The patterns that the filter can match, if it names one; otherwise nothing, because any pattern may match."""
        if self.name is None or self.resource_type is ResourceType.ANY or self.pattern_type is PatternType.MATCH:
            return ()
        kinds = (PatternType.LITERAL, PatternType.PREFIXED)
        return tuple(
            ResourcePattern(self.resource_type, self.name, kind)
            for kind in kinds
            if self.pattern_type in (PatternType.ANY, kind)
        )
