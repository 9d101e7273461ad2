"""Controlled shutdown of a broker: the controller moves its leaderships to in-sync replicas before it stops.

Clients find the new leaders while this broker still answers them (Kafka: KafkaServer ``controlledShutdown``). If that fails the
broker stops all the same, and its partitions have no leaders until the controller notices. Unlike Kafka's broker it does not wait
for a partition without another live replica.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import trio

from ..base.errors import KafkaError
from ..base.wording import counted
from ..replication.broker_client import PeerUnavailableError
from ..replication.controller_channel import ControllerChannel
from ..replication.metadata_cache import MetadataCache
from ..wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from .settings import BrokerSettings

logger = logging.getLogger(__name__)

_CONTROLLER_SECONDS = 1.0
"""How long to look for a controller that cannot be reached: if another broker can be elected, that takes less."""

_RESPONSE_SECONDS = 10.0
"""For all responses together, without the pauses: a controller that is cut off from the store never answers. Kafka waits 30 s for
each."""


async def run_controlled_shutdown(
    channel: ControllerChannel, metadata: MetadataCache, broker_id: int, broker_epoch: int, settings: BrokerSettings
) -> None:
    """Return once this broker leads nothing that another one could lead, or when that was tried often enough."""
    if not settings.controlled_shutdown_enable:
        return
    pauses = settings.controlled_shutdown_max_retries * settings.controlled_shutdown_retry_backoff_ms / 1000
    with trio.move_on_after(_RESPONSE_SECONDS + pauses) as waiting:
        await _ask_until_nothing_is_left(channel, metadata, broker_id, broker_epoch, settings)
    if waiting.cancelled_caught:
        logger.warning("The leaderships of this broker are not all handed over: the controller takes too long")


async def _ask_until_nothing_is_left(
    channel: ControllerChannel, metadata: MetadataCache, broker_id: int, broker_epoch: int, settings: BrokerSettings
) -> None:
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    attempts = settings.controlled_shutdown_max_retries
    for attempt in range(1, attempts + 1):
        if not any(other != broker_id for other in metadata.broker_ids()):
            return  # there is no broker to hand anything to
        try:
            response: ControlledShutdownResponse = await channel.send(
                request, timeout=_RESPONSE_SECONDS, patience=_CONTROLLER_SECONDS
            )
        except (PeerUnavailableError, KafkaError) as error:
            logger.warning("The leaderships of this broker are not handed over: %s", error)
            return
        left = response.remaining_partitions
        if not response.error_code and not _could_be_taken_over(left, metadata):
            return
        logger.log(
            logging.INFO if attempt < attempts else logging.WARNING,
            "After %d of %d requests to the controller this broker leads %s still%s",
            attempt,
            attempts,
            counted(len(left), "partition"),
            f": error {response.error_code}" if response.error_code else "",
        )
        if attempt < attempts:
            with trio.move_on_after(settings.controlled_shutdown_retry_backoff_ms / 1000):
                await _wait_until_none_could(left, metadata)


async def _wait_until_none_could(left: Sequence[RemainingPartition], metadata: MetadataCache) -> None:
    """Return as soon as asking again would be useless; never where ``left`` is empty, after an error of the controller."""
    await metadata.wait_until(lambda: bool(left) and not _could_be_taken_over(left, metadata))


def _could_be_taken_over(partitions: Sequence[RemainingPartition], metadata: MetadataCache) -> bool:
    """Whether one of them has another replica that may be in sync soon: its broker is alive and not stopping."""
    states = [metadata.partition(each.topic_name, each.partition_index) for each in partitions]
    return any(
        metadata.is_alive(replica)
        for state in states
        if state is not None
        for replica in state.replicas
        if replica != state.leader and replica not in state.offline
    )
