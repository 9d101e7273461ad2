"""StopReplica (key 5): the controller ends replicas on this broker, and has their logs deleted where it says so.

Behaviour: a request for an earlier registration of this broker is answered STALE_BROKER_EPOCH, one of an earlier controller
STALE_CONTROLLER_EPOCH; else there is an error code for each partition.

Version notes: up to 2 one flag says for all partitions whether they are deleted; 0 lists them one by one, 1 and 2 by topic;
from 3 on each partition has the flag and its leader epoch (KIP-570).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base.errors import KafkaError
from ..controller.zookeeper.replica_requests import apply_stop_replica
from ..wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from ..wire.schema import replace
from .call import Call
from .controller_requests import by_topic, check_broker_epoch

_FLAG_PER_PARTITION_FROM = 3


async def handle(call: Call, request: StopReplicaRequest) -> StopReplicaResponse:
    check_broker_epoch(call, request.broker_epoch)
    if call.version < _FLAG_PER_PARTITION_FROM:
        request = replace(request, topic_states=by_topic(_with_flags(request), StopReplicaTopicState))
    return apply_stop_replica(request, call.broker.replicas, call.broker.metadata)


def _with_flags(request: StopReplicaRequest) -> Iterator[tuple[str, StopReplicaPartitionState]]:
    for topic, number in _named(request):
        yield topic, StopReplicaPartitionState(partition_index=number, delete_partition=request.delete_partitions)


def _named(request: StopReplicaRequest) -> Iterator[tuple[str, int]]:
    for partition in request.ungrouped_partitions:
        yield partition.topic_name, partition.partition_index
    for topic in request.topics:
        for number in topic.partition_indexes:
            yield topic.name, number


def error_response(request: StopReplicaRequest, error: KafkaError) -> StopReplicaResponse:
    return StopReplicaResponse(error_code=error.code)
