"""AlterReplicaLogDirs (key 34): moves partitions to other log directories of this broker, while they are in use.

Behaviour: the response comes at once, the move follows in the background; DescribeLogDirs shows how far it is. A path that
is no log directory is LOG_DIR_NOT_FOUND, one that has failed KAFKA_STORAGE_ERROR; so is any move while some folder is
offline. Another folder named while a partition is being moved starts the move anew; the folder that the partition is in ends
it. A partition that this broker doesn't have yet is REPLICA_NOT_AVAILABLE, or UNKNOWN_TOPIC_OR_PARTITION where no broker has
it; when it comes it is made in the folder named here. If a partition is named for two folders, the last one counts.

Version notes: 2 is flexible.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from .call import Call


async def handle(call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    moves = call.broker.log_dir_moves
    codes = {}
    for (topic, partition), path in _wanted(request).items():
        code = ErrorCode.NONE
        try:
            moves.alter(topic, partition, path)
        except KafkaError as error:
            code = error.code
        codes[topic, partition] = code
    return _response(codes)


def _wanted(request: AlterReplicaLogDirsRequest) -> dict[tuple[str, int], str]:
    return {
        (topic.name, partition): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for partition in topic.partitions
    }


def _response(codes: dict[tuple[str, int], ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (name, partition), code in codes.items():
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
        topic.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def error_response(request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    return _response(dict.fromkeys(_wanted(request), error.code))
