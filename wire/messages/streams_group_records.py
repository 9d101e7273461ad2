"""Records of ``__consumer_offsets`` for streams groups of KIP-1071 (types 17-23).

Current and target assignments both have a struct that Kafka calls TaskIds; that of the current one is ``CurrentTaskIds``.
"""

from ..schema import Message, Struct, field, int8, int16, int32, int64, message, string, struct, uint16


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
class CurrentTaskIds(Struct):
    subtopology_id: string = field()
    partitions: list[int32] = field()
    assignment_epochs: list[int32] | None = field(tag=0)


@message(versions="0", flexible="0+", key=22)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = field()
    previous_member_epoch: int32 = field()
    state: int8 = field()
    active_tasks: list[CurrentTaskIds] = field()
    standby_tasks: list[CurrentTaskIds] = field()
    warmup_tasks: list[CurrentTaskIds] = field()
    active_tasks_pending_revocation: list[CurrentTaskIds] = field()
    standby_tasks_pending_revocation: list[CurrentTaskIds] = field()
    warmup_tasks_pending_revocation: list[CurrentTaskIds] = field()


@message(versions="0", key=23)
class StreamsGroupTopologyKey(Message):
    group_id: string = field("0")


@struct
class TopicConfig(Struct):
    key: string = field()
    value: string = field()


@struct
class TopicInfo(Struct):
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
    state_changelog_topics: list[TopicInfo] = field()
    repartition_sink_topics: list[string] = field()
    repartition_source_topics: list[TopicInfo] = field()
    copartition_groups: list[CopartitionGroup] = field()


@message(versions="0", flexible="0+", key=23)
class StreamsGroupTopologyValue(Message):
    epoch: int32 = field()
    subtopologies: list[Subtopology] = field()
