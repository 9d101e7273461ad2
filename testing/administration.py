"""Administration of a broker in a test, in the broker's loop and without a client."""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..handlers.services import Services
from ..share_coordinator.state import SharePartitionKey
from ..share_partitions.led_partition import DeliveryEnd

_LOADING_SECONDS = 30.0


async def expire_session(services: Services, group: str, member: str | None) -> list[str]:
    """End sessions at the broker that is the group's coordinator; see ``Broker.expire_session``.

    Raises KafkaError, also for a group that is still being loaded after ``_LOADING_SECONDS``.
    """
    number = services.groups.partition_for(group)
    if services.metadata.partition(OFFSETS_TOPIC, number) is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"no group {group}")
    with trio.move_on_after(_LOADING_SECONDS):
        await services.groups.wait_loaded(number)
    return services.groups.expire_sessions(group, member)


async def end_deliveries(
    services: Services, how: DeliveryEnd, group: str, topic: str, partition: int, offset: int | None
) -> list[int]:
    """End deliveries of a share group at the leader of the partition; returns when that is stored. Raises KafkaError."""
    led = services.replicas.partition(topic, partition)
    key = SharePartitionKey(group, led.topic_id, partition)
    offsets, outcome = services.share_partitions.end_deliveries(key, how, offset)
    if outcome is not None:
        await outcome.wait()
    return offsets


async def delete_group(services: Services, group: str) -> None:
    """Delete a group at the broker that is its coordinator; see ``Broker.delete_group``. Raises KafkaError."""
    await expire_session(services, group, None)

    async def send_what_is_ready() -> None:
        """Does nothing, because there is no client's connection."""

    (result,) = await services.groups.delete_groups([group], send_what_is_ready)
    if result.error_code:
        raise KafkaError(ErrorCode(result.error_code), result.error_message)


async def do_upkeep(services: Services) -> None:
    """Do now what the broker does periodically: delete old segments, and expire offsets."""
    await services.logs.delete_old_segments()
    await services.groups.expire_offsets()
