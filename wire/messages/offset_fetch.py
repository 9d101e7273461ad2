"""OffsetFetch (key 9): reads a group's offsets.

v0  from ZooKeeper
v1  from __consumer_offsets
v2  null topics mean all; an error for the whole response
v3  throttle time
v4  the response is sent before the throttling, not after it
v5  leader epoch (KIP-320)
v7  the client may require offsets that no open transaction may change (KIP-447)
v8  many groups in one request (KIP-709)
v9  member id and epoch of a KIP-848 member
v10 topic ids in place of names
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uuid


@struct
class OffsetFetchRequestTopic(Struct):
    name: string = field("0-7")
    partition_indexes: list[int32] = field("0-7")


@struct
class OffsetFetchRequestTopics(Struct):
    name: string = field("8-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partition_indexes: list[int32] = field("8+")


@struct
class OffsetFetchRequestGroup(Struct):
    group_id: string = field("8+")
    member_id: string | None = field("9+", default=None, ignorable=True)
    member_epoch: int32 = field("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field("8+")


@request(key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchRequest(Message):
    group_id: string = field("0-7")
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7")  # null means all
    groups: list[OffsetFetchRequestGroup] = field("8+")
    require_stable: bool = field("7+")  # UNSTABLE_OFFSET_COMMIT while a transaction is open


@struct
class OffsetFetchResponsePartition(Struct):
    partition_index: int32 = field("0-7")
    committed_offset: int64 = field("0-7")
    committed_leader_epoch: int32 = field("5-7", default=-1, ignorable=True)
    metadata: string | None = field("0-7")
    error_code: int16 = field("0-7")


@struct
class OffsetFetchResponseTopic(Struct):
    name: string = field("0-7")
    partitions: list[OffsetFetchResponsePartition] = field("0-7")


@struct
class OffsetFetchResponsePartitions(Struct):
    partition_index: int32 = field("8+")
    committed_offset: int64 = field("8+")
    committed_leader_epoch: int32 = field("8+", default=-1, ignorable=True)
    metadata: string | None = field("8+")
    error_code: int16 = field("8+")


@struct
class OffsetFetchResponseTopics(Struct):
    name: string = field("8-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field("8+")


@struct
class OffsetFetchResponseGroup(Struct):
    group_id: string = field("8+")
    topics: list[OffsetFetchResponseTopics] = field("8+")
    error_code: int16 = field("8+")


@response(key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+")
class OffsetFetchResponse(Message):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field("0-7")
    error_code: int16 = field("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field("8+")
