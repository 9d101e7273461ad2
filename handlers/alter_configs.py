"""AlterConfigs (key 33): replace all that was set on a topic, on this broker, or on all brokers.

Behaviour: a setting that is not named goes back to its default; IncrementalAlterConfigs avoids that (KIP-339).
Each resource succeeds or fails by itself; one that is in the request twice is INVALID_REQUEST. An unknown setting, a
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
from .config_changes import alter_each, change_resource, resource_answer


async def handle(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    async def alter(resource: AlterConfigsResource) -> None:
        def replace(overrides: Mapping[str, str]) -> Mapping[str, str | None]:
            for config in resource.configs:
                if config.value is None:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for: {config.name}")
            return {config.name: config.value for config in resource.configs}

        names = [config.name for config in resource.configs]
        await change_resource(call, resource, names, replace, validate_only=request.validate_only)

    return AlterConfigsResponse(responses=await alter_each(request.resources, alter, AlterConfigsResourceResponse))


def error_response(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[resource_answer(resource, error, AlterConfigsResourceResponse) for resource in request.resources]
    )
