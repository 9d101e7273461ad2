"""ListGroups (key 16): the groups this broker coordinates.

Version notes: 1 adds the throttle time; 3 is flexible; 4 filters by state and tells it (KIP-518); 5 does the same with
the type of group (KIP-848), which is always ``classic`` here. Names in filters are taken in any case; unknown ones match
nothing.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from .call import Call


async def handle(call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    groups = await call.broker.groups.list_groups(request.states_filter, request.types_filter, call.flush)
    return ListGroupsResponse(groups=groups)


def error_response(request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)
