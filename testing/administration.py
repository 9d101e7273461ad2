"""What an administrator does to a broker, done in its loop without a client."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ..base.errors import KafkaError
from ..controller.config_store import USERS
from ..controller.topics import NewTopic
from ..controller.znodes import sanitized
from ..handlers.services import Services
from ..security.scram import ScramMechanism, new_credential


async def create_topic(
    services: Services, name: str, partitions: int, configs: Mapping[str, str] | None, replication_factor: int = -1
) -> None:
    """Make a topic, at the broker that is the controller. Raises KafkaError."""
    topic = NewTopic(name, partitions, replication_factor, configs=configs or {})
    outcome = (await services.controller.create_topics([topic]))[name]
    if isinstance(outcome, KafkaError):
        raise outcome


async def delete_topic(services: Services, name: str) -> None:
    """Delete a topic and all in it, at the broker that is the controller. Raises KafkaError."""
    outcome = (await services.controller.delete_topics([name]))[name]
    if outcome is not None:
        raise outcome


async def add_users(services: Services, users: Mapping[str, str]) -> None:
    """Let users log in by SCRAM, by names and passwords."""

    def with_credentials(password: str, configs: Mapping[str, str]) -> dict[str, str]:
        made = {each.sasl_name: new_credential(each, password).render() for each in ScramMechanism}
        return {**configs, **made}

    for name, password in users.items():
        await services.configs.change(USERS, sanitized(name), functools.partial(with_credentials, password))


async def expire_session(services: Services, group: str, member: str | None) -> list[str]:
    """End sessions at the broker that is the group's coordinator; see ``Broker.expire_session``. Raises KafkaError."""
    await services.groups.wait_loaded(services.groups.partition_for(group))
    return services.groups.expire_sessions(group, member)


async def do_upkeep(services: Services) -> None:
    """Do what is due by the broker's clock and would otherwise wait for its next round."""
    await services.logs.delete_old_segments()
    await services.groups.expire_offsets()
