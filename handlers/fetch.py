"""Fetch (key 1): read record batches, waiting for some when there are none.

Behaviour: what is read, within which limits, and when the response waits is ``replication.fetching``. An offset inside a batch
returns the whole batch. A read_committed consumer (isolation level 1) gets the aborted transactions that overlap the records.
One partition's error never fails the others; consumers of a deleted topic wait as others do, or they would ask without a
pause. Records are sent as slices of the log's files. A fetch with a replica's id is a follower's: it reads to the end of the
log, and tells the leader how far it is. Where ``replica.selector.class`` says so, the leader tells a consumer which replica in
its rack to read from (``replication.read_replica``). A fetch beyond its client's quota gets an empty response (``request_cost``).

Differences from Kafka: a response ends with a whole batch, and bytes that are left go to the next partition (Kafka sends a part
of a batch, which clients cannot use). A negative limit counts as 0 and an isolation level that does not exist is
INVALID_REQUEST (Kafka: UNKNOWN_SERVER_ERROR). A topic that was deleted is UNKNOWN_TOPIC_ID by its id, in a session too, where
Kafka uses the name it knew.

Version notes: 4 is the first without old formats and adds the isolation level; 5 the log start offset; 7 fetch sessions; 9
the leader epoch check; 10 allows zstd (older versions get UNSUPPORTED_COMPRESSION_TYPE only from a broker that converts;
Ottla returns what is stored); 11 lets consumers read from followers (KIP-392); 12 is flexible and detects diverging epochs;
13 names topics by id; 15 moves the replica id into a tagged field and adds its broker epoch; 16 names the leader and its address
when this broker does not lead (KIP-951); 17-18 are for KRaft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..base.errors import ErrorCode, KafkaError
from ..base.network import total_size
from ..log.segment import SegmentSlice
from ..replication.delayed_fetch import DelayedFetch, FetchedPartition
from ..replication.fetch_session import FetchSession, PartitionKey, update_session
from ..replication.fetching import FetchReads, FollowerId, refused_partition
from ..replication.read_replica import RACK_AWARE_SELECTOR, ConsumerRack
from ..replication.settings import ReplicationSettings
from ..security.acl import Operation
from ..wire.codec import encode
from ..wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from .call import Call
from .leader_hints import NotLeaderPartition, add_current_leaders
from .request_cost import RequestCost
from .rights import CLUSTER, TOPIC, may

_FINAL_EPOCH = -1
_INITIAL_EPOCH = 0
_NO_REPLICA = -1
_FIRST_SESSION_VERSION = 7
_FIRST_RACK_VERSION = 11
_FIRST_TOPIC_ID_VERSION = 13
_FIRST_HINT_VERSION = 16
_SIZE_OF_LENGTH = 4
_REFUSED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID)
SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


async def handle(call: Call, request: FetchRequest) -> FetchResponse | None:
    if request.isolation_level not in (0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"isolation level {request.isolation_level}")
    by_id = call.version >= _FIRST_TOPIC_ID_VERSION
    follower = _follower(request)
    sessions = call.broker.fetch_sessions
    session: FetchSession | None = None
    if request.session_epoch in (_FINAL_EPOCH, _INITIAL_EPOCH):
        # A full fetch ends the session that it names, whether it begins another one or not (Kafka's FetchManager).
        sessions.close(request.session_id)
        news = DelayedFetch(is_followers=follower is not None)
        partitions: dict[PartitionKey, FetchedPartition] = {}
        update_session(request, by_id, partitions, news)
    else:
        session = sessions.resume(request, by_id)
        if session is None:
            return FetchResponse()
        news, partitions = session.news, session.partitions
    try:
        reads, early = await _read(call, request, follower, news, partitions, session)
        if early is not None and early.response is not None:
            # Even if there was no room for it: the session has noted it as sent, so a second one would lack its news.
            return None if early.is_sent else early.response
        is_held_up = call.cost is not None and follower is None and _is_throttled(call, call.cost, reads, session)
        if is_held_up:
            return _throttled_response(reads, session)
        # A full fetch lists every partition, even where it begins a session: the client knows nothing of them yet.
        told = partitions.values() if session is None else None
        is_new = request.session_epoch == _INITIAL_EPOCH and call.version >= _FIRST_SESSION_VERSION
        # Only now is it known what the client may read; one that may read nothing must not take up a session.
        if is_new and (call.broker.authorizer is None or not _is_all_refused(reads)):
            session = sessions.create(by_id, partitions, news)
        response = _response(reads, told, session)
    except BaseException:
        for state in partitions.values():
            state.on_change(0)  # what was read is not sent, so the session's next fetch has to read it again
        raise
    finally:
        # Without a session nothing else takes these out of the partitions' lists of fetches.
        if session is None and news.is_watching:
            for state in partitions.values():
                state.leave()
    if reads.failure is not None:
        call.fail(reads.failure)
        if call.version >= _FIRST_HINT_VERSION:
            response.node_endpoints = add_current_leaders(
                call, _led_otherwise(response), LeaderIdAndEpoch, NodeEndpoint
            )
    return response


async def _read(
    call: Call,
    request: FetchRequest,
    follower: FollowerId | None,
    news: DelayedFetch,
    partitions: dict[PartitionKey, FetchedPartition],
    session: FetchSession | None,
) -> tuple[FetchReads, _EarlyAnswer | None]:
    """Read the partitions with news, and again after a wait if there was too little; by then the response may be sent."""
    broker = call.broker
    settings = broker.config.settings(ReplicationSettings)
    most = min(request.max_bytes, settings.fetch_max_bytes)
    if call.cost is not None:
        most = _most_within_quota(call.cost, follower, most)
    news.read_committed = request.isolation_level == 1 and follower is None
    or_follower = follower is None and call.version >= _FIRST_RACK_VERSION
    rack = None
    if or_follower and request.rack_id and settings.replica_selector_class == RACK_AWARE_SELECTOR:
        rack = ConsumerRack(request.rack_id, broker.metadata.nodes(call.connection.listener))
    authorizer = broker.authorizer
    rights = None if authorizer is None else (authorizer.version, call.connection.principal, call.connection.host)
    # A partition at rest is not read, so whatever else decides what the client gets has to wake all of them when it changes.
    news.begin((rights, news.read_committed, or_follower), partitions.values())
    by_id = call.version >= _FIRST_TOPIC_ID_VERSION
    reads = FetchReads(
        broker.replicas,
        broker.metadata,
        news,
        by_id,
        follower,
        request.min_bytes,
        most,
        or_follower,
        rack,
        broker.clock.elapsed,
    )
    if authorizer is not None:
        reads.may_read = _may_read(call, follower)
    await reads.read_all()
    if call.activity is not None and follower is None:
        call.activity.fetched = partitions.values()
    if not reads.enough and request.max_wait_ms > 0 and _is_any_found(reads, partitions):
        early = None
        # Not for an observer, which gets the parts of the response: they are gone once it was sent early. Nor with a quota: the
        # response carries the throttle time, which is known only after the handler.
        if session is not None and call.cost is None and call.may_suspend and call.observer is None:
            early = _EarlyAnswer(call, reads, session)
        await reads.wait_for_more(request.max_wait_ms / 1000, call.flush, None if early is None else early.offer)
        return reads, early
    return reads, None


class _EarlyAnswer:
    """The response to a fetch that waits, made in the step that ends its wait."""

    __slots__ = ("_call", "_reads", "_session", "is_sent", "response")

    def __init__(self, call: Call, reads: FetchReads, session: FetchSession) -> None:
        self._call, self._reads, self._session = call, reads, session
        self.response: FetchResponse | None = None
        """None where it is left to the fetch's own task."""
        self.is_sent = False

    def offer(self) -> None:
        self._call.early_responses.append(self._make)

    def _make(self) -> None:
        reads = self._reads
        try:
            if reads.read_early() and reads.failure is None:
                self.response = _response(reads, None, self._session)
                assert self._call.send_early is not None
                self.is_sent = self._call.send_early(self.response)
        except Exception:
            for state in self._session.partitions.values():
                state.on_change(0)  # a bug must not hide records: the next fetch reads everything
            raise


