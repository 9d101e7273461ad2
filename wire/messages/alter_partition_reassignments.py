"""AlterPartitionReassignments (key 45): starts and cancels moves of replicas (KIP-455).

v1  the sender can forbid a change of the replication factor
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class ReassignablePartition(Struct):
    partition_index: int32 = field()
    replicas: list[int32] | None = field(default=None)


@struct
class ReassignableTopic(Struct):
    name: string = field()
    partitions: list[ReassignablePartition] = field()


@request(key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int32 = field(default=60000)
    allow_replication_factor_change: bool = field("1+", default=True)
    topics: list[ReassignableTopic] = field()


@struct
class ReassignablePartitionResponse(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()


@struct
class ReassignableTopicResponse(Struct):
    name: string = field()
    partitions: list[ReassignablePartitionResponse] = field()


@response(key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int32 = field()
    allow_replication_factor_change: bool = field("1+", default=True, ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field()
    responses: list[ReassignableTopicResponse] = field()
