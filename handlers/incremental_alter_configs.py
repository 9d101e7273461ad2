"""IncrementalAlterConfigs (key 44): change some settings of a topic or of brokers, and leave the others (KIP-339).

Behaviour: SET (0) and DELETE (1, back to the default) go for every setting, APPEND (2) and SUBTRACT (3) for lists such as
cleanup.policy, which may become empty. Each resource succeeds or fails by itself; one that is in the request twice, or a
setting that is in a resource twice, is INVALID_REQUEST. The result is checked as a whole: INVALID_CONFIG changes nothing of
the resource.
Deleting a setting that is not set is no error, not even if it could not be set.

Version notes: 1 is flexible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..base.errors import ErrorCode, KafkaError
from ..base.kafka_property_names import KAFKA_PROPERTY_NAMES
from ..base.settings import Setting
from ..controller.configs.broker_configs import declared_settings
from ..controller.configs.topic_configs import ConfigChange, ConfigOpType, apply_changes, not_of_type_list
from ..controller.configs.unused_configs import UNUSED
from ..log.settings import LogSettings
from ..wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from .call import Call
from .config_changes import alter_each, change_resource, resource_answer
from .config_resources import ConfigResourceKind


async def handle(call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    async def alter(resource: AlterConfigsResource) -> None:
        rules = _rules(call, resource)
        changes = [ConfigChange(c.name, _operation(c.config_operation), c.value) for c in resource.configs]

        def change(overrides: Mapping[str, str]) -> Mapping[str, str | None]:
            return apply_changes(rules.known, overrides, changes, rules.not_a_list)

        names = [name for name, _, _ in changes]
        await change_resource(call, resource, names, change, validate_only=request.validate_only)

    answers = await alter_each(request.resources, alter, AlterConfigsResourceResponse)
    return IncrementalAlterConfigsResponse(responses=answers)


class _Rules(NamedTuple):
    """The settings of a resource by name, and the message about one that is not a list."""

    known: Mapping[str, Setting]
    not_a_list: Callable[[str, ConfigOpType], str]


def _rules(call: Call, resource: AlterConfigsResource) -> _Rules:
    if resource.resource_type == ConfigResourceKind.BROKER:
        known = UNUSED | declared_settings(call.broker.config)

        def not_a_list(name: str, change: ConfigOpType) -> str:
            if name not in known and name not in KAFKA_PROPERTY_NAMES:
                return f"Unknown config name: {name}"
            return f"Config value {change.name.lower()} is not allowed for config key: {name}"

        return _Rules(known, not_a_list)
    return _Rules(LogSettings.topic_settings(), not_of_type_list)


def _operation(code: int) -> ConfigOpType:
    try:
        return ConfigOpType(code)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {code}") from None


def error_response(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[resource_answer(resource, error, AlterConfigsResourceResponse) for resource in request.resources]
    )
