"""DeleteShareGroupOffsets (key 92): a share group without members forgets how far it has come in some topics (KIP-932).

Behaviour: each topic succeeds or fails by itself; one without offsets is UNKNOWN_TOPIC_OR_PARTITION. Without ``share.version`` 1:
UNSUPPORTED_VERSION.

Version notes: 0 is the only one.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ..wire.schema import replace
from .call import Call
from .rights import GROUP, TOPIC, check, refusal, split
from .share_groups import check_enabled


async def handle(call: Call, request: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    check_enabled(call)
    check(call, Operation.DELETE, GROUP, request.group_id)
    allowed, refused = split(call, Operation.READ, TOPIC, request.topics, lambda topic: topic.topic_name)
    response = await call.broker.groups.delete_share_group_offsets(replace(request, topics=allowed), call.flush)
    error = refusal(TOPIC)
    response.responses += [
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, error_code=error.code, error_message=error.message
        )
        for topic in refused
    ]
    return response


def error_response(request: DeleteShareGroupOffsetsRequest, error: KafkaError) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
