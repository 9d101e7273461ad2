"""Administration of a broker in a test, in the broker's loop and without a client."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from ..base.errors import ErrorCode, KafkaError
from ..controller.new_topics import NewTopic
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..handlers.services import Services
from ..security.scram import ScramMechanism, new_credential

_LOADING_SECONDS = 30.0


async def create_topic(
    services: Services, name: str, partitions: int, configs: Mapping[str, str] | None, replication_factor: int = -1
) -> None:
    """Create a topic, at the broker that is the controller. Raises KafkaError."""
    topic = NewTopic(name, partitions, replication_factor, configs=configs or {})
    outcome = (await services.commands.create_topics([topic]))[name]
    if isinstance(outcome, KafkaError):
        raise outcome


async def delete_topic(services: Services, name: str) -> None:
    """Delete a topic with its records, at the broker that is the controller. Raises KafkaError."""
    outcome = (await services.commands.delete_topics([name]))[name]
    if outcome is not None:
        raise outcome


async def add_users(services: Services, users: Mapping[str, str]) -> None:
    """Add SCRAM credentials for users, given as names with passwords."""
    for name, password in users.items():
        made = {mechanism: new_credential(mechanism, password) for mechanism in ScramMechanism}
        await services.commands.change_credentials(name, (), made)


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
