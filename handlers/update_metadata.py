"""UpdateMetadata (key 6): the controller tells which brokers are alive and the states of partitions, for clients' requests.

Behaviour: a request for an earlier registration of this broker is answered STALE_BROKER_EPOCH, one of an earlier controller
STALE_CONTROLLER_EPOCH. All brokers are in every request, and of the partitions those that have changed.

Version notes: 0 has one address of each broker, for PLAINTEXT; 1 several, each named by its security protocol; 3 names
listeners; 5 groups partitions by topic; 7 has topic ids (KIP-516).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from .call import Call


async def handle(call: Call, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    call.broker.replica_requests.check_broker_epoch(request.broker_epoch)
    return await call.broker.replica_requests.update_metadata(request)


def error_response(request: UpdateMetadataRequest, error: KafkaError) -> UpdateMetadataResponse:
    return UpdateMetadataResponse(error_code=error.code)
