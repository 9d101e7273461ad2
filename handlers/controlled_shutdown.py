"""ControlledShutdown (key 7): a broker that is about to stop has the controller move its leaderships to others.

Behaviour: only the controller does it (NOT_CONTROLLER), and not for an earlier registration of the broker
(STALE_BROKER_EPOCH). The response names the partitions that the broker still leads; it then asks again.

Version notes: 2 has the broker's epoch (KIP-380); 3 is flexible.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from .call import Call


async def handle(call: Call, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
    await call.flush()
    return await call.broker.commands.controlled_shutdown(request)


def error_response(request: ControlledShutdownRequest, error: KafkaError) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(error_code=error.code)
