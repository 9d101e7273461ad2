"""DeleteAcls (key 31). Behaviour: see ``acls``; one answer for each filter.

Version notes: 1 adds the pattern type, 2 is flexible, 3 adds user resources.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from .acls import refusal
from .call import Call


async def handle(call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[_result(_refusal(asked)) for asked in request.filters])


def _refusal(asked: DeleteAclsFilter) -> KafkaError:
    return refusal(asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)


def _result(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.message)


def error_response(request: DeleteAclsRequest, error: KafkaError) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[_result(error) for _ in request.filters])
