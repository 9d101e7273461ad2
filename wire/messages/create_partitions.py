"""CreatePartitions (key 37)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class CreatePartitionsAssignment(Struct):
    broker_ids: list[int32] = field()


@struct
class CreatePartitionsTopic(Struct):
    name: string = field()
    count: int32 = field()
    assignments: list[CreatePartitionsAssignment] | None = field()


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
