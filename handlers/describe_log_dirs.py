"""DescribeLogDirs (key 35): the data folder, and how many bytes each partition takes in it.

Behaviour: null asks for every partition, else those named; one that this broker has no replica of is left out. The lag
is 0: there are no replicas on their way to another folder. A folder that has failed is KAFKA_STORAGE_ERROR.

Version notes: 2 is flexible; 3 adds an error for the whole answer; 4 the folder's total and usable bytes (KIP-827);
5 whether it is cordoned, which it never is.
"""

from __future__ import annotations

import os

from ..base.errors import ErrorCode, KafkaError
from ..log.log_manager import LogManager
from ..wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from .call import Call


async def handle(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    logs = call.broker.logs
    folder = logs.folder
    result = DescribeLogDirsResult(log_dir=os.path.abspath(folder.path))
    if logs.is_offline:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    else:
        result.topics = _topics(logs, request)
        try:
            result.total_bytes, result.usable_bytes = folder.disk.space(folder.path)
        except OSError:
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return DescribeLogDirsResponse(results=[result])


def _topics(logs: LogManager, request: DescribeLogDirsRequest) -> list[DescribeLogDirsTopic]:
    if request.topics is None:
        keys = sorted((log.topic, log.partition) for log in logs.logs())
    else:
        keys = [(topic.topic, partition) for topic in request.topics for partition in topic.partitions]
    topics: dict[str, DescribeLogDirsTopic] = {}
    for name, partition in keys:
        log = logs.get(name, partition)
        if log is not None:
            topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
            topic.partitions.append(DescribeLogDirsPartition(partition_index=partition, partition_size=log.size))
    return list(topics.values())


def error_response(request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error.code)
