"""ShareAcknowledge (key 79): a member of a share group acknowledges records, or ends its session (KIP-932).

Behaviour: each partition succeeds or fails by itself, and the response comes when what succeeds is stored. It needs the session
that a ShareFetch has begun; the last request of a session (epoch -1) releases what the member still has. Without
``share.version`` 1: UNSUPPORTED_VERSION.

Version notes: 1 is the first; 2 adds the renewal of locks, and tells how long they last.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..share_coordinator.state import SharePartitionKey
from ..share_partitions.sessions import FINAL_EPOCH, INITIAL_EPOCH
from ..wire.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from .call import Call
from .leader_hints import NotLeaderPartition, add_current_leaders
from .share_acknowledgements import acknowledge, check_member, stored

_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


async def handle(call: Call, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    group_id, member_id = check_member(call, request.group_id, request.member_id)
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a share session is begun by ShareFetch")
    session = call.broker.share_sessions.find(group_id, member_id)
    if epoch != FINAL_EPOCH:
        session.advance(epoch)
    said = [
        (SharePartitionKey(group_id, topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
        for topic in request.topics
        for partition in topic.partitions
    ]
    answered = await acknowledge(call, member_id, said, is_renew_ack=request.is_renew_ack)
    if any(each.outcome is not None for each in answered):
        await call.flush()
    errors = await stored(answered)
    if epoch == FINAL_EPOCH:
        call.broker.share_sessions.end(session)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    elsewhere = []
    for key, error in errors.items():
        answer = PartitionData(partition_index=key.partition)
        if error is not None:
            call.fail(error.message)
            answer.error_code, answer.error_message = error.code, error.message
            if error.code in _ELSEWHERE:
                elsewhere.append(NotLeaderPartition("", key.topic_id, key.partition, answer))
        topic = topics.setdefault(key.topic_id, ShareAcknowledgeTopicResponse(topic_id=key.topic_id))
        topic.partitions.append(answer)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=call.broker.share_terms.configured(group_id).record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=add_current_leaders(call, elsewhere, LeaderIdAndEpoch, NodeEndpoint) if elsewhere else [],
    )


def error_response(request: ShareAcknowledgeRequest, error: KafkaError) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message)
