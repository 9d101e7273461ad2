"""ElectLeaders (key 43): elects preferred replicas again, or a replica that is not in sync (KIP-183, KIP-460).

Behaviour: each partition succeeds or fails by itself. One that has the right leader already is ELECTION_NOT_NEEDED; one that
no replica can lead PREFERRED_LEADER_NOT_AVAILABLE or, for an unclean election, ELIGIBLE_LEADERS_NOT_AVAILABLE. Without a list of
partitions all are meant, and only those that needed an election are in the response. A timeout of 0 or less elects nothing
and is REQUEST_TIMED_OUT.

Version notes: 0 has preferred elections only, and no error for the whole response. 2 is flexible.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..base.presence import while_present
from ..metadata.rules.election import ElectionType
from ..wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from .call import Call


async def handle(call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    kind = _kind(request.election_type)
    keys = _keys(request)
    await call.flush()
    outcome: Mapping[TopicPartition, KafkaError | None] = dict.fromkeys(
        keys or (), KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    )
    with while_present(max(request.timeout_ms, 0) / 1000):
        outcome = await call.broker.commands.elect_leaders(kind, keys)
    if keys is None:
        outcome = {
            key: error
            for key, error in outcome.items()
            if error is None or error.code is not ErrorCode.ELECTION_NOT_NEEDED
        }
    return ElectLeadersResponse(replica_election_results=_results(outcome))


def _kind(number: int) -> ElectionType:
    try:
        return ElectionType(number)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {number}.") from None


def _keys(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    asked = [TopicPartition(topic.topic, number) for topic in request.topic_partitions for number in topic.partitions]
    return list(dict.fromkeys(asked))


def _results(outcome: Mapping[TopicPartition, KafkaError | None]) -> list[ReplicaElectionResult]:
    by_topic: dict[str, ReplicaElectionResult] = {}
    for key, error in outcome.items():
        topic = by_topic.setdefault(key.topic, ReplicaElectionResult(topic=key.topic))
        result = PartitionResult(partition_id=key.partition, error_message=None)
        if error is not None:
            result.error_code, result.error_message = error.code, error.message
        topic.partition_result.append(result)
    return list(by_topic.values())


def error_response(request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    results = _results(dict.fromkeys(_keys(request) or (), error))
    return ElectLeadersResponse(error_code=error.code, replica_election_results=results)
