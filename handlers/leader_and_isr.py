"""LeaderAndIsr (key 4): the controller says which replicas this broker has, and who leads them.

Behaviour: a request for an earlier registration of this broker is answered STALE_BROKER_EPOCH, one of an earlier controller
STALE_CONTROLLER_EPOCH; else there is an error code for each partition.

Version notes: 0 and 1 name the topic with each partition, 2 groups them by topic; from 5 on topics have ids (KIP-516), by
which the answer names them; 6 says whether a leader was elected uncleanly (KIP-704).
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..controller.zookeeper.replica_requests import apply_leader_and_isr, new_topics
from ..wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from ..wire.schema import replace
from .call import Call
from .controller_requests import by_topic, check_broker_epoch

_GROUPED_FROM = 2
_TOPIC_IDS_FROM = 5


async def handle(call: Call, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    check_broker_epoch(call, request.broker_epoch)
    if call.version < _GROUPED_FROM:
        states = [(state.topic_name, state) for state in request.ungrouped_partition_states]
        request = replace(request, topic_states=by_topic(states, LeaderAndIsrTopicState))
    await call.broker.cluster.refresh_topic_configs(new_topics(request))
    check_broker_epoch(call, request.broker_epoch)  # meanwhile the broker may have been registered again
    response = apply_leader_and_isr(request, call.broker.replicas, call.broker.metadata)
    return response if call.version >= _TOPIC_IDS_FROM else _by_name(request, response)


def _by_name(request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> LeaderAndIsrResponse:
    """The topics of the answer are those of the request, in its order, unless the whole of it was refused."""
    errors = [
        LeaderAndIsrPartitionError(
            topic_name=asked.topic_name, partition_index=error.partition_index, error_code=error.error_code
        )
        for asked, topic in zip(request.topic_states, response.topics, strict=False)
        for error in topic.partition_errors
    ]
    return LeaderAndIsrResponse(error_code=response.error_code, partition_errors=errors)


def error_response(request: LeaderAndIsrRequest, error: KafkaError) -> LeaderAndIsrResponse:
    return LeaderAndIsrResponse(error_code=error.code)
