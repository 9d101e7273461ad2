"""Config changes in a KRaft cluster: the broker's checks before the active controller handles them.

A resource is refused here where it is named twice, has a config twice or one without a value, or is of an unknown kind. Only a
broker knows whether it could run with a setting, so it checks those of itself and of all brokers. Log levels concern no other
node. The rest goes to the controller, and the client gets one response with the outcomes of all resources, in their order.

Source: Kafka's ConfigAdminManager, ``preprocess`` and ``reassembleIncrementalResponse``. A client without the right to alter
brokers is refused before its settings are looked at, and Kafka's broker looks at them first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from ..base.errors import ErrorCode, KafkaError
from ..controller.configs.topic_configs import ConfigOpType
from ..wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ..wire.schema import replace
from .config_resources import ConfigResourceKind
from .table import ErrorResponse

Handle = Callable[[Any, Any], Awaitable[Any]]

_LEFT_TO_THE_CONTROLLER = (ConfigResourceKind.TOPIC, ConfigResourceKind.CLIENT_METRICS, ConfigResourceKind.GROUP)


def checked_first(check: Handle, refuse: ErrorResponse, forward: Handle) -> Handle:
    """``check`` handles AlterConfigs or IncrementalAlterConfigs that only validate; ``forward`` has the controller do them.

    ``refuse`` makes the response to a request that fails as a whole.
    """

    async def handle(call: Any, request: Any) -> Any:
        settled = _refused(request, refuse)
        own: list[int] = []
        others: list[int] = []
        for number, resource in enumerate(request.resources):
            if number not in settled:
                is_others = resource.resource_type in _LEFT_TO_THE_CONTROLLER
                (others if is_others else own).append(number)
        response = refuse(replace(request, resources=[]), KafkaError(ErrorCode.NONE))
        if own:
            response = await check(call, _part(request, own, validate_only=True))
            for number, answer in zip(own, response.responses, strict=True):
                if answer.error_code == ErrorCode.NONE and answer.resource_type == ConfigResourceKind.BROKER:
                    others.append(number)
                else:
                    settled[number] = answer
        if others:
            response = await forward(call, _part(request, sorted(others)))
            told = {(answer.resource_type, answer.resource_name): answer for answer in response.responses}
            for number in others:
                resource = request.resources[number]
                answer = told.get((resource.resource_type, resource.resource_name))
                settled[number] = answer or _refusal(
                    request, number, refuse, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                )
        response.responses = [settled[number] for number in range(len(request.resources))]
        return response

    return handle


def _part(request: Any, numbers: list[int], *, validate_only: bool | None = None) -> Any:
    """The request with these of its resources."""
    resources = [request.resources[number] for number in numbers]
    is_checked = request.validate_only if validate_only is None else validate_only
    return replace(request, resources=resources, validate_only=is_checked)


def _refused(request: Any, refuse: ErrorResponse) -> dict[int, Any]:
    """The outcomes of resources that need no look at a setting, by their place in the request."""
    is_incremental = isinstance(request, IncrementalAlterConfigsRequest)
    count = Counter((each.resource_type, each.resource_name) for each in request.resources)
    refused = {}
    for number, resource in enumerate(request.resources):
        is_repeated = count[resource.resource_type, resource.resource_name] > 1
        why = (
            "Each resource must appear at most once."
            if is_repeated
            else _fault(resource, is_incremental=is_incremental)
        )
        if why is not None:
            refused[number] = _refusal(request, number, refuse, KafkaError(ErrorCode.INVALID_REQUEST, why))
    return refused


def _refusal(request: Any, number: int, refuse: ErrorResponse, error: KafkaError) -> Any:
    """The outcome of one resource."""
    return refuse(_part(request, [number]), error).responses[0]


def _fault(resource: Any, *, is_incremental: bool) -> str | None:
    """Why a resource is refused, by its form."""
    configs = resource.configs
    if len({each.name for each in configs}) < len(configs):
        return "Error due to duplicate config keys"
    nulls = [
        each.name
        for each in configs
        if each.value is None and not (is_incremental and each.config_operation == ConfigOpType.DELETE)
    ]
    if nulls:
        return f"Null value not supported for : {', '.join(nulls)}"
    if resource.resource_type == ConfigResourceKind.BROKER_LOGGER and not is_incremental:
        return f"Unknown resource type {resource.resource_type}"
    return None
