"""ShareFetch (key 78): records for a member of a share group, which can acknowledge earlier ones in the same request (KIP-932).

Behaviour: sessions are ``share_partitions.sessions``, what is read and the wait ``share_partitions.share_fetch``. The response
has the partitions with records, errors or acknowledgements. It comes when those are stored. Records are sent as slices
of the log. Whether somebody is a member of the group is not checked, as in Kafka. A request that renews locks reads nothing, as
reading may take longer than a lock. Nor does one of a client that has used up its quota (``request_cost``). Without
``share.version`` 1: UNSUPPORTED_VERSION.

Differences from Kafka: a topic id that is not known fails its partitions, not the request; partitions without anything to say are
not named by the first response of a session either.

Version notes: 1 is the first, and has limits in records; 2 adds the acquire mode and renewals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..base.errors import ErrorCode, KafkaError
from ..base.network import total_size
from ..base.wakeup import Wakeup
from ..replication.settings import ReplicationSettings
from ..share_coordinator.state import SharePartitionKey
from ..share_partitions.acquisition import RecordLimits
from ..share_partitions.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from ..share_partitions.share_fetch import Fetched, ShareFetch, ShareFetchLimits, rotated
from ..wire.codec import encode
from ..wire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from .call import Call
from .leader_hints import NotLeaderPartition, add_current_leaders
from .share_acknowledgements import AcknowledgedBatch, acknowledge, check_member, check_readable, stored

_RECORD_LIMIT = 1
_FIRST_RENEW_VERSION = 2
_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_SAID = Sequence[tuple[SharePartitionKey, Sequence[AcknowledgedBatch]]]


async def handle(call: Call, request: ShareFetchRequest) -> ShareFetchResponse:
    group_id, member_id = check_member(call, request.group_id, request.member_id)
    is_renewal = call.version >= _FIRST_RENEW_VERSION and request.is_renew_ack
    if is_renewal and any((request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "with isRenewAck no records are requested: the wait, bytes and records must be 0"
        )
    said = _said(group_id, request)
    session = await _session(call, request, group_id, member_id, said)
    answered = await acknowledge(call, member_id, said, is_renew_ack=is_renewal)
    fetched: list[Fetched] = []
    is_held_up = call.cost is not None and call.cost.is_fetch_used_up()
    try:
        if request.share_session_epoch != FINAL_EPOCH and not is_renewal and not is_held_up:
            fetched = await _fetch(call, request, session)
        if any(each.outcome is not None for each in answered):
            await call.flush()
        errors = await stored(answered)
        if request.share_session_epoch == FINAL_EPOCH:
            call.broker.share_sessions.end(session)
        response = _response(call, group_id, fetched, errors)
        if call.cost is not None and not is_held_up:
            call.cost.count_fetch(total_size(encode(response, call.version)))
        return response
    except BaseException:
        for result in fetched:
            if result.records is not None:
                result.records.release()
        raise


def _said(group_id: str, request: ShareFetchRequest) -> _SAID:
    """What the request acknowledges."""
    return [
        (SharePartitionKey(group_id, topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
        for topic in request.topics
        for partition in topic.partitions
        if partition.acknowledgement_batches
    ]


async def _session(call: Call, request: ShareFetchRequest, group_id: str, member_id: str, said: _SAID) -> ShareSession:
    """The session that the request begins, continues or ends. Raises KafkaError."""
    sessions, epoch = call.broker.share_sessions, request.share_session_epoch
    keys = [
        SharePartitionKey(group_id, topic.topic_id, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if epoch == INITIAL_EPOCH:
        if said:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the first request of a share session acknowledges nothing")
        try:
            session = sessions.begin(group_id, member_id, keys)
        except KafkaError:
            # Or the client would ask again at once.
            await call.flush()
            await Wakeup().wait(request.max_wait_ms / 1000)
            raise
        connection = call.connection
        connection.at_end["share session", group_id, member_id] = lambda: sessions.disconnected(session)
        return session
    session = sessions.find(group_id, member_id)
    if epoch != FINAL_EPOCH:
        session.advance(epoch)
        forgotten = [
            SharePartitionKey(group_id, topic.topic_id, number)
            for topic in request.forgotten_topics_data
            for number in topic.partitions
        ]
        sessions.update(session, keys, forgotten)
    return session


async def _fetch(call: Call, request: ShareFetchRequest, session: ShareSession) -> list[Fetched]:
    broker = call.broker
    most = min(request.max_bytes, broker.config.settings(ReplicationSettings).fetch_max_bytes)
    if call.cost is not None:
        within_quota = call.cost.max_fetch_bytes()
        most = most if within_quota is None else min(most, int(within_quota))
    refused, keys = [], []
    for key in rotated(session.keys, request.share_session_epoch):
        try:
            check_readable(call, key)
        except KafkaError as error:
            refused.append(Fetched(key, error=error))
        else:
            keys.append(key)
    if most <= 0 or request.max_records <= 0 or not keys:
        return refused
    limits = ShareFetchLimits(
        RecordLimits(request.max_records, request.batch_size, request.share_acquire_mode == _RECORD_LIMIT),
        min(request.min_bytes, most),
        most,
        int(broker.share_terms.configured(session.group_id).is_read_committed),
    )
    fetch = ShareFetch(broker.share_partitions, session.member_id, keys, limits, broker.clock.elapsed)
    return [*refused, *await fetch.run(request.max_wait_ms / 1000, call.flush)]


def _response(
    call: Call,
    group_id: str,
    fetched: Iterable[Fetched],
    errors: Mapping[SharePartitionKey, KafkaError | None],
) -> ShareFetchResponse:
    """``errors`` are those of the acknowledgements, by the partitions that have some."""
    partitions: dict[SharePartitionKey, PartitionData] = {}
    for result in fetched:
        partitions[result.key] = _partition(call, result)
    for key, error in errors.items():
        answer = partitions.setdefault(key, PartitionData(partition_index=key.partition, records=b""))
        if error is not None:
            call.fail(error.message)
            answer.acknowledge_error_code, answer.acknowledge_error_message = error.code, error.message
    topics: dict[bytes, ShareFetchableTopicResponse] = {}
    for key, answer in partitions.items():
        topic = topics.setdefault(key.topic_id, ShareFetchableTopicResponse(topic_id=key.topic_id))
        topic.partitions.append(answer)
    elsewhere = [
        NotLeaderPartition("", key.topic_id, key.partition, answer)
        for key, answer in partitions.items()
        if answer.error_code in _ELSEWHERE or answer.acknowledge_error_code in _ELSEWHERE
    ]
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=call.broker.share_terms.configured(group_id).record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=add_current_leaders(call, elsewhere, LeaderIdAndEpoch, NodeEndpoint) if elsewhere else [],
    )


def _partition(call: Call, result: Fetched) -> PartitionData:
    answer = PartitionData(partition_index=result.key.partition, records=b"")
    if result.error is not None:
        call.fail(result.error.message)
        answer.error_code, answer.error_message = result.error.code, result.error.message
    if result.records is not None:
        assert result.partition is not None
        result.partition.bytes_out += result.records.nbytes
        result.partition.counted_fetches += 1
        answer.records = result.records
        answer.acquired_records = [
            AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in result.acquired
        ]
    return answer


def error_response(request: ShareFetchRequest, error: KafkaError) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=error.code, error_message=error.message)
