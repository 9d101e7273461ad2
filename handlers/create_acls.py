"""CreateAcls (key 30). Behaviour: see ``acls``; one answer for each rule.

Version notes: 1 adds the pattern type, 2 is flexible, 3 adds user resources.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from .acls import refusal
from .call import Call


async def handle(call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_result(_refusal(creation)) for creation in request.creations])


def _refusal(creation: AclCreation) -> KafkaError:
    return refusal(creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type)


def _result(error: KafkaError) -> AclCreationResult:
    return AclCreationResult(error_code=error.code, error_message=error.message)


def error_response(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_result(error) for _ in request.creations])
