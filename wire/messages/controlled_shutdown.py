"""ControlledShutdown (key 7): a broker asks the controller to move its leaders away before it stops. Gone in Kafka 4.

v0  has a request header without client id
v2  broker epoch (KIP-380)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@request(key=ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownRequest(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field("2+", default=-1, ignorable=True)


@struct
class RemainingPartition(Struct):
    topic_name: string = field()
    partition_index: int32 = field()


@response(key=ApiKey.CONTROLLED_SHUTDOWN, versions="0-3", flexible="3+")
class ControlledShutdownResponse(Message):
    error_code: int16 = field()
    remaining_partitions: list[RemainingPartition] = field()  # still led by the broker
