"""ConsumerGroupHeartbeat (key 68): the one request by which a consumer joins, stays in and leaves a group (KIP-848).

A field that has not changed since the last heartbeat is null, -1 or empty.

v1  subscription by regular expression; the client makes its own member id (KIP-1082)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uuid


@struct
class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


@request(key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Message):
    group_id: string = field()
    member_id: string = field()
    member_epoch: int32 = field()  # 0 joins, -1 leaves, -2 leaves as a static member
    instance_id: string | None = field(default=None)
    rack_id: string | None = field(default=None)
    rebalance_timeout_ms: int32 = field(default=-1)  # -1 for no change
    subscribed_topic_names: list[string] | None = field(default=None)  # null for no change
    subscribed_topic_regex: string | None = field("1+", default=None)
    server_assignor: string | None = field(default=None)
    topic_partitions: list[TopicPartitions] | None = field(default=None)  # owned; null for no change


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field()


@response(key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    member_id: string | None = field(default=None)
    member_epoch: int32 = field()
    heartbeat_interval_ms: int32 = field()
    assignment: Assignment | None = field(default=None)  # null for no change
