"""ReadShareGroupStateSummary (key 87): where share partitions are, for a group's coordinator.

Behaviour: of what was never initialized the start offset is -1. The leader epoch is not compared, as in Kafka. See
``share_state_requests``.

Version notes: 1 adds the delivery complete count (KIP-1226).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..share_coordinator.coordinator import Applied
from ..share_coordinator.state import SharePartitionKey
from ..wire.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from .call import Call
from .share_state_requests import refusals, results


async def handle(call: Call, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
    coordinator = call.broker.share_coordinator

    def apply(key: SharePartitionKey, data: PartitionData) -> Applied[tuple[int, int, int, int]]:
        return coordinator.summary(key)

    return ReadShareGroupStateSummaryResponse(results=await results(call, request, _topic, _partition, apply, _fill))


def error_response(request: ReadShareGroupStateSummaryRequest, error: KafkaError) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(results=refusals(request, error, _topic, _partition))


def _topic(topic_id: bytes, partitions: list[PartitionResult]) -> ReadStateSummaryResult:
    return ReadStateSummaryResult(topic_id=topic_id, partitions=partitions)


def _partition(partition: int) -> PartitionResult:
    return PartitionResult(partition=partition)


def _fill(result: PartitionResult, summary: tuple[int, int, int, int]) -> None:
    result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count = summary
