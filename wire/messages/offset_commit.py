"""OffsetCommit (key 8): stores a group's offsets.

v1  membership and a commit time per partition
v2  retention time in place of the commit time
v3  throttle time
v4  the response is sent before the throttling, not after it
v5  no retention time (KIP-211)
v6  leader epoch (KIP-320)
v7  static member's instance id (KIP-345)
v9  ``generation_id_or_member_epoch`` may be the epoch of a KIP-848 member; the response may be STALE_MEMBER_EPOCH
v10 topic ids in place of names
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uuid


@struct
class OffsetCommitRequestPartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("6+", default=-1, ignorable=True)
    commit_timestamp: int64 = field("1", default=-1)
    committed_metadata: string | None = field()


@struct
class OffsetCommitRequestTopic(Struct):
    name: string = field("0-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field()


@request(key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitRequest(Message):
    group_id: string = field()
    # -1 without membership
    generation_id_or_member_epoch: int32 = field("1+", default=-1, ignorable=True)
    member_id: string = field("1+", ignorable=True)
    group_instance_id: string | None = field("7+", default=None)
    retention_time_ms: int64 = field("2-4", default=-1, ignorable=True)  # -1 for the broker's setting
    topics: list[OffsetCommitRequestTopic] = field()


@struct
class OffsetCommitResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


@struct
class OffsetCommitResponseTopic(Struct):
    name: string = field("0-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field()


@response(key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+")
class OffsetCommitResponse(Message):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field()
