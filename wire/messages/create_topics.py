"""CreateTopics (key 19): makes topics.

v1  ``validate_only``; an error message per topic
v2  throttle time
v3  the response is sent before the throttling, not after it
v4  -1 as the number of partitions or replicas means the broker's default (KIP-464)
v5  the response has the topic's partition and replica counts and its configuration (KIP-525)
v6  the response may be THROTTLING_QUOTA_EXCEEDED (KIP-599)
v7  the response has the topic id (KIP-516)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct, uuid


@struct
class CreatableReplicaAssignment(Struct):
    partition_index: int32 = field()
    broker_ids: list[int32] = field()


@struct
class CreatableTopicConfig(Struct):
    name: string = field()
    value: string | None = field()


@struct
class CreatableTopic(Struct):
    name: string = field()
    num_partitions: int32 = field()  # -1 for the broker's default or with assignments
    replication_factor: int16 = field()  # -1 for the broker's default or with assignments
    assignments: list[CreatableReplicaAssignment] = field()
    configs: list[CreatableTopicConfig] = field()


@request(key=ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = field()
    timeout_ms: int32 = field(default=60000)
    validate_only: bool = field("1+")


@struct
class CreatableTopicConfigs(Struct):
    name: string = field("5+")
    value: string | None = field("5+")
    read_only: bool = field("5+")
    config_source: int8 = field("5+", default=-1, ignorable=True)
    is_sensitive: bool = field("5+")


@struct
class CreatableTopicResult(Struct):
    name: string = field()
    topic_id: uuid = field("7+", ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field("1+", ignorable=True)
    topic_config_error_code: int16 = field("5+", tag=0, ignorable=True)
    num_partitions: int32 = field("5+", default=-1, ignorable=True)
    replication_factor: int16 = field("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field("5+", ignorable=True)


@response(key=ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+")
class CreateTopicsResponse(Message):
    throttle_time_ms: int32 = field("2+", ignorable=True)
    topics: list[CreatableTopicResult] = field()
