"""Changes of configs in a cluster of KRaft: what a broker says to them before the active controller does.

Only a broker knows whether it could run with a setting, so it checks those of itself and of all brokers, and refuses them; log
levels concern no other node, and an unknown kind of resource is refused here. The rest goes to the controller, and the client
gets one response with all outcomes.

Model: Kafka's ConfigAdminManager.preprocess.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..base.errors import ErrorCode
from ..wire.schema import replace
from .config_resources import ResourceType

Handle = Callable[[Any, Any], Awaitable[Any]]

_LEFT_TO_THE_CONTROLLER = (ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP)


def checked_first(check: Handle, forward: Handle) -> Handle:
    """``check`` handles AlterConfigs or IncrementalAlterConfigs that only validate; ``forward`` has the controller do them."""

    async def handle(call: Any, request: Any) -> Any:
        own = [resource for resource in request.resources if resource.resource_type not in _LEFT_TO_THE_CONTROLLER]
        if not own:
            return await forward(call, request)
        response = await check(call, replace(request, resources=own, validate_only=True))
        settled = {_key(answer): answer for answer in response.responses if _is_settled(answer)}
        others = [resource for resource in request.resources if _key(resource) not in settled]
        if others:
            response = await forward(call, replace(request, resources=others))
            settled |= {_key(answer): answer for answer in response.responses}
        response.responses = [settled[key] for key in dict.fromkeys(map(_key, request.resources)) if key in settled]
        return response

    return handle


def _is_settled(answer: Any) -> bool:
    return bool(answer.error_code != ErrorCode.NONE or answer.resource_type == ResourceType.BROKER_LOGGER)


def _key(resource: Any) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name
