"""ShareGroupHeartbeat (key 76): a member of a share group joins, stays, learns its partitions, and leaves (KIP-932).

Behaviour: the response comes at once, whatever others do. See ``group_coordinator.share_heartbeat`` for the rules. A topic that
the client may not describe refuses the whole request. So does ``share.version`` 0, with UNSUPPORTED_VERSION.

Version notes: 1 is the only one; 0 was of the early access, before Kafka 4.1.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..group_coordinator.client import Client
from ..security.acl import Operation
from ..wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from .call import Call
from .rights import GROUP, TOPIC, allowed_names, check
from .share_groups import check_enabled

_LONGEST_MEMBER_ID = 36
"""A UUID as text."""


async def handle(call: Call, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    check_enabled(call)
    check(call, Operation.READ, GROUP, request.group_id)
    if not 0 < len(request.member_id) <= _LONGEST_MEMBER_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    named = set(request.subscribed_topic_names or ())
    if allowed_names(call, Operation.DESCRIBE, TOPIC, named) != named:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    client = Client(call.client_id, f"/{call.connection.host}", call.version)
    return await call.broker.groups.share_group_heartbeat(request, client, call.flush)


def error_response(request: ShareGroupHeartbeatRequest, error: KafkaError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
