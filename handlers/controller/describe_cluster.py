"""DescribeCluster (key 60): the cluster's id, its controllers, and which of them is active (KIP-919).

Behaviour: addresses are those of the listener that the client is connected to, of controllers that have registered. A client
that looks for brokers gets MISMATCHED_ENDPOINT_TYPE. It takes ALTER on the cluster, where a broker's is for everybody, and a
``metadata.version`` that has registrations of controllers: UNSUPPORTED_VERSION below it, also for who has no right
(ControllerApis, AuthHelper).

Version notes: 0 cannot say which type of node it looks for, so it is refused with INVALID_REQUEST.
"""

from __future__ import annotations

from ...base.errors import ErrorCode, KafkaError
from ...controller.quorum.metadata_version import finalized_level, has_controller_registrations
from ...security.acl import Operation
from ...wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from ..rights import CLUSTER, NOT_ASKED, check, cluster_operations
from .call import ControllerCall

_BROKERS, _CONTROLLERS = 1, 2
_NOBODY = -1


async def handle(call: ControllerCall, request: DescribeClusterRequest) -> DescribeClusterResponse:
    image = call.controller.metadata.image
    if not has_controller_registrations(finalized_level(image.features)):
        why = "Direct-to-controller communication is not supported with the current MetadataVersion."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, why)
    check(call, Operation.ALTER, CLUSTER)
    if request.endpoint_type not in (_BROKERS, _CONTROLLERS):
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE if call.version else ErrorCode.INVALID_REQUEST
        raise KafkaError(code, f"Unsupported endpoint type {request.endpoint_type}")
    if request.endpoint_type != _CONTROLLERS:
        why = "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE if call.version else ErrorCode.INVALID_REQUEST, why)
    found = [
        DescribeClusterBroker(broker_id=controller_id, host=endpoint.host, port=endpoint.port)
        for controller_id, controller in image.quorum_controllers.items()
        for endpoint in controller.endpoints
        if endpoint.listener == call.connection.listener
    ]
    leader_id = call.controller.quorum_node.controller.leader_id
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=call.node.cluster_id,
        controller_id=leader_id if leader_id in {each.broker_id for each in found} else _NOBODY,
        brokers=found,
        cluster_authorized_operations=(
            cluster_operations(call) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def error_response(request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)
