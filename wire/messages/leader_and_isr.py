"""LeaderAndIsr (key 4): the controller tells a broker which replicas it has and which brokers lead them. Gone in Kafka 4.

v1  whether the replica is new; the response may be KAFKA_STORAGE_ERROR
v2  broker epoch (KIP-380); partitions grouped by topic
v3  replicas being added and removed (KIP-455)
v5  topic ids; full or incremental request (KIP-516)
v6  leader recovery state (KIP-704)
v7  whether the controller is a KRaft controller, during migrations (KIP-866)
"""

from ..api_keys import ApiKey
from ..schema import (
    Message,
    Struct,
    field,
    int8,
    int16,
    int32,
    int64,
    request,
    response,
    string,
    struct,
    uuid,
)


@struct
class LeaderAndIsrPartitionState(Struct):
    topic_name: string = field("0-1", ignorable=True)
    partition_index: int32 = field()
    controller_epoch: int32 = field()
    leader: int32 = field()
    leader_epoch: int32 = field()
    isr: list[int32] = field()
    partition_epoch: int32 = field()  # version of the znode
    replicas: list[int32] = field()
    adding_replicas: list[int32] = field("3+", ignorable=True)
    removing_replicas: list[int32] = field("3+", ignorable=True)
    is_new: bool = field("1+", ignorable=True)
    leader_recovery_state: int8 = field("6+")  # 1 after an unclean election


@struct
class LeaderAndIsrTopicState(Struct):
    topic_name: string = field("2+")
    topic_id: uuid = field("5+", ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = field("2+")


@struct
class LeaderAndIsrLiveLeader(Struct):
    broker_id: int32 = field()
    host_name: string = field()
    port: int32 = field()


@request(key=ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrRequest(Message):
    controller_id: int32 = field()
    is_kraft_controller: bool = field("7+")
    controller_epoch: int32 = field()
    broker_epoch: int64 = field("2+", default=-1, ignorable=True)
    type: int8 = field("5+")  # 0 unknown, 1 incremental, 2 full
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = field("0-1")
    topic_states: list[LeaderAndIsrTopicState] = field("2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = field()


@struct
class LeaderAndIsrPartitionError(Struct):
    topic_name: string = field("0-4", ignorable=True)
    partition_index: int32 = field()
    error_code: int16 = field()


@struct
class LeaderAndIsrTopicError(Struct):
    topic_id: uuid = field("5+")
    partition_errors: list[LeaderAndIsrPartitionError] = field("5+")


@response(key=ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrResponse(Message):
    error_code: int16 = field()
    partition_errors: list[LeaderAndIsrPartitionError] = field("0-4")
    topics: list[LeaderAndIsrTopicError] = field("5+")
