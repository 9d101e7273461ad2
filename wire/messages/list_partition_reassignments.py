"""ListPartitionReassignments (key 46): moves of replicas under way (KIP-455)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class ListPartitionReassignmentsTopics(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


@request(key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest(Message):
    timeout_ms: int32 = field(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(default=None)


@struct
class OngoingPartitionReassignment(Struct):
    partition_index: int32 = field()
    replicas: list[int32] = field()
    adding_replicas: list[int32] = field()
    removing_replicas: list[int32] = field()


@struct
class OngoingTopicReassignment(Struct):
    name: string = field()
    partitions: list[OngoingPartitionReassignment] = field()


@response(key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()
    topics: list[OngoingTopicReassignment] = field()
