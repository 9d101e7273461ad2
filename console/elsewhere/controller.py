"""Which node is the controller.

With a ZooKeeper Metadata says so. In KRaft mode it names any broker, which passes requests on (KIP-590), and the controller is
the leader of the quorum, which brokers of that mode tell (KIP-595).
"""

from __future__ import annotations

from ...base.errors import ErrorCode, KafkaError
from ...wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from .cluster_client import ClusterClient

_LOG = "__cluster_metadata"
_UNKNOWN = -1


async def controller_of(client: ClusterClient, named_by_metadata: int) -> int:
    """Its id; -1 where the console's user may not know it. Raises OSError, KafkaError."""
    request = DescribeQuorumRequest(topics=[TopicData(topic_name=_LOG, partitions=[PartitionData(partition_index=0)])])
    try:
        response: DescribeQuorumResponse = await client.ask_any(request)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return named_by_metadata
    partitions = [each for topic in response.topics for each in topic.partitions if not each.error_code]
    return partitions[0].leader_id if partitions and not response.error_code else _UNKNOWN
