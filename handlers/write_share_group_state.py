"""WriteShareGroupState (key 85): the leader of a partition has states of records kept.

Behaviour: what was never initialized is INVALID_REQUEST. An older leader epoch is FENCED_LEADER_EPOCH, an older state epoch
FENCED_STATE_EPOCH; -1 is not compared. A start offset of -1 leaves the known one. See ``share_state_requests``.

Version notes: 1 adds the delivery complete count (KIP-1226).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..share_coordinator import state
from ..share_coordinator.coordinator import Applied
from ..share_coordinator.state import SharePartitionKey
from ..wire.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from .call import Call
from .share_state_requests import nothing, refusals, results


async def handle(call: Call, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
    coordinator = call.broker.share_coordinator

    def apply(key: SharePartitionKey, data: PartitionData) -> Applied[None]:
        return coordinator.write(
            key,
            data.state_epoch,
            data.leader_epoch,
            data.start_offset,
            data.delivery_complete_count,
            [
                state.StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
                for batch in data.state_batches
            ],
        )

    return WriteShareGroupStateResponse(results=await results(call, request, _topic, _partition, apply, nothing))


def error_response(request: WriteShareGroupStateRequest, error: KafkaError) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(results=refusals(request, error, _topic, _partition))


def _topic(topic_id: bytes, partitions: list[PartitionResult]) -> WriteStateResult:
    return WriteStateResult(topic_id=topic_id, partitions=partitions)


def _partition(partition: int) -> PartitionResult:
    return PartitionResult(partition=partition)
