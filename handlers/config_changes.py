"""What AlterConfigs and IncrementalAlterConfigs share: which resource may be changed, and how a topic's overrides are.

Settings of topics can be changed, and those of brokers that are dynamic, on one broker or, without a name, on all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..base.errors import ErrorCode, KafkaError
from ..controller.broker_configs import check_broker_overrides
from ..controller.config_store import BROKERS, DEFAULT_BROKER, TOPICS
from ..controller.topic_configs import check_overrides
from ..log.settings import LogSettings
from .call import Call
from .config_resources import ResourceType, check_broker, check_topic

Overrides = Mapping[str, str | None]


async def change_resource(
    call: Call,
    resource_type: int,
    resource_name: str,
    names: Sequence[str],
    transform: Callable[[Mapping[str, str]], Overrides],
    *,
    validate_only: bool,
) -> None:
    """Change one resource; ``names`` are the settings that would change. Raises KafkaError."""
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    match resource_type:
        case ResourceType.TOPIC:
            await _change_topic(call, resource_name, transform, validate_only=validate_only)
        case ResourceType.BROKER:
            if resource_name:
                check_broker(call.broker, resource_name)
            await _change_broker(call, transform, per_broker=bool(resource_name), validate_only=validate_only)
        case ResourceType.BROKER_LOGGER:
            check_broker(call.broker, resource_name)
            if names:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {names[0]} does not exist!")
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


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
        checked(call.broker.configs.topic_overrides(topic))
    else:
        await call.flush()
        await call.broker.configs.change(TOPICS, topic, checked)


async def _change_broker(
    call: Call, transform: Callable[[Mapping[str, str]], Overrides], *, per_broker: bool, validate_only: bool
) -> None:
    name = str(call.broker.broker_id) if per_broker else DEFAULT_BROKER

    def checked(overrides: Mapping[str, str]) -> dict[str, str]:
        return check_broker_overrides(call.broker.config, transform(overrides), per_broker=per_broker)

    if validate_only:
        checked(call.broker.configs.broker_overrides(name))
    else:
        await call.flush()
        await call.broker.configs.change(BROKERS, name, checked)


def repeated(resources: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    """The (type, name) pairs that stand in a request more than once."""
    return {key for key, count in Counter(resources).items() if count > 1}


REPEATED = KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
