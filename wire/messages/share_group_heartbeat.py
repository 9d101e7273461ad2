"""ShareGroupHeartbeat (key 76): a member joins, stays in and leaves a share group (KIP-932).

v0  early access, before Kafka 4.1
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uuid


@request(key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ShareGroupHeartbeatRequest(Message):
    group_id: string = field()
    member_id: string = field()
    member_epoch: int32 = field()
    rack_id: string | None = field(default=None)
    subscribed_topic_names: list[string] | None = field(default=None)


@struct
class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field()


@response(key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    member_id: string | None = field(default=None)
    member_epoch: int32 = field()
    heartbeat_interval_ms: int32 = field()
    assignment: Assignment | None = field(default=None)
