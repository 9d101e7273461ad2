"""Decides whether a client may do something: super users, then the access rules.

Decisions are remembered for each principal and host, and forgotten with every change of a rule: a Produce or a Fetch asks for
each of its topics every time. How many are remembered is bounded, and so is what they are of.
"""

from __future__ import annotations

from typing import Protocol

from .acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourcePattern, ResourceType
from .acl_rules import AclRules, Entries
from .audit import AuditLog
from .principal import Principal

_MOST_DECISIONS = 50_000
_LONGEST_REMEMBERED = 256
"""Characters of a name. No topic has more; of other names clients can make up as many and as long ones as they like."""


class Context(Protocol):
    """Who asks, and from where: an IP address."""

    @property
    def principal(self) -> Principal: ...
    @property
    def host(self) -> str: ...


class Authorizer:
    """One broker's. ``super_users`` are principals as text, ``User:admin``; ``change`` is how ``rules`` are changed."""

    def __init__(self, rules: AclRules, super_users: frozenset[str], audit: AuditLog) -> None:
        self.rules = rules
        self._super_users = super_users
        self._audit = audit
        self._decisions: dict[tuple[str, str, str, Operation, ResourceType, str], bool] = {}
        self._any: dict[tuple[str, str, str, Operation, ResourceType], bool] = {}

    def change(self, pattern: ResourcePattern, entries: Entries) -> None:
        """These are the entries of a pattern from now on."""
        self.rules.put(pattern, entries)
        self._decisions.clear()
        self._any.clear()

    def allows(
        self,
        context: Context,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        log_if_denied: bool = True,
        request: str = "",
    ) -> bool:
        """Whether the client may do this to the resource. ``request`` is what it asked for, as the audit log is to name it.

        ``log_if_denied`` is False where nothing is refused by it: where another right does as well, or where what the client
        may not see is left out.
        """
        principal = context.principal
        key = (principal.type, principal.name, context.host, operation, resource_type, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decide(key)
            if len(name) <= _LONGEST_REMEMBERED:
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
        return principal in self._super_users or self.rules.allow(principal, host, operation, resource_type, resource)

    def allows_by_resource_type(
        self, context: Context, operation: Operation, resource_type: ResourceType, request: str = ""
    ) -> bool:
        """Whether there may be a resource of the type to which the client may do this (KIP-679)."""
        principal = context.principal
        key = (principal.type, principal.name, context.host, operation, resource_type)
        allowed = self._any.get(key)
        if allowed is None:
            if len(self._any) >= _MOST_DECISIONS:
                self._any.clear()
            text = f"{principal.type}:{principal.name}"
            allowed = text in self._super_users or self.rules.allow_any(text, context.host, operation, resource_type)
            self._any[key] = allowed
        if not allowed:
            self._audit.denied((str(principal), context.host, operation, resource_type, "NONE", request))
        return allowed

    def authorized_operations(self, context: Context, resource_type: ResourceType, name: str) -> int:
        """What the client may do to the resource, as a bit field (KIP-430)."""
        return sum(
            1 << operation
            for operation in SUPPORTED_OPERATIONS[resource_type]
            if self.allows(context, operation, resource_type, name, log_if_denied=False)
        )
