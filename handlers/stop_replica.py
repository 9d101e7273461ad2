"""StopReplica (key 5): the controller ends replicas on this broker, and has their logs deleted where it says so.

Behaviour: a request for an earlier registration of this broker is answered STALE_BROKER_EPOCH, one of an earlier controller
STALE_CONTROLLER_EPOCH; else there is an error code for each partition.

Version notes: up to 2 one flag says for all partitions whether they are deleted; 0 lists them one by one, 1 and 2 by topic;
from 3 on each partition has the flag and its leader epoch (KIP-570).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from .call import Call


async def handle(call: Call, request: StopReplicaRequest) -> StopReplicaResponse:
    call.broker.replica_requests.check_broker_epoch(request.broker_epoch)
    return await call.broker.replica_requests.stop_replica(request)


def error_response(request: StopReplicaRequest, error: KafkaError) -> StopReplicaResponse:
    return StopReplicaResponse(error_code=error.code)
