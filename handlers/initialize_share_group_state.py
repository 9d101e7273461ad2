"""InitializeShareGroupState (key 83): the state of share partitions begins anew, as a group's coordinator asks for.

Behaviour: a state epoch that is older than a known one is FENCED_STATE_EPOCH; -1 is not compared. See ``share_state_requests``.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..share_coordinator.coordinator import Applied
from ..share_coordinator.state import SharePartitionKey
from ..wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionData,
    PartitionResult,
)
from .call import Call
from .share_state_requests import nothing, refusals, results


async def handle(call: Call, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
    coordinator = call.broker.share_coordinator

    def apply(key: SharePartitionKey, data: PartitionData) -> Applied[None]:
        return coordinator.initialize(key, data.state_epoch, data.start_offset)

    return InitializeShareGroupStateResponse(results=await results(call, request, _topic, _partition, apply, nothing))


def error_response(request: InitializeShareGroupStateRequest, error: KafkaError) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(results=refusals(request, error, _topic, _partition))


def _topic(topic_id: bytes, partitions: list[PartitionResult]) -> InitializeStateResult:
    return InitializeStateResult(topic_id=topic_id, partitions=partitions)


def _partition(partition: int) -> PartitionResult:
    return PartitionResult(partition=partition)
