"""AllocateProducerIds (key 67): the controller hands a broker a block of producer ids (KIP-730).

Behaviour: only the controller does it (NOT_CONTROLLER), for a broker that is registered (BROKER_ID_NOT_REGISTERED) under the
epoch it names (STALE_BROKER_EPOCH).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from .call import Call


async def handle(call: Call, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    await call.flush()
    return await call.broker.commands.allocate_producer_ids(request)


def error_response(request: AllocateProducerIdsRequest, error: KafkaError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error.code)
