"""ControlledShutdown: the move of leadership off a stopping broker (KafkaController.doControlledShutdown)."""

from __future__ import annotations

import logging

from ....base.errors import ErrorCode
from ....base.partitions import NO_BROKER_EPOCH
from ....wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from ..state.context import ControllerContext
from .partition_state_machine import PartitionStateMachine

logger = logging.getLogger(__name__)


async def shut_down(
    context: ControllerContext, leaders: PartitionStateMachine, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    """Move leadership away from the broker as far as possible; the response has what it still leads. Raises StoreError.

    From now on, until it is registered again, the broker may become neither leader nor in-sync replica.
    """
    broker = context.brokers.get(request.broker_id)
    if broker is None:
        return ControlledShutdownResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
    if request.broker_epoch != NO_BROKER_EPOCH and request.broker_epoch < broker.epoch:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    logger.info("Broker %d shuts down", request.broker_id)
    context.shutting_down.add(request.broker_id)
    await leaders.move_leaders_off(request.broker_id)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=key.topic, partition_index=key.partition)
            for key, partition in context.undeleted_partitions()
            if partition.state is not None
            and partition.state.leader == request.broker_id
            and len(partition.assignment.replicas) > 1
        ]
    )