def _is_any_found(reads: FetchReads, partitions: dict[PartitionKey, FetchedPartition]) -> bool:
    """Whether a partition is here and may be read, so that there is something to wait for."""
    return len(partitions) > len(reads.results) or any(state.partition is not None for state in reads.results)


def _follower(request: FetchRequest) -> FollowerId | None:
    """Which broker replicates with this fetch; None for a consumer."""
    state = request.replica_state
    broker_id, epoch = (request.replica_id, -1) if state is None else (state.replica_id, state.replica_epoch)
    return FollowerId(broker_id, epoch) if broker_id >= 0 else None


def _most_within_quota(cost: RequestCost, follower: FollowerId | None, most: int) -> int:
    """How many bytes may be read at most: for a consumer, not so many that each response would be throttled."""
    if follower is not None:
        cost.exempt()
        return most
    within_quota = cost.max_fetch_bytes()
    return most if within_quota is None else min(most, int(within_quota))


def _is_throttled(call: Call, cost: RequestCost, reads: FetchReads, session: FetchSession | None) -> bool:
    return cost.is_fetch_throttled(lambda: _response_size(reads, call.version, is_news_only=session is not None))


def _response_size(reads: FetchReads, version: int, *, is_news_only: bool) -> int:
    """The size that the response would have, without its header (FetchResponse ``sizeOf``)."""
    topics: dict[tuple[str, bytes], FetchableTopicResponse] = {}
    for state, result in reads.results.items():
        if not is_news_only or result.records or _is_news(state, result):
            name = state.topic, state.topic_id
            topic = topics.setdefault(name, FetchableTopicResponse(topic=state.topic, topic_id=state.topic_id))
            topic.partitions.append(result)
    return _SIZE_OF_LENGTH + total_size(encode(FetchResponse(responses=list(topics.values())), version))


