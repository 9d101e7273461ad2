"""ConsumerGroupHeartbeat (key 68): a member of a consumer group joins, stays, learns its partitions, and leaves (KIP-848).

Behaviour: the response comes at once, whatever others do. See ``group_coordinator.consumer_membership`` for the rules. A topic
that the client may not describe refuses the whole request. So does ``group.version`` 0, with UNSUPPORTED_VERSION.

Version notes: 1 adds the subscription by a regular expression, and members make their ids themselves (KIP-1082).
"""

from __future__ import annotations

import functools

from ..base.errors import ErrorCode, KafkaError
from ..group_coordinator.client import Client
from ..security.acl import Operation
from ..wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from .call import Call
from .consumer_groups import check_enabled
from .rights import GROUP, TOPIC, allowed_names, check, may


async def handle(call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    check_enabled(call)
    check(call, Operation.READ, GROUP, request.group_id)
    named = set(request.subscribed_topic_names or ())
    if allowed_names(call, Operation.DESCRIBE, TOPIC, named) != named:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    client = Client(call.client_id, f"/{call.connection.host}", call.version)
    may_describe = None
    if call.node.authorizer is not None:
        may_describe = functools.partial(may, call, Operation.DESCRIBE, TOPIC, log_if_denied=False)
    return await call.broker.groups.consumer_group_heartbeat(request, client, call.flush, may_describe)


def error_response(request: ConsumerGroupHeartbeatRequest, error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
