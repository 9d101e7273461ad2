"""JoinGroup (key 11): take part in a group's next generation.

Behaviour: the response comes when the rebalance has gathered its members, which takes as long as the slowest one. See
``group_coordinator.membership`` for the rules and ``group_coordinator.rebalance`` for the round.

Version notes: 1 adds the rebalance timeout (before, it is the session timeout); 2 the throttle time; 4 makes a new member
come back with the id it is given (KIP-394); 5 adds static members (KIP-345); 6 is flexible; 7 names the protocol type in
the response and lets the protocol's name be null, before that it is empty (KIP-559); 8 adds the member's reason (KIP-800);
9 tells a leader that has joined again under its instance id not to assign again (KIP-814).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..group_coordinator.client import Client
from ..security.acl import Operation
from ..wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from .call import Call
from .rights import GROUP, check

_NULL_PROTOCOL_NAME_FROM = 7


async def handle(call: Call, request: JoinGroupRequest) -> JoinGroupResponse:
    client = Client(call.client_id, f"/{call.connection.host}", call.version)
    try:
        check(call, Operation.READ, GROUP, request.group_id)
        response = await call.broker.groups.join_group(request, client, call.flush)
    except KafkaError as error:
        response = error_response(request, error)
    if call.version >= _NULL_PROTOCOL_NAME_FROM:
        response.protocol_name = response.protocol_name or None
    else:
        response.protocol_name = response.protocol_name or ""
    return response


def error_response(request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, member_id=request.member_id)
