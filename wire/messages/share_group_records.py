"""Records of ``__consumer_offsets`` for share groups of KIP-932 (types 10-15)."""

from ..schema import Message, Struct, field, int8, int32, int64, message, string, struct, uuid


@message(versions="0", key=10)
class ShareGroupMemberMetadataKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@message(versions="0", flexible="0+", key=10)
class ShareGroupMemberMetadataValue(Message):
    rack_id: string | None = field()
    client_id: string = field()
    client_host: string = field()
    subscribed_topic_names: list[string] = field()


@message(versions="0", key=11)
class ShareGroupMetadataKey(Message):
    group_id: string = field("0")


@message(versions="0", flexible="0+", key=11)
class ShareGroupMetadataValue(Message):
    epoch: int32 = field()
    metadata_hash: int64 = field()


@message(versions="0", key=12)
class ShareGroupTargetAssignmentMetadataKey(Message):
    group_id: string = field("0")


@message(versions="0", flexible="0+", key=12)
class ShareGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int32 = field()
    assignment_timestamp: int64 = field(tag=0, ignorable=True)


@message(versions="0", key=13)
class ShareGroupTargetAssignmentMemberKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class TopicPartition(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


@message(versions="0", flexible="0+", key=13)
class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = field()


@message(versions="0", key=14)
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


@message(versions="0", flexible="0+", key=14)
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    assigned_partitions: list[TopicPartitions] = field()


@message(versions="0", key=15)
class ShareGroupStatePartitionMetadataKey(Message):
    group_id: string = field("0")


@struct
class TopicPartitionsInfo(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
    partitions: list[int32] = field()


@struct
class TopicInfo(Struct):
    topic_id: uuid = field()
    topic_name: string = field()


@message(versions="0", flexible="0+", key=15)
class ShareGroupStatePartitionMetadataValue(Message):
    initializing_topics: list[TopicPartitionsInfo] = field()
    initialized_topics: list[TopicPartitionsInfo] = field()
    deleting_topics: list[TopicInfo] = field()
