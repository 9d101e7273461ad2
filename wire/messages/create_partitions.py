"""CreatePartitions (key 37): raises the partition counts of topics (KIP-195).

v1  the response is sent before the throttling, not after it
v3  the response may be THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class CreatePartitionsAssignment(Struct):
    broker_ids: list[int32] = field()


@struct
class CreatePartitionsTopic(Struct):
    name: string = field()
    count: int32 = field()  # the new total
    assignments: list[CreatePartitionsAssignment] | None = field()  # null: the broker places them


@request(key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsRequest(Message):
    topics: list[CreatePartitionsTopic] = field()
    timeout_ms: int32 = field()
    validate_only: bool = field()


@struct
class CreatePartitionsTopicResult(Struct):
    name: string = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


@response(key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Message):
    throttle_time_ms: int32 = field()
    results: list[CreatePartitionsTopicResult] = field()
