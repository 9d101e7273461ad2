"""StreamsGroupTopologyDescriptionUpdate (key 93): stores a readable description of a streams topology (KIP-1331)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@struct
class TopologyDescriptionNode(Struct):
    name: string = field()
    node_type: int8 = field()
    source_topics: list[string] = field()
    sink_topic: string | None = field(default=None)
    stores: list[string] = field()
    successors: list[string] = field()


@struct
class TopologyDescriptionSubtopology(Struct):
    subtopology_id: string = field()
    nodes: list[TopologyDescriptionNode] = field()


@struct
class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field()
    processor: TopologyDescriptionNode = field()


@struct
class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = field()
    global_stores: list[TopologyDescriptionGlobalStore] = field()


@request(key=ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    group_id: string = field()
    member_id: string = field()
    topology_epoch: int32 = field()
    topology_description: TopologyDescription = field()


@response(key=ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
