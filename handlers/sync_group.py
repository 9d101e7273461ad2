"""SyncGroup (key 14): the leader sends the assignments, each member gets its own.

Behaviour: members wait here until the leader has synced and its assignments are committed.

Version notes: 1 adds the throttle time; 3 the instance id of static members; 4 is flexible; 5 names protocol type and
protocol on both sides (KIP-559), and a request that leaves one out is answered INCONSISTENT_GROUP_PROTOCOL.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from .call import Call
from .rights import GROUP, check

_PROTOCOL_REQUIRED_FROM = 5


async def handle(call: Call, request: SyncGroupRequest) -> SyncGroupResponse:
    check(call, Operation.READ, GROUP, request.group_id)
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if call.version >= _PROTOCOL_REQUIRED_FROM and not names_protocol:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are required")
    return await call.broker.groups.sync_group(request, call.flush)


def error_response(request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)
