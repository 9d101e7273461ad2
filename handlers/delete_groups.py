"""DeleteGroups (key 42): forget groups that have no members, with all their offsets.

Behaviour: each group succeeds or fails by itself, with NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND.

Version notes: 2 is flexible; 3 adds a text to the error.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from .call import Call
from .rights import GROUP, refusal, split


async def handle(call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    allowed, refused = split(call, Operation.DELETE, GROUP, request.groups_names, str)
    results = await call.broker.groups.delete_groups(allowed, call.flush)
    return DeleteGroupsResponse(results=results + [_failed(group_id, refusal(GROUP)) for group_id in refused])


def error_response(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[_failed(group_id, error) for group_id in request.groups_names])


def _failed(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=error.message)