def _throttled_response(reads: FetchReads, session: FetchSession | None) -> FetchResponse:
    """The empty response to a fetch beyond a quota: a session stays as it was, and one that would be new is not made."""
    for state in reads.results:
        state.on_change(0)  # a partition that was put to rest would keep its news to itself
    reads.release()
    return FetchResponse() if session is None else FetchResponse(session_id=session.session_id)


def _is_all_refused(reads: FetchReads) -> bool:
    """Whether every partition asked for is unknown, or one that the client may not read."""
    return all(result.error_code in _REFUSED for result in reads.results.values())


def _may_read(call: Call, follower: FollowerId | None) -> Callable[[str], bool]:
    """A function that tells whether the client may fetch a topic; a follower may fetch all or none."""
    if follower is not None:
        is_broker = may(call, Operation.CLUSTER_ACTION, CLUSTER)
        return lambda topic: is_broker
    return lambda topic: may(call, Operation.READ, TOPIC, topic)


def _led_otherwise(response: FetchResponse) -> list[NotLeaderPartition]:
    """The partitions that this broker does not lead, or leads under another epoch than the client knows."""
    return [
        NotLeaderPartition(topic.topic, topic.topic_id, result.partition_index, result)
        for topic in response.responses
        for result in topic.partitions
        if result.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    ]


def _response(
    reads: FetchReads, told: Iterable[FetchedPartition] | None, session: FetchSession | None
) -> FetchResponse:
    """The response about the partitions ``told``, or where that is None about those with news; it notes what the client knows.

    ``session`` is the one that it begins or continues.
    """
    if told is None:
        told = [state for state, result in reads.results.items() if result.records or _is_news(state, result)]
    topics: dict[tuple[str, bytes], FetchableTopicResponse] = {}
    changed = reads.news.changed
    for state in told:
        result = reads.results[state]
        if result.records:
            _count(reads, state, result.records)
            # To the end of the order: a response that is full would otherwise have the same partitions each time.
            changed.pop(state, None)
            changed[state] = None
        state.sent_high_watermark = result.high_watermark
        state.sent_last_stable_offset = result.last_stable_offset
        state.sent_log_start_offset = result.log_start_offset
        state.sent_error = result.error_code
        name = state.topic, state.topic_id
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchableTopicResponse(topic=state.topic, topic_id=state.topic_id)
        topic.partitions.append(result)
    session_id = 0 if session is None else session.session_id
    return FetchResponse(session_id=session_id, responses=list(topics.values()))


def _count(reads: FetchReads, state: FetchedPartition, records: object) -> None:
    partition = state.partition
    assert partition is not None
    assert isinstance(records, SegmentSlice)
    if reads.follower is not None:
        partition.counters.bytes_out += records.nbytes
        if reads.follower.broker_id in partition.adding:
            partition.counters.reassignment_bytes_out += records.nbytes
        if partition.log.settings.leader_replication_throttled_replicas:
            reads.count_throttled(partition, records.nbytes)
    else:
        partition.bytes_out += records.nbytes


def _is_news(state: FetchedPartition, result: PartitionData) -> bool:
    return (
        result.error_code != 0
        or state.sent_error != 0
        or result.high_watermark != state.sent_high_watermark
        or result.last_stable_offset != state.sent_last_stable_offset
        or result.log_start_offset != state.sent_log_start_offset
        or result.preferred_read_replica != _NO_REPLICA
        or result.diverging_epoch is not None
    )


def error_response(request: FetchRequest, error: KafkaError) -> FetchResponse:
    if error.code in SESSION_ERRORS:
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        error_code=error.code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[refused_partition(asked.partition, error) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )
