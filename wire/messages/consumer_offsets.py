"""Records of ``__consumer_offsets`` for offsets and classic groups (types 0-2).

Type 0 is the first version of a commit's key. The records of newer groups are in ``consumer_group_records``,
``share_group_records`` and ``streams_group_records``; ``coordinator_records`` lists all types.

OffsetCommitValue   v1 has the expiry time, v2 leaves it to the broker's setting (KIP-211), v3 adds the leader epoch,
                    v4 is flexible and adds the topic id
GroupMetadataValue  v1 adds the rebalance timeout, v2 the time of the last state change, v3 instance ids (KIP-345), v4 is flexible
"""

from ..schema import Message, Struct, field, int32, int64, message, string, struct, uuid


@message(versions="0", key=0)
class LegacyOffsetCommitKey(Message):
    group: string = field("0")
    topic: string = field("0")
    partition: int32 = field("0")


@message(versions="0", key=0)
class LegacyOffsetCommitValue(Message):
    offset: int64 = field("0")
    metadata: string = field("0")
    commit_timestamp: int64 = field("0")


@message(versions="0", key=1)
class OffsetCommitKey(Message):
    group: string = field("0")
    topic: string = field("0")
    partition: int32 = field("0")


@message(versions="0-4", flexible="4+", key=1)
class OffsetCommitValue(Message):
    offset: int64 = field()
    leader_epoch: int32 = field("3+", default=-1, ignorable=True)  # -1 unknown
    metadata: string = field()
    commit_timestamp: int64 = field()
    expire_timestamp: int64 = field("1", default=-1, ignorable=True)  # -1: by the retention setting
    topic_id: uuid = field("4+", tag=0, ignorable=True)


@message(versions="0", key=2)
class GroupMetadataKey(Message):
    group: string = field("0")


@struct
class MemberMetadata(Struct):
    member_id: string = field()
    group_instance_id: string | None = field("3+", default=None, ignorable=True)
    client_id: string = field()
    client_host: string = field()
    rebalance_timeout: int32 = field("1+", default=-1, ignorable=True)
    session_timeout: int32 = field()
    subscription: bytes = field()
    assignment: bytes = field()


@message(versions="0-4", flexible="4+", key=2)
class GroupMetadataValue(Message):
    protocol_type: string = field()
    generation: int32 = field()
    protocol: string | None = field()
    leader: string | None = field()
    current_state_timestamp: int64 = field("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field()
