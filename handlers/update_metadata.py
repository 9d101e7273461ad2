"""UpdateMetadata (key 6): the controller tells which brokers are alive and the states of partitions, for clients' requests.

Behaviour: a request for an earlier registration of this broker is answered STALE_BROKER_EPOCH, one of an earlier controller
STALE_CONTROLLER_EPOCH. All brokers are in every request, and of the partitions those that have changed.

Version notes: 0 has one address of each broker, for PLAINTEXT; 1 several, each named by its security protocol; 3 names
listeners; 5 groups partitions by topic; 7 has topic ids (KIP-516).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..controller.zookeeper.replica_requests import apply_update_metadata, security_protocol
from ..wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from ..wire.schema import replace
from .call import Call
from .controller_requests import by_topic, check_broker_epoch

_LISTENERS_FROM = 3
_GROUPED_FROM = 5


async def handle(call: Call, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    check_broker_epoch(call, request.broker_epoch)
    if call.version < _GROUPED_FROM:
        states = [(state.topic_name, state) for state in request.ungrouped_partition_states]
        request = replace(request, topic_states=by_topic(states, UpdateMetadataTopicState))
    if call.version < _LISTENERS_FROM:
        request = replace(request, live_brokers=[_with_listeners(broker) for broker in request.live_brokers])
    return apply_update_metadata(request, call.broker.metadata)


def _with_listeners(broker: UpdateMetadataBroker) -> UpdateMetadataBroker:
    """Name the listeners by their security protocols, which is all that early versions have."""
    endpoints = broker.endpoints or [UpdateMetadataEndpoint(host=broker.v0_host, port=broker.v0_port)]
    named = [replace(endpoint, listener=security_protocol(endpoint.security_protocol)) for endpoint in endpoints]
    return replace(broker, endpoints=named)


def error_response(request: UpdateMetadataRequest, error: KafkaError) -> UpdateMetadataResponse:
    return UpdateMetadataResponse(error_code=error.code)
