"""DescribeLogDirs (key 35): log folders of a broker and the replicas in them (KIP-113).

v1  the response is sent before the throttling, not after it
v3  an error for the whole response
v4  size of the volume and its free space (KIP-827)
v5  whether the folder is cordoned, so that it gets no new replicas
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class DescribableLogDirTopic(Struct):
    topic: string = field()
    partitions: list[int32] = field()


@request(key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsRequest(Message):
    topics: list[DescribableLogDirTopic] | None = field()  # null means all


@struct
class DescribeLogDirsPartition(Struct):
    partition_index: int32 = field()
    partition_size: int64 = field()
    offset_lag: int64 = field()
    is_future_key: bool = field()


@struct
class DescribeLogDirsTopic(Struct):
    name: string = field()
    partitions: list[DescribeLogDirsPartition] = field()


@struct
class DescribeLogDirsResult(Struct):
    error_code: int16 = field()
    log_dir: string = field()
    topics: list[DescribeLogDirsTopic] = field()
    total_bytes: int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: int64 = field("4+", default=-1, ignorable=True)
    is_cordoned: bool = field("5+", ignorable=True)


@response(key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field()
