"""DeleteGroups (key 42): forget groups that have no members, with all their offsets.

Behaviour: each group is answered for itself, NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND.

Version notes: 2 is flexible; 3 adds a text to the error.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from .call import Call


async def handle(call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=await call.broker.groups.delete_groups(request.groups_names, call.flush))


def error_response(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    results = [
        DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=error.message)
        for group_id in request.groups_names
    ]
    return DeleteGroupsResponse(results=results)
