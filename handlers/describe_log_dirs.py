"""DescribeLogDirs (key 35): the log directories, and how many bytes each partition takes in them.

Behaviour: null asks for every partition, else those named; one that this broker has no replica of is left out. A
partition that moves to another folder is in both, in the new one as a future replica whose lag is the number of records it
lacks; -1 if the present one is offline. Other replicas have lag 0. A folder that has failed is KAFKA_STORAGE_ERROR.

Version notes: 2 is flexible; 3 adds an error for the whole response; 4 the folder's total and usable bytes (KIP-827);
5 whether it is cordoned, which it never is.
"""

from __future__ import annotations

import os

from ..base.errors import ErrorCode, KafkaError
from ..log.log_directory import LogDirectory
from ..log.log_manager import LogManager
from ..log.partition_log import PartitionLog
from ..wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from .call import Call


async def handle(call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    return answer(call.broker.logs, request)


def answer(logs: LogManager, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """What a broker with these logs has to say."""
    asked: set[tuple[str, int]] | None = None
    if request.topics is not None:
        asked = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    return DescribeLogDirsResponse(results=[describe_log_dir(logs, folder, asked) for folder in logs.folders])


def describe_log_dir(
    logs: LogManager, folder: LogDirectory, asked: set[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    """One folder with the partitions of ``asked`` (None: all) that are in it."""
    result = DescribeLogDirsResult(log_dir=os.path.abspath(folder.path))
    if folder.is_offline:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    topics: dict[str, DescribeLogDirsTopic] = {}
    wanted = (log for log in logs.logs_in(folder) if asked is None or (log.topic, log.partition) in asked)
    for log in sorted(wanted, key=lambda log: (log.topic, log.partition)):
        topic = topics.setdefault(log.topic, DescribeLogDirsTopic(name=log.topic))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=log.partition,
                partition_size=log.size,
                offset_lag=_lag(logs, log),
                is_future_key=log.is_future,
            )
        )
    result.topics = list(topics.values())
    try:
        result.total_bytes, result.usable_bytes = folder.disk.space(folder.path)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return result


def _lag(logs: LogManager, log: PartitionLog) -> int:
    if not log.is_future:
        return max(log.high_watermark - log.log_end_offset, 0)
    current = logs.get(log.topic, log.partition)
    return -1 if current is None else current.log_end_offset - log.log_end_offset


def error_response(request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error.code)
