"""ListGroups (key 16): the groups this broker coordinates.

Behaviour: all of them for a client that may describe the cluster, else those that it may describe.

Version notes: 1 adds the throttle time; 3 is flexible; 4 filters by state and tells it (KIP-518); 5 does the same with
the type of group (KIP-848). Names in filters are taken in any case; unknown ones match nothing.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from .call import Call
from .rights import CLUSTER, GROUP, allowed_names, may


async def handle(call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    groups = await call.broker.groups.list_groups(request.states_filter, request.types_filter, call.flush)
    if not may(call, Operation.DESCRIBE, CLUSTER, log_if_denied=False):
        names = [group.group_id for group in groups]
        visible = allowed_names(call, Operation.DESCRIBE, GROUP, names, log_if_denied=False)
        groups = [group for group in groups if group.group_id in visible]
    return ListGroupsResponse(groups=groups)


def error_response(request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)
