"""FindCoordinator (key 10): the broker that coordinates a group or a transactional id.

v1  key type: group or transaction; throttle time and error message
v2  the response is sent before the throttling, not after it
v4  many keys in one request (KIP-699)
v5  the response may be TRANSACTION_ABORTABLE (KIP-890)
v6  share partitions as keys, "group:topic id:partition" (KIP-932)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@request(key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Message):
    key: string = field("0-3")
    key_type: int8 = field("1+")  # 0 group, 1 transaction, 2 share partition
    coordinator_keys: list[string] = field("4+")


@struct
class Coordinator(Struct):
    key: string = field("4+")
    node_id: int32 = field("4+")
    host: string = field("4+")
    port: int32 = field("4+")
    error_code: int16 = field("4+")
    error_message: string | None = field("4+", ignorable=True)


@response(key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    throttle_time_ms: int32 = field("1+", ignorable=True)
    error_code: int16 = field("0-3")
    error_message: string | None = field("1-3", ignorable=True)
    node_id: int32 = field("0-3")
    host: string = field("0-3")
    port: int32 = field("0-3")
    coordinators: list[Coordinator] = field("4+")
