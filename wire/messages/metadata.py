"""Metadata (key 3): brokers, topics, partitions and their leaders.

v0  an empty list of topics means all; from v1 on null means all, and an empty list none
v1  rack, controller, internal topics
v2  cluster id
v3  throttle time
v4  the client may forbid that the request creates topics
v5  offline replicas (KIP-112)
v6  the response is sent before the throttling, not after it
v7  leader epoch (KIP-320)
v8  authorized operations (KIP-430); from v11 on those of the cluster are in DescribeCluster (KIP-700)
v10 topic ids in the response
v12 topics may be asked for by id, with a null name (KIP-516)
v13 an error for the whole response: REBOOTSTRAP_REQUIRED (KIP-1102)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct, uuid


@struct
class MetadataRequestTopic(Struct):
    topic_id: uuid = field("10+", ignorable=True)
    name: string | None = field(nullable="10+")


@request(key=ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = field(nullable="1+")  # null means all
    allow_auto_topic_creation: bool = field("4+", default=True)  # v0-v3 always allow
    include_cluster_authorized_operations: bool = field("8-10")
    include_topic_authorized_operations: bool = field("8+")


@struct
class MetadataResponseBroker(Struct):
    node_id: int32 = field()
    host: string = field()
    port: int32 = field()
    rack: string | None = field("1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition(Struct):
    error_code: int16 = field()
    partition_index: int32 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: list[int32] = field()
    isr_nodes: list[int32] = field()
    offline_replicas: list[int32] = field("5+", ignorable=True)


@struct
class MetadataResponseTopic(Struct):
    error_code: int16 = field()
    name: string | None = field(nullable="12+")
    topic_id: uuid = field("10+", ignorable=True)
    is_internal: bool = field("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field()
    # bits; the default means not asked for
    topic_authorized_operations: int32 = field("8+", default=-2147483648)


@response(key=ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataResponse(Message):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field()
    cluster_id: string | None = field("2+", default=None, ignorable=True)
    controller_id: int32 = field("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field()
    # bits; the default means not asked for
    cluster_authorized_operations: int32 = field("8-10", default=-2147483648)
    error_code: int16 = field("13+", ignorable=True)
