"""``ottla acls add | list | remove``: access rules, by the names of Kafka's tools in lower case (``idempotent-write``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from ....base.wording import counted
from ....security.acl import (
    CLUSTER_NAME,
    EVERYBODY,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ....wire.messages.create_acls import AclCreation, CreateAclsRequest
from ....wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ....wire.messages.describe_acls import DescribeAclsRequest
from ..client import Admin, ClusterConnection
from ..nearest import no_choice, tell_of_like
from ..output import OutputColumn, print_rows
from ..running import ToolError, UsageError, refusal
from ..wire_request import WireRequest

COLUMNS = (
    *(
        OutputColumn("resource"),
        OutputColumn("name"),
        OutputColumn("pattern"),
        OutputColumn("principal"),
        OutputColumn("permission"),
    ),
    *(OutputColumn("operation"), OutputColumn("host")),
)
_VERSIONS = 1, 3

_PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}

Resource = tuple[ResourceType, str]


@dataclasses.dataclass(frozen=True)
class Resources:
    """What rules are about, as it was named on the command line."""

    topics: Sequence[str]
    groups: Sequence[str]
    transactional_ids: Sequence[str]
    cluster: bool
    delegation_tokens: Sequence[str]
    users: Sequence[str]
    prefixed: bool

    def named(self) -> list[Resource]:
        return [
            *((ResourceType.TOPIC, name) for name in self.topics),
            *((ResourceType.GROUP, name) for name in self.groups),
            *((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids),
            *([(ResourceType.CLUSTER, CLUSTER_NAME)] if self.cluster else ()),
            *((ResourceType.DELEGATION_TOKEN, name) for name in self.delegation_tokens),
            *((ResourceType.USER, name) for name in self.users),
        ]

    def pattern_type(self, resource_type: ResourceType) -> PatternType:
        """The cluster has one name, of which there are no prefixes."""
        return (
            PatternType.PREFIXED if self.prefixed and resource_type is not ResourceType.CLUSTER else PatternType.LITERAL
        )


@dataclasses.dataclass(frozen=True)
class AclEntryOptions:
    """Whom rules are for, and which; without principals everybody, without hosts all."""

    principals: Sequence[str]
    hosts: Sequence[str]
    operations: Sequence[str]
    deny: bool = False
    producer: bool = False
    consumer: bool = False

    def parsed(self) -> list[Operation]:
        """Raises UsageError."""
        return [_operation(name) for each in self.operations for name in each.split(",")]


def _operation(name: str) -> Operation:
    try:
        found = Operation[name.strip().upper().replace("-", "_")]
    except KeyError:
        found = Operation.UNKNOWN
    if found in (Operation.UNKNOWN, Operation.ANY):
        raise no_choice("operation", name, (_shown(each) for each in Operation if each > Operation.ANY))
    return found


def _shown(code: Operation | ResourceType | PatternType | Permission) -> str:
    return code.name.lower().replace("_", "-")


def add(connection: ClusterConnection, resources: Resources, who: AclEntryOptions) -> None:
    """Add rules, one for each resource, principal, operation and host. Raises ToolError with the broker's refusal."""
    creations = [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=resources.pattern_type(kind),
            principal=principal,
            host=host,
            operation=operation,
            permission_type=Permission.DENY if who.deny else Permission.ALLOW,
        )
        for kind, name in _checked(resources, who)
        for operation in _operations(kind, who)
        for principal in who.principals
        for host in who.hosts or [WILDCARD]
    ]
    with closing(connection.admin()) as admin:
        answer = admin.ask(WireRequest(CreateAclsRequest(creations=creations), *_VERSIONS))
    refused = [refusal(result.error_code, result.error_message) for result in answer.results if result.error_code]
    if refused:
        raise ToolError("; ".join(dict.fromkeys(refused)))
    rows = [_row(each.resource_type, each.resource_name, each.resource_pattern_type, each) for each in creations]
    print(f"Added {counted(len(rows), 'rule')}:")
    print_rows(COLUMNS, rows)


def _checked(resources: Resources, who: AclEntryOptions) -> list[Resource]:
    """The resources to make rules for. Raises UsageError."""
    named = resources.named()
    if not named:
        raise UsageError("say for which resources: --topic, --group, --transactional-id, --cluster, …")
    if not who.principals:
        raise UsageError(f"say for whom: --principal User:NAME, or --principal '{EVERYBODY}' for everybody")
    if not (who.operations or who.producer or who.consumer):
        raise UsageError("say which rights: --operation, --producer or --consumer")
    if who.deny and (who.producer or who.consumer):
        raise UsageError("--producer and --consumer give rights; to --deny, name operations")
    for kind, name in named:
        if not _operations(kind, who):
            raise UsageError(f"none of these rights is one of {_shown(kind)} {name}")
    for operation in who.parsed():
        if not any(_fits(operation, kind) for kind, _ in named):
            raise UsageError(f"{_shown(operation)} is no operation on any of these resources")
    return named


