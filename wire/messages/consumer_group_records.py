"""Records of ``__consumer_offsets`` for consumer groups of KIP-848 (types 3-8 and 16).

In Kafka 4.1 a hash in the group's own record replaced partition metadata (4) (KIP-1101).
"""

from ..schema import Message, Struct, field, int8, int32, int64, message, string, struct, uuid


@message(versions="0", key=3)
class ConsumerGroupMetadataKey(Message):
    group_id: string = field("0")


@message(versions="0", flexible="0+", key=3)
class ConsumerGroupMetadataValue(Message):
    epoch: int32 = field()
    metadata_hash: int64 = field(tag=0)


@message(versions="0", key=4)
class ConsumerGroupPartitionMetadataKey(Message):
    group_id: string = field("0")


@struct
class PartitionMetadata(Struct):
    partition: int32 = field()
    racks: list[string] = field()


@struct
class TopicMetadata(Struct):
    topic_id: uuid = field()
    topic_name: string = field()
    num_partitions: int32 = field()
    partition_metadata: list[PartitionMetadata] = field()


@message(versions="0", flexible="0+", key=4)
class ConsumerGroupPartitionMetadataValue(Message):
    topics: list[TopicMetadata] = field()


@message(versions="0", key=5)
class ConsumerGroupMemberMetadataKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class ClassicProtocol(Struct):
    name: string = field()
    metadata: bytes = field()


@struct
class ClassicMemberMetadata(Struct):
    session_timeout_ms: int32 = field()
    supported_protocols: list[ClassicProtocol] = field()


@message(versions="0", flexible="0+", key=5)
class ConsumerGroupMemberMetadataValue(Message):
    instance_id: string | None = field()
    rack_id: string | None = field()
    client_id: string = field()
    client_host: string = field()
    subscribed_topic_names: list[string] = field()
    subscribed_topic_regex: string | None = field()
    rebalance_timeout_ms: int32 = field(default=-1)
    server_assignor: string | None = field()
    classic_member_metadata: ClassicMemberMetadata | None = field(nullable="0+", tag=0)


@message(versions="0", key=6)
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    group_id: string = field("0")


@message(versions="0", flexible="0+", key=6)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int32 = field()
    assignment_timestamp: int64 = field(tag=0, ignorable=True)


@message(versions="0", key=7)
class ConsumerGroupTargetAssignmentMemberKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class TopicPartition(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


@message(versions="0", flexible="0+", key=7)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = field()


@message(versions="0", key=8)
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class TopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()
    assignment_epochs: list[int32] | None = field(tag=0)


@message(versions="0", flexible="0+", key=8)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    assigned_partitions: list[TopicPartitions] = field()
    partitions_pending_revocation: list[TopicPartitions] = field()


@message(versions="0", key=16)
class ConsumerGroupRegularExpressionKey(Message):
    group_id: string = field("0")
    regular_expression: string = field("0")


@message(versions="0", flexible="0+", key=16)
class ConsumerGroupRegularExpressionValue(Message):
    topics: list[string] = field()
    version: int64 = field()
    timestamp: int64 = field()
