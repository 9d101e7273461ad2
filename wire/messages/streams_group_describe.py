"""StreamsGroupDescribe (key 89): state, members and topology of streams groups (KIP-1071).

v1  description of the topology (KIP-1331), name of the assignor (KIP-1357)
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
    uint16,
)


@request(key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest(Message):
    group_ids: list[string] = field()
    include_authorized_operations: bool = field()
    include_topology_description: bool = field("1+")


@struct
class KeyValue(Struct):
    key: string = field()
    value: string = field()


@struct
class TopicInfo(Struct):
    name: string = field()
    partitions: int32 = field()
    replication_factor: int16 = field()
    topic_configs: list[KeyValue] = field()


@struct
class Subtopology(Struct):
    subtopology_id: string = field()
    source_topics: list[string] = field()
    repartition_sink_topics: list[string] = field()
    state_changelog_topics: list[TopicInfo] = field()
    repartition_source_topics: list[TopicInfo] = field()


@struct
class Topology(Struct):
    epoch: int32 = field()
    subtopologies: list[Subtopology] | None = field(default=None)


@struct
class Endpoint(Struct):
    host: string = field()
    port: uint16 = field()


@struct
class TaskOffset(Struct):
    subtopology_id: string = field()
    partition: int32 = field()
    offset: int64 = field()


@struct
class TaskIds(Struct):
    subtopology_id: string = field()
    partitions: list[int32] = field()


@struct
class Assignment(Struct):
    active_tasks: list[TaskIds] = field()
    standby_tasks: list[TaskIds] = field()
    warmup_tasks: list[TaskIds] = field()


@struct
class Member(Struct):
    member_id: string = field()
    member_epoch: int32 = field()
    instance_id: string | None = field(default=None)
    rack_id: string | None = field(default=None)
    client_id: string = field()
    client_host: string = field()
    topology_epoch: int32 = field()
    process_id: string = field()
    user_endpoint: Endpoint | None = field(default=None)
    client_tags: list[KeyValue] = field()
    task_offsets: list[TaskOffset] = field()
    task_end_offsets: list[TaskOffset] = field()
    assignment: Assignment = field()
    target_assignment: Assignment = field()
    is_classic: bool = field()


@struct
class TopologyDescriptionNode(Struct):
    name: string = field("1+")
    node_type: int8 = field("1+")
    source_topics: list[string] = field("1+")
    sink_topic: string | None = field("1+", default=None)
    stores: list[string] = field("1+")
    successors: list[string] = field("1+")


@struct
class TopologyDescriptionSubtopology(Struct):
    subtopology_id: string = field("1+")
    nodes: list[TopologyDescriptionNode] = field("1+")


@struct
class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field("1+")
    processor: TopologyDescriptionNode = field("1+")


@struct
class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = field("1+")
    global_stores: list[TopologyDescriptionGlobalStore] = field("1+")


@struct
class DescribedGroup(Struct):
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    group_id: string = field()
    group_state: string = field()
    group_epoch: int32 = field()
    assignment_epoch: int32 = field()
    topology: Topology | None = field(default=None)
    members: list[Member] = field()
    authorized_operations: int32 = field(default=-2147483648)
    topology_description: TopologyDescription | None = field("1+", default=None)
    topology_description_status: int8 = field("1+")
    assignor_name: string | None = field("1+", default=None, ignorable=True)


@response(key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int32 = field()
    groups: list[DescribedGroup] = field()
