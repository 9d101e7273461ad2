"""DescribeConfigs (key 32): every setting of topics and of this broker, with its value and where that comes from.

Behaviour: all declared settings are listed, set or not; ``configuration_keys`` (null or empty: all) picks some. A topic's
settings are those of its log with its overrides; a broker's are every property that Ottla uses, read-only if a change takes a
restart. The broker resource without a name stands for what was set for all brokers at run time, and shows only that. Groups and
subscriptions to clients' metrics (KIP-714) have all of their configs, whether there is such a group or not; only a quorum keeps
some that are set. Loggers have no levels: an empty list. A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION, another
broker's id INVALID_REQUEST.

Version notes: 1 replaces the flag "is default" by the source and adds synonyms, 3 types and documentation; 4 is flexible.
"""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..security.entities import CLIENT_METRICS, GROUPS, Entity
from ..wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from .call import Call, NodeCall
from .config_entries import (
    ConfigEntry,
    broker_entries,
    client_metrics_entries,
    default_broker_entries,
    group_entries,
    topic_entries,
)
from .config_resources import ConfigResourceKind, check_broker, check_right, check_topic
from .rights import TOPIC, allowed_names

_RESOURCES_PER_SLICE = 25
"""After so many other requests have a turn: all settings of a topic take about 0.2 ms."""


async def handle(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    await _load_topics(call, request)
    return await described(call, request)


async def described(call: NodeCall, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """The response of a node by what its image says of topics."""
    results = []
    for count, resource in enumerate(request.resources, 1):
        results.append(_describe(call, request, resource))
        if count % _RESOURCES_PER_SLICE == 0:
            await trio.lowlevel.checkpoint()
    return DescribeConfigsResponse(results=results)


async def _load_topics(call: Call, request: DescribeConfigsRequest) -> None:
    """Read what is set on the topics that the client may ask about.

    In ZooKeeper mode only brokers with a replica of a topic are told of the configs that it was made with.
    """
    names = {r.resource_name for r in request.resources if r.resource_type == ConfigResourceKind.TOPIC}
    allowed = allowed_names(call, Operation.DESCRIBE_CONFIGS, TOPIC, names, log_if_denied=False)
    known = [name for name in sorted(allowed) if call.broker.metadata.topic(name) is not None]
    if known:
        await call.flush()
        await call.broker.cluster.refresh_topic_configs(known)


def _describe(
    call: NodeCall, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        wanted = frozenset(resource.configuration_keys or ())
        entries = _entries(call, resource, wanted)
    except KafkaError as error:
        return _result(resource, error)
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_entry(request, entry) for entry in entries if not wanted or entry.name in wanted],
    )


def _entries(call: NodeCall, resource: DescribeConfigsResource, wanted: frozenset[str]) -> list[ConfigEntry]:
    """Those of a topic are not even made if they are not wanted: they are asked for of thousands of topics."""
    node, name = call.node, resource.resource_name
    check_right(call, Operation.DESCRIBE_CONFIGS, resource.resource_type, name)
    match resource.resource_type:
        case ConfigResourceKind.TOPIC:
            check_topic(node, name)
            return topic_entries(node.config, node.metadata.image.topic_config(name), wanted)
        case ConfigResourceKind.BROKER:
            if not name:
                return default_broker_entries(node.config, node.config.parsed())
            check_broker(node, name)
            return broker_entries(node.config, node.config.parsed())
        case ConfigResourceKind.BROKER_LOGGER:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            check_broker(node, name)
            return []
        case ConfigResourceKind.CLIENT_METRICS:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
            return client_metrics_entries(node.metadata.image.configs.get(Entity(CLIENT_METRICS, name), {}))
        case ConfigResourceKind.GROUP:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            return group_entries(node.config, node.metadata.image.configs.get(Entity(GROUPS, name), {}))
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")


def _entry(request: DescribeConfigsRequest, entry: ConfigEntry) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=entry.kind,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _result(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(request: DescribeConfigsRequest, error: KafkaError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_result(resource, error) for resource in request.resources])
