"""LeaderAndIsr (key 4): the controller says which replicas this broker has, and who leads them.

Behaviour: a request for an earlier registration of this broker is answered STALE_BROKER_EPOCH, one of an earlier controller
STALE_CONTROLLER_EPOCH; else there is an error code for each partition.

Version notes: 0 and 1 name the topic with each partition, 2 groups them by topic; from 5 on topics have ids (KIP-516), by
which the response names them; 6 says whether a leader was elected uncleanly (KIP-704).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from .call import Call

_TOPIC_IDS_FROM = 5


async def handle(call: Call, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    response = await call.broker.replica_requests.leader_and_isr(request, is_for_registration=True)
    return response if call.version >= _TOPIC_IDS_FROM else _by_name(request, response)


def _by_name(request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> LeaderAndIsrResponse:
    """The topics of the response are those of the request, in its order, unless the whole of it was refused."""
    named = [topic.topic_name for topic in request.topic_states]
    ungrouped = dict.fromkeys(state.topic_name for state in request.ungrouped_partition_states)
    errors = [
        LeaderAndIsrPartitionError(topic_name=name, partition_index=error.partition_index, error_code=error.error_code)
        for name, topic in zip(named or ungrouped, response.topics, strict=False)
        for error in topic.partition_errors
    ]
    return LeaderAndIsrResponse(error_code=response.error_code, partition_errors=errors)


def error_response(request: LeaderAndIsrRequest, error: KafkaError) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(error_code=error.code)
