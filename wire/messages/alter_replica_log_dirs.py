"""AlterReplicaLogDirs (key 34): moves replicas between the log folders of one broker (KIP-113).

v1  the response is sent before the throttling, not after it
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, request, response, string, struct


@struct
class AlterReplicaLogDirTopic(Struct):
    name: string = field()
    partitions: list[int32] = field()


@struct
class AlterReplicaLogDir(Struct):
    path: string = field()
    topics: list[AlterReplicaLogDirTopic] = field()


@request(key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = field()


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


@struct
class AlterReplicaLogDirTopicResult(Struct):
    topic_name: string = field()
    partitions: list[AlterReplicaLogDirPartitionResult] = field()


@response(key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int32 = field()
    results: list[AlterReplicaLogDirTopicResult] = field()
