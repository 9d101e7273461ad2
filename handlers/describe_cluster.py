"""DescribeCluster (key 60): the cluster's id, controller and brokers (KIP-700).

Behaviour: addresses are those of the listener that the client is connected to. This is an endpoint of brokers; a client that
looks for KRaft controllers gets MISMATCHED_ENDPOINT_TYPE.

Version notes: 1 adds the type of endpoint (KIP-919); 2 may ask for fenced brokers too, of which there are none.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from .call import Call
from .joining import wait_known
from .rights import NOT_ASKED, cluster_operations

_BROKERS, _CONTROLLERS = 1, 2


async def handle(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        why = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, why)
    if request.endpoint_type != _BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    await wait_known(call)
    metadata = call.broker.metadata
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in metadata.nodes(call.connection.listener).values()
        ],
        cluster_authorized_operations=(
            cluster_operations(call) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def error_response(request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)
