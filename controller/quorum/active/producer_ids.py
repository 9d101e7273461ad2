"""Allocation of producer id blocks to brokers (KIP-730; Kafka's ProducerIdControlManager)."""

from __future__ import annotations

from ....base.errors import ErrorCode, KafkaError
from ....wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ....wire.messages.setting_records import ProducerIdsRecord
from .brokers import check_broker_epoch
from .context import OperationContext
from .result import ControllerResult

BLOCK_SIZE = 1000
_HIGHEST = (1 << 63) - 1


def allocate_producer_ids(
    context: OperationContext, request: AllocateProducerIdsRequest
) -> ControllerResult[AllocateProducerIdsResponse]:
    """The next block, for a broker of this epoch.

    Raises KafkaError: STALE_BROKER_EPOCH, and UNKNOWN_SERVER_ERROR when all ids have been given out.
    """
    check_broker_epoch(context, request.broker_id, request.broker_epoch)
    first = max(context.image.next_producer_id, 0)
    if first > _HIGHEST - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    response = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return ControllerResult([(record, 0)], response, is_atomic=False)
