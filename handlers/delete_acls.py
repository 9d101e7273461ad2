"""DeleteAcls (key 31): remove the access rules that filters match; one result for each filter. See ``acls``.

Behaviour: any broker removes them. A rule that several filters match is in the response of the first.

Version notes: 1 adds the pattern type, 2 is flexible, 3 adds user resources.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import AclBinding
from ..wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from .acls import check_is_secured, requested_filter
from .call import Call


async def handle(call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    filters = [requested_filter(asked) for asked in request.filters]
    check_is_secured(call)
    await call.flush()
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_message=None, matching_acls=[_deleted(*each) for each in found])
            for found in await call.broker.commands.delete_acls(filters)
        ]
    )


def _deleted(binding: AclBinding, error: KafkaError | None) -> DeleteAclsMatchingAcl:
    (kind, name, pattern_type), entry = binding
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def error_response(request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=error.code, error_message=error.message) for _ in request.filters
        ]
    )
