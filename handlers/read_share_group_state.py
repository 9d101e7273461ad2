"""ReadShareGroupState (key 84): the leader of a partition reads the state of share partitions.

Behaviour: what was never initialized is INVALID_REQUEST. From then on leaders of earlier epochs get FENCED_LEADER_EPOCH; -1
only looks. See ``share_state_requests``.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..share_coordinator.coordinator import Applied
from ..share_coordinator.state import SharePartitionKey, ShareState
from ..wire.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from .call import Call
from .share_state_requests import refusals, results


async def handle(call: Call, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
    coordinator = call.broker.share_coordinator

    def apply(key: SharePartitionKey, data: PartitionData) -> Applied[ShareState]:
        return coordinator.read(key, data.leader_epoch)

    return ReadShareGroupStateResponse(results=await results(call, request, _topic, _partition, apply, _fill))


def error_response(request: ReadShareGroupStateRequest, error: KafkaError) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(results=refusals(request, error, _topic, _partition))


def _topic(topic_id: bytes, partitions: list[PartitionResult]) -> ReadStateResult:
    return ReadStateResult(topic_id=topic_id, partitions=partitions)


def _partition(partition: int) -> PartitionResult:
    return PartitionResult(partition=partition)


def _fill(result: PartitionResult, state: ShareState) -> None:
    result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
    result.state_batches = [StateBatch(**batch._asdict()) for batch in state.batches]
