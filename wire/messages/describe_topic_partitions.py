"""DescribeTopicPartitions (key 75): topics and partitions page by page (KIP-966)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uuid


@struct
class TopicRequest(Struct):
    name: string = field()


@struct
class Cursor(Struct):
    topic_name: string = field()
    partition_index: int32 = field()


@request(key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicRequest] = field()
    response_partition_limit: int32 = field(default=2000)
    cursor: Cursor | None = field(default=None)  # where the page before ended


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int16 = field()
    partition_index: int32 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field(default=-1, ignorable=True)
    replica_nodes: list[int32] = field()
    isr_nodes: list[int32] = field()
    eligible_leader_replicas: list[int32] | None = field(default=None)
    last_known_elr: list[int32] | None = field(default=None)
    offline_replicas: list[int32] = field(ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int16 = field()
    name: string | None = field()
    topic_id: uuid = field(ignorable=True)
    is_internal: bool = field(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field()
    topic_authorized_operations: int32 = field(default=-2147483648)


@response(key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: int32 = field(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field()
    next_cursor: Cursor | None = field(default=None)  # null on the last page
