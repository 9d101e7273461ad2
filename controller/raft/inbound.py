"""Requests received by a Raft node, and their responses (Kafka's ``KafkaRaftClient.handle…Request``).

The checks of each come in this order: the cluster, the partition, what the request says, its epoch, then a change of state, then
the voter for whom it is meant. Only a leader of the same epoch accepts what is for the leader.
"""

from __future__ import annotations

from typing import Any

from ...base.errors import ErrorCode, KafkaError
from ...log.metadata_snapshots import BOOTSTRAP_ID, MetadataSnapshotId
from ...wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ...wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ...wire.messages.describe_quorum import DescribeQuorumRequest
from ...wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ...wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from ...wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ...wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ...wire.messages.update_raft_voter import UpdateRaftVoterRequest
from ...wire.messages.vote import VoteRequest, VoteResponse
from ...wire.schema import ZERO_UUID, Message
from . import messages, voter_changes
from .description import describe_quorum
from .effects import LogRead, Respond, SnapshotRead
from .election import Prospective, Unattached, successor_backoff_ms
from .election_file import NOBODY
from .events import RequestReceived
from .follower import RaftFollower
from .leader import PendingFetch, RaftLeader
from .log_outline import Divergence
from .metadata_log import TOPIC, TOPIC_ID
from .quorum_state import QuorumState
from .transitions import maybe_transition
from .voter_set import Endpoints, ListenerEndpoint, ReplicaKey


def handle_request(quorum: QuorumState, event: RequestReceived, now_ms: float) -> None:
    request = event.request
    response: Message | None
    if isinstance(request, FetchRequest):
        _handle_fetch(quorum, event, request, now_ms)
        return
    if isinstance(request, FetchSnapshotRequest):
        _handle_fetch_snapshot(quorum, event, request, now_ms)
        return
    if isinstance(request, VoteRequest):
        response = _vote(quorum, event, request, now_ms)
    elif isinstance(request, BeginQuorumEpochRequest):
        response = _begin_quorum_epoch(quorum, event, request, now_ms)
    elif isinstance(request, EndQuorumEpochRequest):
        response = _end_quorum_epoch(quorum, event, request, now_ms)
    elif isinstance(request, DescribeQuorumRequest):
        response = describe_quorum(quorum, request, now_ms, event.wall_ms, event.version)
    else:
        response = _change_voters(quorum, event, request, now_ms)
    if response is not None:
        quorum.emit(Respond(event.request_id, response))


def _topic_error(quorum: QuorumState, cluster_id: str | None, topics: list[Any]) -> ErrorCode:
    """Of a request whose topics have a name, and partitions with an index."""
    if cluster_id is not None and cluster_id != quorum.identity.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    names = [(topic.topic_name, partition.partition_index) for topic in topics for partition in topic.partitions]
    return ErrorCode.NONE if names == [(TOPIC, 0)] else ErrorCode.INVALID_REQUEST


def _voter_error(quorum: QuorumState, replica_id: int, epoch: int) -> ErrorCode:
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if replica_id < 0 else ErrorCode.NONE


