"""The shared part of AlterConfigs and IncrementalAlterConfigs: the resources that can be changed, and the changes.

Settings of topics can be changed, and dynamic ones of brokers, on one broker or, without a name, on all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from ..base.errors import ErrorCode, KafkaError
from ..controller.configs.broker_configs import check_broker_overrides
from ..controller.configs.topic_configs import check_overrides
from ..log.settings import LogSettings
from ..security.acl import Operation
from ..security.entities import BROKERS, DEFAULT, TOPICS, Entity, Name
from .call import Call
from .config_resources import ConfigResourceKind, check_broker, check_right, check_topic

Overrides = Mapping[str, str | None]


class Resource(Protocol):
    """A resource in a request."""

    resource_type: int
    resource_name: str


_Resource = TypeVar("_Resource", bound=Resource)
_Answer = TypeVar("_Answer")


async def alter_each(
    resources: Sequence[_Resource], alter: Callable[[_Resource], Awaitable[None]], answer: Callable[..., _Answer]
) -> list[_Answer]:
    """Call ``alter`` for each resource, unless it is named twice; returns the responses, with the KafkaErrors it raised."""
    count = Counter(_key(resource) for resource in resources)
    answers = []
    for resource in resources:
        refused: KafkaError | None = None
        if count[_key(resource)] > 1:
            refused = KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        else:
            try:
                await alter(resource)
            except KafkaError as error:
                refused = error
        answers.append(resource_answer(resource, refused, answer))
    return answers


def _key(resource: Resource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def resource_answer(resource: Resource, refused: KafkaError | None, answer: Callable[..., _Answer]) -> _Answer:
    """The outcome for a resource, as the API's own ``answer``."""
    return answer(
        error_code=refused.code if refused else ErrorCode.NONE,
        error_message=refused.message if refused else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


async def change_resource(
    call: Call,
    resource: Resource,
    names: Sequence[str],
    transform: Callable[[Mapping[str, str]], Overrides],
    *,
    validate_only: bool,
) -> None:
    """Change one resource; ``names`` are the settings that would change. Raises KafkaError."""
    check_right(call, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    name = resource.resource_name
    match resource.resource_type:
        case ConfigResourceKind.TOPIC:
            await _change_topic(call, name, transform, validate_only=validate_only)
        case ConfigResourceKind.BROKER:
            if name:
                check_broker(call.broker, name)
            await _change_broker(call, transform, per_broker=bool(name), validate_only=validate_only)
        case ConfigResourceKind.BROKER_LOGGER:
            check_broker(call.broker, name)
            if names:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {names[0]} does not exist!")
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")


async def _change_topic(
    call: Call, topic: str, transform: Callable[[Mapping[str, str]], Overrides], *, validate_only: bool
) -> None:
    if not topic:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic(call.broker, topic)
    settings = call.broker.config.settings(LogSettings)

    def checked(overrides: Mapping[str, str]) -> dict[str, str]:
        return check_overrides(settings, transform(overrides))

    if validate_only:
        checked(call.broker.metadata.image.topic_config(topic))
    else:
        await call.flush()
        await call.broker.commands.change_config(Entity(TOPICS, topic), checked)


async def _change_broker(
    call: Call, transform: Callable[[Mapping[str, str]], Overrides], *, per_broker: bool, validate_only: bool
) -> None:
    name: Name = str(call.broker.node_id) if per_broker else DEFAULT

    def checked(overrides: Mapping[str, str]) -> dict[str, str]:
        return check_broker_overrides(call.broker.config, transform(overrides), per_broker=per_broker)

    passwords = call.broker.passwords
    if validate_only:
        checked(passwords.decoded(call.broker.metadata.image.broker_config(name)))
    else:
        await call.flush()
        broker = Entity(BROKERS, name)
        await call.broker.commands.change_config(broker, lambda stored: passwords.changed(stored, checked))
