"""AssignReplicasToDirs (key 73): a broker with several log directories says in which a replica is (KIP-858)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, struct, uuid


@struct
class PartitionData(Struct):
    partition_index: int32 = field()


@struct
class TopicData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


@struct
class DirectoryData(Struct):
    id: uuid = field()
    topics: list[TopicData] = field()


@request(key=ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+")
class AssignReplicasToDirsRequest(Message):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    directories: list[DirectoryData] = field()


@struct
class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


@struct
class ResponseTopicData(Struct):
    topic_id: uuid = field()
    partitions: list[ResponsePartitionData] = field()


@struct
class ResponseDirectoryData(Struct):
    id: uuid = field()
    topics: list[ResponseTopicData] = field()


@response(key=ApiKey.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+")
class AssignReplicasToDirsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    directories: list[ResponseDirectoryData] = field()
