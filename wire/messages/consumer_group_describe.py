"""ConsumerGroupDescribe (key 69): state and members of groups with the consumer protocol (KIP-848).

v1  member type (KIP-1099)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct, uuid


@request(key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Message):
    group_ids: list[string] = field()
    include_authorized_operations: bool = field()


@struct
class TopicPartitions(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
    partitions: list[int32] = field()


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field()


@struct
class Member(Struct):
    member_id: string = field()
    instance_id: string | None = field(default=None)
    rack_id: string | None = field(default=None)
    member_epoch: int32 = field()
    client_id: string = field()
    client_host: string = field()
    subscribed_topic_names: list[string] = field()
    subscribed_topic_regex: string | None = field(default=None)
    assignment: Assignment = field()
    target_assignment: Assignment = field()
    member_type: int8 = field("1+", default=-1, ignorable=True)


@struct
class DescribedGroup(Struct):
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    group_id: string = field()
    group_state: string = field()
    group_epoch: int32 = field()
    assignment_epoch: int32 = field()
    assignor_name: string = field()
    members: list[Member] = field()
    authorized_operations: int32 = field(default=-2147483648)


@response(key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int32 = field()
    groups: list[DescribedGroup] = field()
