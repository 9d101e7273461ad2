"""The ACLs of a cluster in memory, and the decisions that follow from them (Kafka 3.9's AclAuthorizer).

A request for a resource is decided by the entries of its literal pattern, of the literal ``*``, and of every prefix of its name
that are for the principal (or everybody) and its host (or all). IPv6 addresses are equal however they are written; Kafka's
brokers write ``0:0:0:0:0:0:0:1``, and compare texts. The request is denied if one of these entries denies the operation, or ALL;
otherwise it is allowed if one allows it. READ, WRITE, DELETE and ALTER allow DESCRIBE as well, ALTER_CONFIGS allows
DESCRIBE_CONFIGS; denying them denies nothing else. If there is no entry for a resource, for any principal, the answer is
``allow_everyone_if_no_acl_found``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ..base.addresses import canonical_address
from .acl import (
    EVERYBODY,
    RESOURCE_TYPES,
    WILDCARD,
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

Entries = frozenset[AclEntry]

_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


class AclRules:
    """Entries by pattern. A pattern without entries is not held."""

    def __init__(self, *, allow_everyone_if_no_acl_found: bool = False) -> None:
        self.allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self._literal: dict[ResourceType, dict[str, Entries]] = {kind: {} for kind in RESOURCE_TYPES}
        self._prefixed: dict[ResourceType, dict[str, Entries]] = {kind: {} for kind in RESOURCE_TYPES}
        self._with_length: dict[ResourceType, Counter[int]] = {kind: Counter() for kind in RESOURCE_TYPES}
        self._prefix_lengths: dict[ResourceType, tuple[int, ...]] = dict.fromkeys(RESOURCE_TYPES, ())

    def put(self, pattern: ResourcePattern, entries: Entries) -> None:
        """Replace the entries of a pattern."""
        names = self._names(pattern)
        was_there = pattern.name in names
        if entries:
            names[pattern.name] = entries
        else:
            names.pop(pattern.name, None)
        if pattern.pattern_type is PatternType.PREFIXED and was_there != bool(entries):
            with_length = self._with_length[pattern.resource_type]
            with_length[len(pattern.name)] += 1 if entries else -1
            self._prefix_lengths[pattern.resource_type] = tuple(sorted(+with_length))

    def entries(self, pattern: ResourcePattern) -> Entries:
        return self._names(pattern).get(pattern.name, frozenset())

    def _names(self, pattern: ResourcePattern) -> dict[str, Entries]:
        by_type = self._literal if pattern.pattern_type is PatternType.LITERAL else self._prefixed
        return by_type[pattern.resource_type]

    def allow(self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether a principal may do something to the resource of this name."""
        about = [entry for entries in self._about(resource_type, name) for entry in entries]
        if not about:
            return self.allow_everyone_if_no_acl_found
        concerned = [entry for entry in about if _concerns(entry, principal, host)]
        denying = (operation, Operation.ALL)
        if any(entry.permission is Permission.DENY and entry.operation in denying for entry in concerned):
            return False
        allowing = (*denying, *_IMPLIED_BY.get(operation, ()))
        return any(entry.permission is Permission.ALLOW and entry.operation in allowing for entry in concerned)

    def _about(self, resource_type: ResourceType, name: str) -> Iterator[Entries]:
        literal, prefixed = self._literal[resource_type], self._prefixed[resource_type]
        yield literal.get(WILDCARD, frozenset())
        if name != WILDCARD:
            yield literal.get(name, frozenset())
        for length in self._prefix_lengths[resource_type]:
            if length > len(name):
                return
            yield prefixed.get(name[:length], frozenset())

    def allow_any(self, principal: str, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the principal may do this to at least one possible resource of the type (KIP-679).

        An entry that allows counts unless the entries that deny cover all of its resources. Implied operations do not
        count, and with ``allow_everyone_if_no_acl_found`` only a denial of every resource counts, as in Kafka.
        """
        denied_names = self._names_with(self._literal, principal, host, operation, resource_type, Permission.DENY)
        if WILDCARD in denied_names:
            return False
        if self.allow_everyone_if_no_acl_found:
            return True
        denied_prefixes = self._names_with(self._prefixed, principal, host, operation, resource_type, Permission.DENY)

        def is_covered(name: str) -> bool:
            return any(name.startswith(prefix) for prefix in denied_prefixes)

        allowed_prefixes = self._names_with(self._prefixed, principal, host, operation, resource_type, Permission.ALLOW)
        if not all(is_covered(prefix) for prefix in allowed_prefixes):
            return True
        allowed_names = self._names_with(self._literal, principal, host, operation, resource_type, Permission.ALLOW)
        return WILDCARD in allowed_names or not all(name in denied_names or is_covered(name) for name in allowed_names)

    def _names_with(
        self,
        by_type: dict[ResourceType, dict[str, Entries]],
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        permission: Permission,
    ) -> set[str]:
        """The names of the patterns that have an entry of this kind for the principal."""
        return {
            name
            for name, entries in by_type[resource_type].items()
            if any(
                entry.permission is permission
                and entry.operation in (operation, Operation.ALL)
                and _concerns(entry, principal, host)
                for entry in entries
            )
        }


def select(acls: Mapping[ResourcePattern, Entries], wanted: AclFilter) -> list[AclBinding]:
    """The bindings that a filter matches."""
    return [
        AclBinding(pattern, entry)
        for pattern, entries in acls.items()
        if wanted.matches_pattern(pattern)
        for entry in entries
        if wanted.matches_entry(entry)
    ]


def _concerns(entry: AclEntry, principal: str, host: str) -> bool:
    if entry.principal not in (principal, EVERYBODY):
        return False
    return entry.host in (host, WILDCARD) or canonical_address(entry.host) == canonical_address(host)
