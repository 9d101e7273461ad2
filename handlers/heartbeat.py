"""Heartbeat (key 12): a member shows that it is alive, and learns whether it has to join again.

Version notes: 1 adds the throttle time; 3 the instance id of static members; 4 is flexible.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from .call import Call
from .rights import GROUP, check


async def handle(call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    check(call, Operation.READ, GROUP, request.group_id)
    return await call.broker.groups.heartbeat(request, call.flush)


def error_response(request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)
