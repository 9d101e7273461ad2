"""ElectLeaders (key 43): starts leader elections (KIP-183).

v1  preferred or unclean election; an error for the whole response (KIP-460)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class TopicPartitions(Struct):
    topic: string = field()
    partitions: list[int32] = field()


@request(key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest(Message):
    election_type: int8 = field("1+")  # 0 preferred, 1 unclean
    topic_partitions: list[TopicPartitions] | None = field()  # null means all
    timeout_ms: int32 = field(default=60000)


@struct
class PartitionResult(Struct):
    partition_id: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field()


@struct
class ReplicaElectionResult(Struct):
    topic: string = field()
    partition_result: list[PartitionResult] = field()


@response(key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field("1+")
    replica_election_results: list[ReplicaElectionResult] = field()
