"""Creation and deletion of ACLs in the metadata log.

Each ACL has an id of its own there.

Source: Kafka's AclControlManager, and the checks of its AclApis. Where Kafka's own classes refuse a rule for any resource, any
operation, or a pattern that is for filters, its response is UNKNOWN_SERVER_ERROR; here it is INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage
from ....security.acl import (
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
from ....wire.messages.access_records import RemoveAccessControlEntryRecord
from ....wire.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ....wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ....wire.metadata_records import VersionedRecord
from ..snapshot_records import acl_record
from .result import MAX_RECORDS, ControllerResult, bounded

_Number = TypeVar("_Number", bound=IntEnum)


def create_acls(
    image: ClusterImage, request: CreateAclsRequest, new_uuid: Callable[[], bytes]
) -> ControllerResult[CreateAclsResponse]:
    """A rule that there is already is a success. ``new_uuid`` makes an id that no rule has."""
    records: list[VersionedRecord] = []
    response = CreateAclsResponse()
    made: set[AclBinding] = set()
    for creation in request.creations:
        try:
            binding = _checked(creation)
        except KafkaError as error:
            response.results.append(AclCreationResult(error_code=error.code, error_message=error.message))
            continue
        response.results.append(AclCreationResult())
        if binding not in made and binding.entry not in image.acls.get(binding.pattern, ()):
            made.add(binding)
            records.append((acl_record(new_uuid(), binding), 0))
    return ControllerResult(bounded(records), response)


def delete_acls(image: ClusterImage, request: DeleteAclsRequest) -> ControllerResult[DeleteAclsResponse]:
    """A rule that several filters match is in the result of each of them.

    Raises KafkaError INVALID_REQUEST where more rules match than one operation may remove.
    """
    removed: dict[bytes, None] = {}
    response = DeleteAclsResponse()
    for each in request.filters:
        try:
            wanted = _filter(each)
        except KafkaError as error:
            result = DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
        else:
            found = _matching(image, wanted)
            removed.update(dict.fromkeys(found))
            result = DeleteAclsFilterResult(error_message=None, matching_acls=[*map(_described, found.values())])
        response.filter_results.append(result)
    if len(removed) > MAX_RECORDS:
        why = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    return ControllerResult([(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in removed], response)


def _checked(creation: AclCreation) -> AclBinding:
    """Raises KafkaError."""
    kind = _known(ResourceType, creation.resource_type)
    pattern_type = _known(PatternType, creation.resource_pattern_type)
    operation = _known(Operation, creation.operation)
    permission = _known(Permission, creation.permission_type)
    if kind is ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not creation.resource_name:
        raise _invalid("Invalid empty resource name")
    if kind in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {kind.name}")
    if pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern_type.name}")
    if operation in (Operation.UNKNOWN, Operation.ANY):
        raise _invalid(f"Invalid operation {operation.name}")
    if permission not in (Permission.DENY, Permission.ALLOW):
        raise _invalid(f"Invalid permissionType {permission.name}")
    if ":" not in creation.principal:
        raise _invalid(
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    pattern = ResourcePattern(kind, creation.resource_name, pattern_type)
    return AclBinding(pattern, AclEntry(creation.principal, permission, creation.host, operation))


def _filter(asked: DeleteAclsFilter) -> AclFilter:
    """Raises KafkaError."""
    kind = _known(ResourceType, asked.resource_type_filter)
    pattern_type = _known(PatternType, asked.pattern_type_filter)
    operation = _known(Operation, asked.operation)
    permission = _known(Permission, asked.permission_type)
    if kind is ResourceType.UNKNOWN or pattern_type is PatternType.UNKNOWN:
        raise _invalid("Unknown patternFilter.")
    if operation is Operation.UNKNOWN or permission is Permission.UNKNOWN:
        raise _invalid("Unknown entryFilter.")
    name, principal, host = asked.resource_name_filter, asked.principal_filter, asked.host_filter
    return AclFilter(kind, name, pattern_type, principal, host, operation, permission)


def _matching(image: ClusterImage, wanted: AclFilter) -> dict[bytes, AclBinding]:
    return {
        acl_id: binding
        for acl_id, binding in image.acl_ids.items()
        if wanted.matches_pattern(binding.pattern) and wanted.matches_entry(binding.entry)
    }


def _described(binding: AclBinding) -> DeleteAclsMatchingAcl:
    pattern, entry = binding
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _known(numbers: type[_Number], number: int) -> _Number:
    """0, which is UNKNOWN, for a number that does not exist."""
    try:
        return numbers(number)
    except ValueError:
        return numbers(0)


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
