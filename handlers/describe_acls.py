"""DescribeAcls (key 29). Behaviour: see ``acls``.

Version notes: 1 adds the pattern type, 2 is flexible, 3 adds user resources.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from .acls import refusal
from .call import Call


async def handle(call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    error = refusal(
        request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type
    )
    return error_response(request, error)


def error_response(request: DescribeAclsRequest, error: KafkaError) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error.code, error_message=error.message)
