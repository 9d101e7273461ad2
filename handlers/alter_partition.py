"""AlterPartition (key 56): a partition's leader tells the controller which replicas are in sync (KIP-497).

Behaviour: only the controller does it (NOT_CONTROLLER), and only for the present registration of the broker that asks
(STALE_BROKER_EPOCH); a partition's error is in its part of the response.

Version notes: 1 has the leader recovery state (KIP-704), 2 names topics by their ids, 3 has the broker epochs of the in-sync
replicas (KIP-903): one that was restarted since is INELIGIBLE_REPLICA; Kafka's controller in ZooKeeper mode does not check
that.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from .call import Call


async def handle(call: Call, request: AlterPartitionRequest) -> AlterPartitionResponse:
    await call.flush()
    return await call.broker.commands.alter_partition(request, call.version)


def error_response(request: AlterPartitionRequest, error: KafkaError) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error.code)
