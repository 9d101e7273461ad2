"""DeleteTopics (key 20): removes topics.

v1  throttle time
v2  the response is sent before the throttling, not after it
v3  the response may be TOPIC_DELETION_DISABLED
v5  error messages; the response may be THROTTLING_QUOTA_EXCEEDED (KIP-599)
v6  topics by name or by id, in ``topics`` in place of ``topic_names`` (KIP-516)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uuid


@struct
class DeleteTopicState(Struct):
    name: string | None = field("6+", default=None)  # null: by id
    topic_id: uuid = field("6+")


@request(key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsRequest(Message):
    topics: list[DeleteTopicState] = field("6+")
    topic_names: list[string] = field("0-5", ignorable=True)
    timeout_ms: int32 = field()


@struct
class DeletableTopicResult(Struct):
    name: string | None = field(nullable="6+")
    topic_id: uuid = field("6+", ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field("5+", default=None, ignorable=True)


@response(key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+")
class DeleteTopicsResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    responses: list[DeletableTopicResult] = field()
