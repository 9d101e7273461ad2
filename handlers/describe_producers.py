"""DescribeProducers (key 61): the idempotent producers a partition remembers (KIP-664).

Behaviour: any replica answers, a follower too (``Partition.activeProducerState``), so that differences can be found. A partition
that does not exist has an error of its own; one of an illegal topic name is INVALID_TOPIC_EXCEPTION.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..metadata.rules.topic_names import check_name
from ..security.acl import Operation
from ..wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from .call import Call
from .rights import TOPIC, check


async def handle(call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_describe(call, topic.name, index) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(call: Call, topic: str, index: int) -> PartitionResponse:
    try:
        check(call, Operation.READ, TOPIC, topic)
        check_name(topic)
        partition = call.broker.replicas.partition(topic, index)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer in partition.log.active_producers()
        ],
    )


def error_response(request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )
