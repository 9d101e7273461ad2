"""DescribeCluster (key 60): the cluster's id, controller and brokers (KIP-700).

Behaviour: addresses are those of the listener that the client is connected to. This is an endpoint of brokers; a client that
looks for KRaft controllers gets MISMATCHED_ENDPOINT_TYPE.

Version notes: 1 adds the type of endpoint (KIP-919); 2 may ask for fenced brokers, which only a cluster of KRaft has.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..replication.metadata_cache import MetadataCache
from ..wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from .call import Call
from .joining import wait_initialized
from .rights import NOT_ASKED, cluster_operations

_BROKERS, _CONTROLLERS = 1, 2


async def handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        why = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, why)
    if request.endpoint_type != _BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    await wait_initialized(call)
    metadata = call.broker.metadata
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in metadata.nodes(call.connection.listener).values()
        ]
        + (_fenced(metadata, call.connection.listener) if request.include_fenced_brokers else []),
        cluster_authorized_operations=(
            cluster_operations(call) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _fenced(metadata: MetadataCache, listener: str) -> list[DescribeClusterBroker]:
    """Brokers that are registered at a quorum, and not alive."""
    found = []
    for broker_id, broker in metadata.image.quorum_brokers.items():
        endpoint = broker.registration.endpoint(listener)
        if broker.is_fenced and endpoint is not None:
            rack = broker.registration.rack
            found.append(
                DescribeClusterBroker(
                    broker_id=broker_id, host=endpoint.host, port=endpoint.port, rack=rack, is_fenced=True
                )
            )
    return found


def error_response(request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)
