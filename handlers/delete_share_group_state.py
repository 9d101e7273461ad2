"""DeleteShareGroupState (key 86): the state of share partitions is forgotten, as a group's coordinator asks for.

Behaviour: what is not known is no error. See ``share_state_requests``.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..share_coordinator.coordinator import Applied
from ..share_coordinator.state import SharePartitionKey
from ..wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)
from .call import Call
from .share_state_requests import nothing, refusals, results


async def handle(call: Call, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
    coordinator = call.broker.share_coordinator

    def apply(key: SharePartitionKey, data: PartitionData) -> Applied[None]:
        return coordinator.delete(key)

    return DeleteShareGroupStateResponse(results=await results(call, request, _topic, _partition, apply, nothing))


def error_response(request: DeleteShareGroupStateRequest, error: KafkaError) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(results=refusals(request, error, _topic, _partition))


def _topic(topic_id: bytes, partitions: list[PartitionResult]) -> DeleteStateResult:
    return DeleteStateResult(topic_id=topic_id, partitions=partitions)


def _partition(partition: int) -> PartitionResult:
    return PartitionResult(partition=partition)
