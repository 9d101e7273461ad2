"""Records of ``__share_group_state``: snapshots of share partitions, and what has changed since (KIP-932).

A snapshot is the whole state of its share partition, a tombstone of it forgets the share partition. An update has the batches
that have changed since the snapshot before it, whose epoch it names.
"""

from ..schema import Message, Struct, field, int8, int16, int32, int64, message, string, struct, uuid


@struct
class StateBatch(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    delivery_state: int8 = field()  # 0 available, 2 acknowledged, 4 archived
    delivery_count: int16 = field()


@message(versions="0", key=0)
class ShareSnapshotKey(Message):
    group_id: string = field("0")
    topic_id: uuid = field("0")
    partition: int32 = field("0")


@message(versions="0", flexible="0+", key=0)
class ShareSnapshotValue(Message):
    snapshot_epoch: int32 = field()
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()  # -1 when it is not known yet
    delivery_complete_count: int32 = field(default=-1, tag=0)
    create_timestamp: int64 = field()
    write_timestamp: int64 = field()
    state_batches: list[StateBatch] = field()


@message(versions="0", key=1)
class ShareUpdateKey(Message):
    group_id: string = field("0")
    topic_id: uuid = field("0")
    partition: int32 = field("0")


@message(versions="0", flexible="0+", key=1)
class ShareUpdateValue(Message):
    snapshot_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()  # -1 when it has not changed
    delivery_complete_count: int32 = field(default=-1, tag=0)
    state_batches: list[StateBatch] = field()