def _leader_error(quorum: QuorumState, epoch: int) -> ErrorCode:
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(quorum.state, RaftLeader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE if quorum.shutdown_deadline_ms is None else ErrorCode.BROKER_NOT_AVAILABLE


def _own_id_error(quorum: QuorumState, replica_id: int) -> ErrorCode:
    """A leader does not fetch: another node has its id by mistake, and must not count for it."""
    return ErrorCode.UNKNOWN_SERVER_ERROR if replica_id == quorum.key.node_id else ErrorCode.NONE


def _is_for_this(quorum: QuorumState, voter_id: int, directory_id: bytes) -> bool:
    """Whether a request is meant for this voter: before version 1 it does not say for whom."""
    if voter_id < 0:
        return True
    return voter_id == quorum.key.node_id and directory_id in (ZERO_UUID, quorum.key.directory_id)


# --- elections --------------------------------------------------------------------------------------------------------


def _vote(quorum: QuorumState, event: RequestReceived, request: VoteRequest, now_ms: float) -> VoteResponse:
    error = _topic_error(quorum, request.cluster_id, request.topics)
    if error:
        return VoteResponse(error_code=error)
    asked = request.topics[0].partitions[0]
    epoch, is_pre_vote = asked.replica_epoch, asked.pre_vote
    # A candidate has raised the epoch, so its log ends in an earlier one; a pre-vote raises none.
    is_illegal = asked.last_offset_epoch > epoch if is_pre_vote else asked.last_offset_epoch >= epoch
    if asked.last_offset < 0 or asked.last_offset_epoch < 0 or is_illegal:
        error = ErrorCode.INVALID_REQUEST
    else:
        error = _voter_error(quorum, asked.replica_id, epoch)
    is_granted = False
    if not error:
        if epoch > quorum.epoch:
            # Before the vote is considered, and granted or not: in the new epoch this node has not voted yet.
            quorum.become_unattached(epoch, NOBODY, now_ms)
        if _is_for_this(quorum, request.voter_id, asked.voter_directory_id):
            candidate = ReplicaKey(asked.replica_id, asked.replica_directory_id)
            log_end = (asked.last_offset_epoch, asked.last_offset)
            may_grant = quorum.state.may_grant(candidate, is_up_to_date(quorum, log_end), is_pre_vote)
            # Another node with the own id would count the vote that this node gives to itself.
            is_granted = may_grant and candidate.node_id != quorum.key.node_id
            if is_granted and not is_pre_vote:
                # Persisted before the response goes: the candidate must not count a vote that a crash makes this node forget.
                _note_vote(quorum, candidate, now_ms)
        else:
            error = ErrorCode.INVALID_VOTER_KEY
    return messages.vote_response(quorum.known_leader(event.listener), error, is_granted)


def is_up_to_date(quorum: QuorumState, end: tuple[int, int]) -> bool:
    """Whether a candidate's log ends where the own one does, or later; ``end`` is (epoch, offset).

    What is committed is in the logs of a majority, so a candidate without it finds no majority that votes for it.
    """
    return end >= quorum.log.end


def _note_vote(quorum: QuorumState, candidate: ReplicaKey, now_ms: float) -> None:
    state = quorum.state
    if isinstance(state, Unattached | Prospective) and state.voted is None:
        state.voted = candidate
        # The candidate gets the time of an election before this node stands itself.
        if quorum.may_become_candidate:
            state.deadline_ms = quorum.election_deadline(now_ms)
        quorum.persist()


def _begin_quorum_epoch(
    quorum: QuorumState, event: RequestReceived, request: BeginQuorumEpochRequest, now_ms: float
) -> BeginQuorumEpochResponse:
    error = _topic_error(quorum, request.cluster_id, request.topics)
    if error:
        return BeginQuorumEpochResponse(error_code=error)
    named = request.topics[0].partitions[0]
    error = _voter_error(quorum, named.leader_id, named.leader_epoch)
    if not error:
        endpoints = _leader_endpoints(quorum, request, named.leader_id)
        maybe_transition(quorum, named.leader_id, named.leader_epoch, endpoints, now_ms)
        if not _is_for_this(quorum, request.voter_id, named.voter_directory_id):
            error = ErrorCode.INVALID_VOTER_KEY
    return messages.begin_quorum_epoch_response(quorum.known_leader(event.listener), error)


def _end_quorum_epoch(
    quorum: QuorumState, event: RequestReceived, request: EndQuorumEpochRequest, now_ms: float
) -> EndQuorumEpochResponse:
    error = _topic_error(quorum, request.cluster_id, request.topics)
    if error:
        return EndQuorumEpochResponse(error_code=error)
    named = request.topics[0].partitions[0]
    error = _voter_error(quorum, named.leader_id, named.leader_epoch)
    if not error:
        endpoints = _leader_endpoints(quorum, request, named.leader_id)
        maybe_transition(quorum, named.leader_id, named.leader_epoch, endpoints, now_ms)
        state = quorum.state
        if isinstance(state, RaftFollower) and state.leader_id == named.leader_id:
            successors = [
                ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in named.preferred_candidates
            ] or [ReplicaKey(node_id) for node_id in named.preferred_successors]
            backoff = successor_backoff_ms(successors, quorum.key, quorum.times.election_backoff_max_ms)
            # Sooner than the fetch timeout: the leader is gone, and its successors stand in the order that it has named.
            state.deadline_ms = now_ms + backoff
    return messages.end_quorum_epoch_response(quorum.known_leader(event.listener), error)


def _leader_endpoints(
    quorum: QuorumState, request: BeginQuorumEpochRequest | EndQuorumEpochRequest, leader_id: int
) -> Endpoints:
    named = tuple(ListenerEndpoint(each.name, each.host, each.port) for each in request.leader_endpoints)
    return named or quorum.voters.endpoints(leader_id)


# --- fetches ----------------------------------------------------------------------------------------------------------


def _handle_fetch(quorum: QuorumState, event: RequestReceived, request: FetchRequest, now_ms: float) -> None:
    names = [(topic.topic_id, each.partition) for topic in request.topics for each in topic.partitions]
    error = ErrorCode.NONE
    if request.cluster_id is not None and request.cluster_id != quorum.identity.cluster_id:
        error = ErrorCode.INCONSISTENT_CLUSTER_ID
    elif names not in ([(TOPIC_ID, 0)], [(ZERO_UUID, 0)]):
        error = ErrorCode.INVALID_REQUEST
    if error:
        quorum.emit(Respond(event.request_id, FetchResponse(error_code=error)))
        return
    asked = request.topics[0].partitions[0]
    if (
        request.max_wait_ms < 0
        or asked.fetch_offset < 0
        or asked.last_fetched_epoch < 0
        or asked.last_fetched_epoch > asked.current_leader_epoch
    ):
        error = ErrorCode.INVALID_REQUEST
    else:
        error = _leader_error(quorum, asked.current_leader_epoch)
    replica_id = request.replica_id if request.replica_state is None else request.replica_state.replica_id
    error = error or _own_id_error(quorum, replica_id)
    state = quorum.state
    if error or not isinstance(state, RaftLeader):
        quorum.emit(Respond(event.request_id, _fetch_error(quorum, error, event.listener)))
        return
    # Counted before the response, which has the high watermark that this fetch may move. A log that diverges does not count.
    if quorum.log.check_fetch(asked.fetch_offset, asked.last_fetched_epoch) is None:
        _note_fetch(quorum, state, ReplicaKey(replica_id, asked.replica_directory_id), asked.fetch_offset, now_ms)
    waiting = PendingFetch(event.request_id, request, event.listener, asked.fetch_offset, now_ms + request.max_wait_ms)
    respond = _fetch_respond(quorum, state, waiting)
    partition = respond.response.responses[0].partitions[0]  # type: ignore[attr-defined]
    # A follower that knows a lower high watermark hears of the present one now: nothing may move it again for long.
    is_news = partition.diverging_epoch or partition.snapshot_id or partition.high_watermark > asked.high_watermark
    if respond.read is not None or is_news or request.max_wait_ms == 0:
        quorum.emit(respond)
    else:
        state.waiting.append(waiting)


def _note_fetch(quorum: QuorumState, leading: RaftLeader, key: ReplicaKey, offset: int, now_ms: float) -> None:
    """A replica has all below ``offset``, a voter on stable storage."""
    if key.node_id < 0:
        return
    leading.replica(key).update_follower_state(offset, quorum.log.end_offset, now_ms)
    leading.update_check_quorum_for_following_voter(key, now_ms)
    if leading.is_voter(key):
        quorum.advance_leader(leading)


def _fetch_respond(quorum: QuorumState, leading: RaftLeader, fetch: PendingFetch) -> Respond:
    assert isinstance(fetch.request, FetchRequest)
    asked: FetchPartition = fetch.request.topics[0].partitions[0]
    found = quorum.log.check_fetch(asked.fetch_offset, asked.last_fetched_epoch)
    response = messages.fetch_response(
        quorum.known_leader(fetch.listener),
        ErrorCode.NONE,
        log_start_offset=quorum.log.start_offset,
        high_watermark=-1 if leading.high_watermark is None else leading.high_watermark,
        diverging=found if isinstance(found, Divergence) else None,
        snapshot=found if isinstance(found, MetadataSnapshotId) else None,
    )
    if found is not None or asked.fetch_offset >= quorum.log.end_offset:
        return Respond(fetch.request_id, response)
    return Respond(
        fetch.request_id, response, LogRead(asked.fetch_offset, quorum.log.end_offset, fetch.request.max_bytes)
    )


def _fetch_error(quorum: QuorumState, error: ErrorCode, listener: str) -> FetchResponse:
    leader = quorum.known_leader(listener)
    return messages.fetch_response(leader, error, log_start_offset=quorum.log.start_offset, high_watermark=-1)


def complete_appended(quorum: QuorumState, leading: RaftLeader) -> None:
    """Respond to the fetches that wait at an offset which there is now."""
    _complete(quorum, leading, [each for each in leading.waiting if each.offset < quorum.log.end_offset])


def complete_all(quorum: QuorumState, leading: RaftLeader) -> None:
    """Respond to all fetches that wait: the high watermark has moved."""
    _complete(quorum, leading, list(leading.waiting))


def complete_expired(quorum: QuorumState, leading: RaftLeader, now_ms: float) -> None:
    _complete(quorum, leading, [each for each in leading.waiting if each.deadline_ms <= now_ms])


def _complete(quorum: QuorumState, leading: RaftLeader, fetches: list[PendingFetch]) -> None:
    for fetch in fetches:
        leading.waiting.remove(fetch)
        quorum.emit(_fetch_respond(quorum, leading, fetch))


def refuse_all(quorum: QuorumState, left: RaftLeader) -> None:
    """The leader leads no more."""
    for fetch in left.waiting:
        response = _fetch_error(quorum, ErrorCode.NOT_LEADER_OR_FOLLOWER, fetch.listener)
        quorum.emit(Respond(fetch.request_id, response))
    left.waiting.clear()


def _handle_fetch_snapshot(
    quorum: QuorumState, event: RequestReceived, request: FetchSnapshotRequest, now_ms: float
) -> None:
    if request.cluster_id is not None and request.cluster_id != quorum.identity.cluster_id:
        response = FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        quorum.emit(Respond(event.request_id, response))
        return
    names = [(topic.name, each.partition) for topic in request.topics for each in topic.partitions]
    if names != [(TOPIC, 0)]:
        quorum.emit(Respond(event.request_id, messages.unknown_snapshot_response(names)))
        return
    asked = request.topics[0].partitions[0]
    snapshot = MetadataSnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    leader, state = quorum.known_leader(event.listener), quorum.state
    size = quorum.log.snapshots.get(snapshot, -1)
    error = _leader_error(quorum, asked.current_leader_epoch)
    if not error and (size < 0 or snapshot == BOOTSTRAP_ID):
        error = ErrorCode.SNAPSHOT_NOT_FOUND
    elif not error and not 0 <= asked.position < size:
        error = ErrorCode.POSITION_OUT_OF_RANGE
    error = error or _own_id_error(quorum, request.replica_id)
    if error or not isinstance(state, RaftLeader):
        quorum.emit(Respond(event.request_id, messages.fetch_snapshot_response(leader, error)))
        return
    state.update_check_quorum_for_following_voter(ReplicaKey(request.replica_id, asked.replica_directory_id), now_ms)
    response = messages.fetch_snapshot_response(leader, ErrorCode.NONE, snapshot, size=size, position=asked.position)
    quorum.emit(Respond(event.request_id, response, SnapshotRead(snapshot, asked.position, request.max_bytes)))


# --- voters -----------------------------------------------------------------------------------------------------------


def _change_voters(quorum: QuorumState, event: RequestReceived, request: Any, now_ms: float) -> Message | None:
    """None where the response comes later."""
    state = quorum.state
    try:
        if request.cluster_id is not None and request.cluster_id != quorum.identity.cluster_id:
            raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"The cluster id is not {request.cluster_id!r}")
        error = _leader_error(quorum, getattr(request, "current_leader_epoch", quorum.epoch))
        if error or not isinstance(state, RaftLeader):
            raise KafkaError(error, None)
        if isinstance(request, AddRaftVoterRequest):
            return voter_changes.add_voter(quorum, state, event.request_id, request, now_ms)
        if isinstance(request, RemoveRaftVoterRequest):
            voter_changes.remove_voter(quorum, state, event.request_id, request, now_ms)
            return None
        assert isinstance(request, UpdateRaftVoterRequest), f"{type(request).__name__} is not a request of the quorum"
        voter_changes.update_voter(quorum, state, request, now_ms)
        return messages.update_voter_response(quorum.known_leader(event.listener), ErrorCode.NONE)
    except KafkaError as refusal:
        if isinstance(request, AddRaftVoterRequest):
            return AddRaftVoterResponse(error_code=refusal.code, error_message=refusal.message)
        if isinstance(request, RemoveRaftVoterRequest):
            return RemoveRaftVoterResponse(error_code=refusal.code, error_message=refusal.message)
        return messages.update_voter_response(quorum.known_leader(event.listener), refusal.code)
