"""StopReplica (key 5): the controller tells a broker to stop or delete replicas. Gone in Kafka 4.

v0  partitions in one flat list, one flag for all
v1  broker epoch (KIP-380); partitions grouped by topic
v3  leader epoch and delete flag per partition (KIP-570); the response may be FENCED_LEADER_EPOCH
v4  whether the controller is a KRaft controller, during migrations (KIP-866)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class StopReplicaPartitionV0(Struct):
    topic_name: string = field("0")
    partition_index: int32 = field("0")


@struct
class StopReplicaTopicV1(Struct):
    name: string = field("1-2")
    partition_indexes: list[int32] = field("1-2")


@struct
class StopReplicaPartitionState(Struct):
    partition_index: int32 = field("3+")
    leader_epoch: int32 = field("3+", default=-1)
    delete_partition: bool = field("3+")


@struct
class StopReplicaTopicState(Struct):
    topic_name: string = field("3+")
    partition_states: list[StopReplicaPartitionState] = field("3+")


@request(key=ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaRequest(Message):
    controller_id: int32 = field()
    is_kraft_controller: bool = field("4+")
    controller_epoch: int32 = field()
    broker_epoch: int64 = field("1+", default=-1, ignorable=True)
    delete_partitions: bool = field("0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = field("0")
    topics: list[StopReplicaTopicV1] = field("1-2")
    topic_states: list[StopReplicaTopicState] = field("3+")


@struct
class StopReplicaPartitionError(Struct):
    topic_name: string = field()
    partition_index: int32 = field()
    error_code: int16 = field()


@response(key=ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaResponse(Message):
    error_code: int16 = field()
    partition_errors: list[StopReplicaPartitionError] = field()
