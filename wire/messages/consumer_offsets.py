"""Records of __consumer_offsets."""

from ..schema import Message, Struct, field, int8, int16, int32, int64, message, string, struct, uint16, uuid


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
    leader_epoch: int32 = field("3+", default=-1, ignorable=True)
    metadata: string = field()
    commit_timestamp: int64 = field()
    expire_timestamp: int64 = field("1", default=-1, ignorable=True)
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


@message(versions="0", flexible="0+", key=13)
class ShareGroupTargetAssignmentMemberValue(Message):
    topic_partitions: list[TopicPartition] = field()


@message(versions="0", key=14)
class ShareGroupCurrentMemberAssignmentKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class ShareTopicPartitions(Struct):
    topic_id: uuid = field()
    partitions: list[int32] = field()


@message(versions="0", flexible="0+", key=14)
class ShareGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    assigned_partitions: list[ShareTopicPartitions] = field()


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


@message(versions="0", key=16)
class ConsumerGroupRegularExpressionKey(Message):
    group_id: string = field("0")
    regular_expression: string = field("0")


@message(versions="0", flexible="0+", key=16)
class ConsumerGroupRegularExpressionValue(Message):
    topics: list[string] = field()
    version: int64 = field()
    timestamp: int64 = field()


@message(versions="0", key=17)
class StreamsGroupMetadataKey(Message):
    group_id: string = field("0")


@struct
class LastAssignmentConfig(Struct):
    key: string = field()
    value: string = field()


@message(versions="0", flexible="0+", key=17)
class StreamsGroupMetadataValue(Message):
    epoch: int32 = field()
    metadata_hash: int64 = field()
    validated_topology_epoch: int32 = field(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = field(tag=1)


@message(versions="0", key=19)
class StreamsGroupMemberMetadataKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class Endpoint(Struct):
    host: string = field()
    port: uint16 = field()


@struct
class KeyValue(Struct):
    key: string = field()
    value: string = field()


@message(versions="0", flexible="0+", key=19)
class StreamsGroupMemberMetadataValue(Message):
    instance_id: string | None = field()
    rack_id: string | None = field()
    client_id: string = field()
    client_host: string = field()
    rebalance_timeout_ms: int32 = field(default=-1)
    topology_epoch: int32 = field()
    process_id: string = field()
    user_endpoint: Endpoint | None = field(default=None)
    client_tags: list[KeyValue] = field()


@message(versions="0", key=20)
class StreamsGroupTargetAssignmentMetadataKey(Message):
    group_id: string = field("0")


@message(versions="0", flexible="0+", key=20)
class StreamsGroupTargetAssignmentMetadataValue(Message):
    assignment_epoch: int32 = field()
    assignment_timestamp: int64 = field(tag=0, ignorable=True)


@message(versions="0", key=21)
class StreamsGroupTargetAssignmentMemberKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class TaskIds(Struct):
    subtopology_id: string = field()
    partitions: list[int32] = field()


@message(versions="0", flexible="0+", key=21)
class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: list[TaskIds] = field()
    standby_tasks: list[TaskIds] = field()
    warmup_tasks: list[TaskIds] = field()


@message(versions="0", key=22)
class StreamsGroupCurrentMemberAssignmentKey(Message):
    group_id: string = field("0")
    member_id: string = field("0")


@struct
class StreamsTaskIds(Struct):
    subtopology_id: string = field()
    partitions: list[int32] = field()
    assignment_epochs: list[int32] | None = field(tag=0)


@message(versions="0", flexible="0+", key=22)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    active_tasks: list[StreamsTaskIds] = field()
    standby_tasks: list[StreamsTaskIds] = field()
    warmup_tasks: list[StreamsTaskIds] = field()
    active_tasks_pending_revocation: list[StreamsTaskIds] = field()
    standby_tasks_pending_revocation: list[StreamsTaskIds] = field()
    warmup_tasks_pending_revocation: list[StreamsTaskIds] = field()


@message(versions="0", key=23)
class StreamsGroupTopologyKey(Message):
    group_id: string = field("0")


@struct
class TopicConfig(Struct):
    key: string = field()
    value: string = field()


@struct
class StreamsTopicInfo(Struct):
    name: string = field()
    partitions: int32 = field()
    replication_factor: int16 = field()
    topic_configs: list[TopicConfig] = field()


@struct
class CopartitionGroup(Struct):
    source_topics: list[int16] = field()
    source_topic_regex: list[int16] = field()
    repartition_source_topics: list[int16] = field()


@struct
class Subtopology(Struct):
    subtopology_id: string = field()
    source_topics: list[string] = field()
    source_topic_regex: list[string] = field()
    state_changelog_topics: list[StreamsTopicInfo] = field()
    repartition_sink_topics: list[string] = field()
    repartition_source_topics: list[StreamsTopicInfo] = field()
    copartition_groups: list[CopartitionGroup] = field()


@message(versions="0", flexible="0+", key=23)
class StreamsGroupTopologyValue(Message):
    epoch: int32 = field()
    subtopologies: list[Subtopology] = field()
