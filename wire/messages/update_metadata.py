"""UpdateMetadata (key 6): the controller tells brokers the metadata that they return to clients. Gone in Kafka 4.

v1  several endpoints for each broker
v2  rack
v3  listener names
v4  offline replicas (KIP-112)
v5  broker epoch (KIP-380); partitions grouped by topic
v7  topic ids (KIP-516)
v8  whether the controller is a KRaft controller, and full or incremental (KIP-866)
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
class UpdateMetadataPartitionState(Struct):
    topic_name: string = field("0-4", ignorable=True)
    partition_index: int32 = field()
    controller_epoch: int32 = field()
    leader: int32 = field()  # -1 none, -2 topic is being deleted
    leader_epoch: int32 = field()
    isr: list[int32] = field()
    zk_version: int32 = field()  # version of the znode
    replicas: list[int32] = field()
    offline_replicas: list[int32] = field("4+", ignorable=True)


@struct
class UpdateMetadataTopicState(Struct):
    topic_name: string = field("5+")
    topic_id: uuid = field("7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = field("5+")


@struct
class UpdateMetadataEndpoint(Struct):
    port: int32 = field("1+")
    host: string = field("1+")
    listener: string = field("3+", ignorable=True)
    security_protocol: int16 = field("1+")


@struct
class UpdateMetadataBroker(Struct):
    id: int32 = field()
    v0_host: string = field("0", ignorable=True)  # v0 has plaintext only
    v0_port: int32 = field("0", ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = field("1+", ignorable=True)
    rack: string | None = field("2+", ignorable=True)


@request(key=ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataRequest(Message):
    controller_id: int32 = field()
    is_kraft_controller: bool = field("8+")
    type: int8 = field("8+", tag=0)  # 0 unknown, 1 incremental, 2 full
    controller_epoch: int32 = field()
    broker_epoch: int64 = field("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = field("0-4")
    topic_states: list[UpdateMetadataTopicState] = field("5+")
    live_brokers: list[UpdateMetadataBroker] = field()


@response(key=ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataResponse(Message):
    error_code: int16 = field()