def _fits(operation: Operation, kind: ResourceType) -> bool:
    return operation is Operation.ALL or operation in SUPPORTED_OPERATIONS[kind]


def _operations(kind: ResourceType, who: AclEntryOptions) -> list[Operation]:
    """What is asked for, as far as there is such a thing on this type of resource."""
    wanted = [operation for operation in who.parsed() if _fits(operation, kind)]
    wanted += _PRODUCER.get(kind, ()) if who.producer else ()
    wanted += _CONSUMER.get(kind, ()) if who.consumer else ()
    return list(dict.fromkeys(wanted))


def list_acls(
    connection: ClusterConnection, resources: Resources, who: AclEntryOptions, *, affecting: bool, as_json: bool
) -> None:
    """A row for each rule that is about one of the resources, or for all. Raises ToolError."""
    found: dict[tuple[str, ...], None] = {}
    with closing(connection.admin()) as admin:
        for wanted in _filters(resources, who, affecting=affecting):
            request = DescribeAclsRequest(
                resource_type_filter=wanted.resource_type_filter,
                resource_name_filter=wanted.resource_name_filter,
                pattern_type_filter=wanted.pattern_type_filter,
                principal_filter=wanted.principal_filter,
                host_filter=wanted.host_filter,
                operation=wanted.operation,
                permission_type=wanted.permission_type,
            )
            answer = admin.ask(WireRequest(request, *_VERSIONS))
            _check(answer)
            for resource in answer.resources:
                for acl in resource.acls:
                    row = _row(resource.resource_type, resource.resource_name, resource.pattern_type, acl)
                    found[row] = None
        if not found:
            _tell_of_like(admin, who.principals)
    print_rows(COLUMNS, sorted(found), as_json=as_json)


def remove(connection: ClusterConnection, resources: Resources, who: AclEntryOptions) -> None:
    """Remove the rules that a listing with the same options shows, and show them. Raises ToolError."""
    if not (resources.named() or who.principals or who.hosts or who.operations):
        raise UsageError("say which rules: by resource, --principal, --host or --operation")
    filters = list(_filters(resources, who, affecting=False))
    with closing(connection.admin()) as admin:
        answer = admin.ask(WireRequest(DeleteAclsRequest(filters=filters), *_VERSIONS))
        if not any(result.matching_acls for result in answer.filter_results):
            _tell_of_like(admin, who.principals)
    for result in answer.filter_results:
        _check(result)
    found = [acl for result in answer.filter_results for acl in result.matching_acls]
    for acl in found:
        _check(acl)
    rows = sorted(_row(acl.resource_type, acl.resource_name, acl.pattern_type, acl) for acl in found)
    print(f"Removed {counted(len(rows), 'rule')}{':' if rows else '.'}")
    print_rows(COLUMNS, rows)


def _filters(resources: Resources, who: AclEntryOptions, *, affecting: bool) -> Iterator[DeleteAclsFilter]:
    named: list[tuple[ResourceType, str | None]] = [*resources.named()] or [(ResourceType.ANY, None)]
    pattern_type = PatternType.PREFIXED if resources.prefixed else PatternType.ANY
    principals: Sequence[str | None] = who.principals or [None]
    hosts: Sequence[str | None] = who.hosts or [None]
    for kind, name in named:
        for principal in principals:
            for host in hosts:
                for operation in who.parsed() or [Operation.ANY]:
                    yield DeleteAclsFilter(
                        resource_type_filter=kind,
                        resource_name_filter=name,
                        pattern_type_filter=PatternType.MATCH if affecting else pattern_type,
                        principal_filter=principal,
                        host_filter=host,
                        operation=operation,
                        permission_type=Permission.DENY if who.deny else Permission.ANY,
                    )


def _tell_of_like(admin: Admin, principals: Iterable[str]) -> None:
    """Say which principal with rules may have been meant, where the named one has none."""
    request = DescribeAclsRequest(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )
    resources = admin.ask(WireRequest(request, *_VERSIONS)).resources if principals else ()
    known = {acl.principal for resource in resources for acl in resource.acls}
    for principal in principals:
        tell_of_like(f"principal {principal} with rules", principal, known)


def _check(answer: Any) -> None:
    if answer.error_code:
        raise ToolError(refusal(answer.error_code, answer.error_message))


def _row(resource_type: int, name: str, pattern_type: int, acl: Any) -> tuple[str, ...]:
    return (
        _shown(ResourceType(resource_type)),
        name,
        _shown(PatternType(pattern_type)),
        acl.principal,
        _shown(Permission(acl.permission_type)),
        _shown(Operation(acl.operation)),
        acl.host,
    )
