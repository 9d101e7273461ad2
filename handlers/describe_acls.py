"""DescribeAcls (key 29): the access rules that a filter matches, grouped by their patterns. See ``acls``.

Version notes: 1 adds the pattern type, 2 is flexible, 3 adds user resources.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import ResourcePattern
from ..security.acl_rules import select
from ..wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from .acls import check_is_secured, requested_filter
from .call import NodeCall


async def handle(call: NodeCall, request: DescribeAclsRequest) -> DescribeAclsResponse:
    wanted = requested_filter(request)
    check_is_secured(call)
    found: dict[ResourcePattern, DescribeAclsResource] = {}
    for pattern, entry in sorted(select(call.node.metadata.image.acls, wanted)):
        resource = found.get(pattern)
        if resource is None:
            kind, name, pattern_type = pattern
            resource = found[pattern] = DescribeAclsResource(
                resource_type=kind, resource_name=name, pattern_type=pattern_type
            )
        resource.acls.append(
            AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
        )
    return DescribeAclsResponse(resources=list(found.values()))


def error_response(request: DescribeAclsRequest, error: KafkaError) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error.code, error_message=error.message)
