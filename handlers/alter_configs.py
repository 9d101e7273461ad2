"""AlterConfigs (key 33): replace all that was set on a topic, on this broker, or on all brokers.

Behaviour: a setting that is not named goes back to its default, which is why IncrementalAlterConfigs came (KIP-339).
Each resource succeeds or fails by itself; one that stands in the request twice is INVALID_REQUEST. An unknown setting, a
malformed value or settings that contradict each other are INVALID_CONFIG, and nothing of the resource is changed.

Version notes: 2 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from .call import Call
from .config_changes import REPEATED, change_resource, repeated


async def handle(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    twice = repeated((resource.resource_type, resource.resource_name) for resource in request.resources)
    responses = []
    for resource in request.resources:
        error: KafkaError | None = REPEATED
        if (resource.resource_type, resource.resource_name) not in twice:
            error = await _alter(call, request, resource)
        responses.append(_response(resource, error))
    return AlterConfigsResponse(responses=responses)


async def _alter(call: Call, request: AlterConfigsRequest, resource: AlterConfigsResource) -> KafkaError | None:
    def replace(overrides: Mapping[str, str]) -> Mapping[str, str | None]:
        for config in resource.configs:
            if config.value is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for: {config.name}")
        return {config.name: config.value for config in resource.configs}

    try:
        await change_resource(
            call,
            resource.resource_type,
            resource.resource_name,
            [config.name for config in resource.configs],
            replace,
            validate_only=request.validate_only,
        )
    except KafkaError as error:
        return error
    return None


def _response(resource: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else ErrorCode.NONE,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[_response(resource, error) for resource in request.resources])
