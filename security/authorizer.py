"""The authorizer, which decides by super users and then by ACLs whether a client may perform an operation.

Decisions are cached, until a rule changes, because each Produce and Fetch asks for each of its topics. The number of cached
decisions and the length of their names are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..base.errors import ErrorCode, KafkaError
from .acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourcePattern, ResourceType
from .acl_rules import AclRules, Entries
from .audit import AuditLog
from .principal import Principal

_MOST_DECISIONS = 50_000
_LONGEST_REMEMBERED = 256
"""Characters of a name whose decision is cached. No topic has more; other names may be as long as clients like."""


class AuthorizableRequestContext(Protocol):
    """The client that asks: its principal and its IP address."""

    @property
    def principal(self) -> Principal: ...
    @property
    def host(self) -> str: ...


class Authorizer:
    """The authorizer of one broker. ``super_users`` are principals as text, such as ``User:admin``."""

    def __init__(self, rules: AclRules, super_users: frozenset[str], audit: AuditLog) -> None:
        self.rules = rules
        """Changed only by ``change``, which forgets the remembered decisions."""
        self.version = 0
        """Another one after each change of the rules."""
        self.is_loaded = True
        """Whether the rules are known. While they are not, only super users are let in (KAFKA-13649)."""
        self._super_users = super_users
        self._audit = audit
        self._decisions: dict[tuple[str, str, str, Operation, ResourceType, str], bool] = {}
        self._any: dict[tuple[str, str, str, Operation, ResourceType], bool] = {}

    def change(self, acls: Mapping[ResourcePattern, Entries]) -> None:
        """Replace the entries of these patterns."""
        if not acls:
            return
        for pattern, entries in acls.items():
            self.rules.put(pattern, entries)
        self.version += 1
        self._decisions.clear()
        self._any.clear()

    def allows(
        self,
        context: AuthorizableRequestContext,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        log_if_denied: bool = True,
        request: str = "",
    ) -> bool:
        """Whether the client may do this to the resource. ``request`` is the name of its request, for the audit log.

        Raises KafkaError UNKNOWN_SERVER_ERROR while the rules are not loaded, as ``allows_by_resource_type`` does.

        ``log_if_denied`` is False where a denial refuses nothing: where another right is enough, or where the answer only
        leaves out what the client may not see.
        """
        principal = context.principal
        key = (principal.type, principal.name, context.host, operation, resource_type, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decide(key)
            if len(name) <= _LONGEST_REMEMBERED:  # clients choose the names, and so the memory that decisions take
                if len(self._decisions) >= _MOST_DECISIONS:
                    self._decisions.clear()
                self._decisions[key] = allowed
        if allowed:
            if self._audit.tells_allowed:
                self._audit.allowed((str(principal), context.host, operation, resource_type, name, request))
        elif log_if_denied:
            self._audit.denied((str(principal), context.host, operation, resource_type, name, request))
        return allowed

    def _decide(self, key: tuple[str, str, str, Operation, ResourceType, str]) -> bool:
        kind, name, host, operation, resource_type, resource = key
        principal = f"{kind}:{name}"
        return self._is_super_user(principal) or self.rules.allow(principal, host, operation, resource_type, resource)

    def _is_super_user(self, principal: str) -> bool:
        if principal in self._super_users:
            return True
        if not self.is_loaded:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The access rules are not loaded yet.")
        return False

    def allows_by_resource_type(
        self, context: AuthorizableRequestContext, operation: Operation, resource_type: ResourceType, request: str = ""
    ) -> bool:
        """Whether the client may do this to at least one possible resource of the type (KIP-679)."""
        principal = context.principal
        key = (principal.type, principal.name, context.host, operation, resource_type)
        allowed = self._any.get(key)
        if allowed is None:
            if len(self._any) >= _MOST_DECISIONS:
                self._any.clear()
            text = f"{principal.type}:{principal.name}"
            allowed = self._is_super_user(text) or self.rules.allow_any(text, context.host, operation, resource_type)
            self._any[key] = allowed
        if not allowed:
            self._audit.denied((str(principal), context.host, operation, resource_type, "NONE", request))
        return allowed

    def authorized_operations(self, context: AuthorizableRequestContext, resource_type: ResourceType, name: str) -> int:
        """What the client may do to the resource, as a bit field (KIP-430)."""
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.allows(context, operation, resource_type, name, log_if_denied=False)
        )
