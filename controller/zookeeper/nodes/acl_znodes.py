"""The znodes of ACLs, their paths and their formats, as in Kafka 3.9 (ZkData ``ZkAclStore``, ``AclEntry``).

================================================ ======================================================
``/kafka-acl/TYPE/NAME``                         version 1: the entries of a literal pattern
``/kafka-acl-extended/prefixed/TYPE/NAME``       the same of a prefixed one (KIP-290)
``/kafka-acl-changes/acl_changes_N``             the text ``TYPE:NAME``: a literal pattern changed
``/kafka-acl-extended-changes/acl_changes_N``    version 1, JSON: a prefixed one did
================================================ ======================================================

Names are not encoded, so they must have no slash. The folders exist once a broker with an authorizer has started. Keys have
the order in which Kafka was seen to write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ....security.acl import (
    EVERYBODY,
    RESOURCE_TYPES,
    WILDCARD,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    code_name,
    constant_name,
)

LITERAL_ROOT = "/kafka-acl"
_EXTENDED_ROOT = "/kafka-acl-extended"
_PREFIXED_ROOT = _EXTENDED_ROOT + "/prefixed"
ROOTS = (LITERAL_ROOT, _EXTENDED_ROOT)
"""All rules are below these."""

LITERAL_CHANGES = "/kafka-acl-changes"
PREFIXED_CHANGES = "/kafka-acl-extended-changes"
CHANGES = (LITERAL_CHANGES, PREFIXED_CHANGES)
_CHANGE_PREFIX = "acl_changes_"


def folder(pattern_type: PatternType, resource_type: ResourceType) -> str:
    """Where the patterns of one kind and type are."""
    root = LITERAL_ROOT if pattern_type is PatternType.LITERAL else _PREFIXED_ROOT
    return f"{root}/{code_name(resource_type)}"


def path(pattern: ResourcePattern) -> str:
    return f"{folder(pattern.pattern_type, pattern.resource_type)}/{pattern.name}"


PATHS = (
    LITERAL_ROOT,
    *(folder(PatternType.LITERAL, kind) for kind in RESOURCE_TYPES),
    LITERAL_CHANGES,
    _EXTENDED_ROOT,
    _PREFIXED_ROOT,
    *(folder(PatternType.PREFIXED, kind) for kind in RESOURCE_TYPES),
    PREFIXED_CHANGES,
)
"""Nodes without data that an authorizer needs; parents first."""


def encode_entries(entries: Iterable[AclEntry]) -> bytes:
    acls = [
        {
            "principal": entry.principal,
            "permissionType": code_name(entry.permission),
            "host": entry.host,
            "operation": code_name(entry.operation),
        }
        for entry in sorted(entries)
    ]
    return _dump({"acls": acls, "version": 1})


DENY_ALL = AclEntry(EVERYBODY, Permission.DENY, WILDCARD, Operation.ALL)


class ReadEntries(NamedTuple):
    """What was read of a node."""

    entries: frozenset[AclEntry] | None
    """None where nothing of the node is understood."""
    errors: tuple[str, ...]
    """What is not understood, one text each."""


def decode_entries(data: bytes) -> frozenset[AclEntry]:
    """Raises ValueError where anything is not understood: only what is known in full may be overwritten."""
    read = read_entries(data)
    if read.entries is None or read.errors:
        raise ValueError("; ".join(read.errors))
    return read.entries


def read_entries(data: bytes) -> ReadEntries:
    """The entries to apply. One that is not understood allows nothing; if it may deny something, it denies everything to the
    principal and host that it names, or to all.

    Kafka 3.9 takes a rule of an unknown operation for one that never matches, so that a denial is lost; one without a
    principal keeps it from reading the node, and so from starting (AclEntry ``fromBytes``, AclAuthorizer ``loadCache``).
    """
    if not data:
        return ReadEntries(frozenset(), ())
    try:
        fields = json.loads(data)
        if fields["version"] != 1:
            raise ValueError(f"version {fields['version']} of access rules")
        acls = list(fields["acls"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return ReadEntries(None, (repr(error),))
    entries, errors = set(), []
    for acl in acls:
        try:
            entries.add(_entry(acl))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            errors.append(repr(error))
            entries |= _instead_of(acl if isinstance(acl, dict) else {})
    return ReadEntries(frozenset(entries), tuple(errors))


def _entry(acl: Mapping[str, str]) -> AclEntry:
    principal, host = acl["principal"], acl["host"]
    permission, operation = Permission[constant_name(acl["permissionType"])], Operation[constant_name(acl["operation"])]
    if not isinstance(principal, str) or ":" not in principal or not isinstance(host, str):
        raise ValueError(f"{principal!r} from {host!r}")
    if permission not in (Permission.ALLOW, Permission.DENY) or operation in (Operation.UNKNOWN, Operation.ANY):
        raise ValueError(f"{permission.name} {operation.name}")
    return AclEntry(principal, permission, host, operation)


def _instead_of(acl: Mapping[str, object]) -> set[AclEntry]:
    """What replaces an entry that is not understood."""
    if str(acl.get("permissionType")).upper() == Permission.ALLOW.name:
        return set()
    principal, host = acl.get("principal"), acl.get("host")
    if not isinstance(principal, str) or ":" not in principal:
        principal = EVERYBODY
    return {DENY_ALL._replace(principal=principal, host=host if isinstance(host, str) else WILDCARD)}


def change_prefix(pattern: ResourcePattern) -> str:
    """The path of a notification, except for its number."""
    changes = LITERAL_CHANGES if pattern.pattern_type is PatternType.LITERAL else PREFIXED_CHANGES
    return f"{changes}/{_CHANGE_PREFIX}"


def encode_change(pattern: ResourcePattern) -> bytes:
    """What tells the brokers that the entries of a pattern have changed."""
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    return _dump(
        {
            "version": 1,
            "resourceType": pattern.resource_type.name,
            "name": pattern.name,
            "patternType": pattern.pattern_type.name,
        }
    )


def decode_literal_change(data: bytes) -> ResourcePattern:
    """Raises KeyError for a type that is not known."""
    kind, _, name = data.decode().partition(":")
    return ResourcePattern(ResourceType[constant_name(kind)], name)


def decode_prefixed_change(data: bytes) -> ResourcePattern:
    fields = json.loads(data)
    if fields["version"] > 1:
        raise ValueError(f"version {fields['version']} of a change of access rules")
    return ResourcePattern(
        ResourceType[constant_name(fields["resourceType"])],
        str(fields["name"]),
        PatternType[constant_name(fields["patternType"])],
    )


def _dump(fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
