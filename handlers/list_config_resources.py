"""ListConfigResources (key 74): names of the resources that have settings (KIP-1142).

Behaviour: topics, this cluster's brokers with their loggers, and the groups and subscriptions to clients' metrics that have
configs, which only a quorum keeps.
A type that does not exist is UNSUPPORTED_VERSION, as in Kafka.

Version notes: 0 (then called ListClientMetricsResources) lists client metrics only; 1 lists the types asked for, all of
them when none is named.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base.errors import ErrorCode, KafkaError
from ..security.entities import CLIENT_METRICS, GROUPS, EntityKind
from ..wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from .call import Call
from .config_resources import ConfigResourceKind

_LISTABLE = tuple(kind for kind in ConfigResourceKind if kind is not ConfigResourceKind.UNKNOWN)

_KEPT: dict[int, EntityKind] = {ConfigResourceKind.CLIENT_METRICS: CLIENT_METRICS, ConfigResourceKind.GROUP: GROUPS}


async def handle(call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    wanted = [ConfigResourceKind.CLIENT_METRICS] if call.version == 0 else request.resource_types or _LISTABLE
    for kind in wanted:
        if kind not in _LISTABLE:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"resources of type {kind} are not known")
    resources = [
        ConfigResource(resource_name=name, resource_type=kind) for kind in wanted for name in _names(call, kind)
    ]
    return ListConfigResourcesResponse(config_resources=resources)


def _names(call: Call, kind: int) -> Iterator[str]:
    metadata = call.broker.metadata
    if kind == ConfigResourceKind.TOPIC:
        yield from metadata.topics
    elif kind in (ConfigResourceKind.BROKER, ConfigResourceKind.BROKER_LOGGER):
        yield from map(str, metadata.broker_ids())
    elif kind in _KEPT:
        yield from sorted(str(entity.name) for entity in metadata.image.configs if entity.kind is _KEPT[kind])


def error_response(request: ListConfigResourcesRequest, error: KafkaError) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)
