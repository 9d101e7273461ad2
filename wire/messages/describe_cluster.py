"""DescribeCluster (key 60): brokers and controller of the cluster, without topics (KIP-700).

v1  endpoints of brokers or of controllers, as asked for (KIP-919)
v2  fenced brokers too, if asked for (KIP-1073)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, request, response, string, struct


@request(key=ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = field()
    endpoint_type: int8 = field("1+", default=1)  # 1 brokers, 2 controllers
    include_fenced_brokers: bool = field("2+")


@struct
class DescribeClusterBroker(Struct):
    broker_id: int32 = field()
    host: string = field()
    port: int32 = field()
    rack: string | None = field(default=None)
    is_fenced: bool = field("2+")


@response(key=ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+")
class DescribeClusterResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    endpoint_type: int8 = field("1+", default=1)
    cluster_id: string = field()
    controller_id: int32 = field(default=-1)
    brokers: list[DescribeClusterBroker] = field()
    cluster_authorized_operations: int32 = field(default=-2147483648)
