"""IncrementalAlterConfigs (key 44): change some overrides of a topic and leave the others (KIP-339).

Behaviour: SET (0) and DELETE (1, back to the default) go for every setting, APPEND (2) and SUBTRACT (3) for lists such as
cleanup.policy. Each resource succeeds or fails by itself; one that stands in the request twice, or a setting that stands
in a resource twice, is INVALID_REQUEST. What comes out is checked whole: INVALID_CONFIG changes nothing of the resource.
Deleting what is not set is no error; nor is it for a broker's replication throttles, which kafka-reassign-partitions
clears whether they are set or not.

Version notes: 1 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..controller.topic_configs import Change, ConfigChange, apply_changes
from ..log.settings import LogSettings
from ..wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from .call import Call
from .config_changes import REPEATED, change_resource, repeated
from .config_resources import ResourceType

_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


async def handle(call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    twice = repeated((resource.resource_type, resource.resource_name) for resource in request.resources)
    responses = []
    for resource in request.resources:
        error: KafkaError | None = REPEATED
        if (resource.resource_type, resource.resource_name) not in twice:
            error = await _alter(call, resource, validate_only=request.validate_only)
        responses.append(_response(resource, error))
    return IncrementalAlterConfigsResponse(responses=responses)


async def _alter(call: Call, resource: AlterConfigsResource, *, validate_only: bool) -> KafkaError | None:
    settings = call.broker.config.settings(LogSettings)
    try:
        changes = [ConfigChange(c.name, _operation(c.config_operation), c.value) for c in resource.configs]

        def change(overrides: Mapping[str, str]) -> Mapping[str, str | None]:
            return apply_changes(settings, overrides, changes)

        await change_resource(
            call,
            resource.resource_type,
            resource.resource_name,
            [name for name, operation, _ in changes if not _clears_throttle(resource, name, operation)],
            change,
            validate_only=validate_only,
        )
    except KafkaError as error:
        return error
    return None


def _clears_throttle(resource: AlterConfigsResource, name: str, operation: Change) -> bool:
    return resource.resource_type == ResourceType.BROKER and operation is Change.DELETE and name in _THROTTLES


def _operation(code: int) -> Change:
    try:
        return Change(code)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {code}") from None


def _response(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(responses=[_response(resource, error) for resource in request.resources])
