"""Responses to a Raft node's own requests (Kafka's ``KafkaRaftClient.handle…Response``).

A higher epoch, or a leader that is not known yet, counts before anything else in a response. A lower epoch makes it void.
"""

from __future__ import annotations

from typing import Any

from ...base.errors import ErrorCode, KafkaError, known_code
from ...log.checkpoints import CorruptFileError
from ...log.metadata_snapshots import MetadataSnapshotId
from ...wire.control_records import decode_quorum_record
from ...wire.messages.add_raft_voter import AddRaftVoterResponse
from ...wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from ...wire.messages.end_quorum_epoch import EndQuorumEpochResponse
from ...wire.messages.fetch import FetchResponse, PartitionData
from ...wire.messages.fetch_snapshot import FetchSnapshotResponse, ResponsePartitionSnapshot
from ...wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from ...wire.messages.update_raft_voter import UpdateRaftVoterResponse
from ...wire.messages.vote import VoteRequest, VoteResponse
from ...wire.schema import Message
from . import voter_changes
from .effects import AppendFetched, AppendToSnapshot, BeginSnapshot, DropSnapshot, FinishSnapshot, PeerRefused, Truncate
from .election import Prospective, RaftCandidate, Resigned, Unattached
from .election_file import NOBODY
from .follower import RaftFollower, SnapshotDownload, appendable
from .leader import RaftLeader
from .log_outline import Divergence
from .polling import end_prospective
from .quorum_state import QuorumState
from .request_manager import OwnRequest
from .transitions import PeerRefusalError, maybe_transition, require
from .voter_set import Endpoints, ListenerEndpoint, VoterSet


def handle_response(quorum: QuorumState, request_id: int, response: Message, now_ms: float) -> None:
    own = quorum.connections.take(request_id)
    if own is None:
        return
    try:
        succeeded = _handle(quorum, own, response, now_ms)
    except PeerRefusalError as refusal:
        quorum.emit(PeerRefused(own.peer, refusal.code, refusal.message or ""))
        quorum.connections.refuse(own, now_ms)
    else:
        quorum.connections.end(own, succeeded, now_ms)


def handle_failure(
    quorum: QuorumState, request_id: int, error: ErrorCode, now_ms: float, *, is_refused: bool = False
) -> None:
    """No response came."""
    own = quorum.connections.take(request_id)
    if own is None:
        return
    if is_refused:
        _handle_unreachable_leader(quorum, own, now_ms)
    if error is ErrorCode.UNSUPPORTED_VERSION and isinstance(own.request, VoteRequest):
        if isinstance(quorum.state, Prospective):  # a voter that knows no pre-vote (KIP-996)
            quorum.become_candidate(now_ms)
    elif isinstance(own.request, ApiVersionsRequest) and isinstance(quorum.state, RaftLeader):
        failed = ApiVersionsResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        voter_changes.take_api_versions(quorum, quorum.state, own.peer, failed, now_ms)
    if error is ErrorCode.UNSUPPORTED_VERSION and not quorum.identity.may_vote:
        quorum.connections.refuse(own, now_ms)
    else:
        quorum.connections.end(own, False, now_ms)


def _handle_unreachable_leader(quorum: QuorumState, own: OwnRequest, now_ms: float) -> None:
    """Nothing listens at the address of a peer. A leader that was heard of has ended, and is not waited for.

    Where that is not so, since the network answers for it, others have heard of the leader, and grant no pre-vote. Then the next
    try waits for the whole fetch timeout, as the leader has not been heard of since.
    """
    state = quorum.state
    if isinstance(state, RaftFollower) and own.peer.address == quorum.leader_address and state.has_fetched:
        state.has_fetched = False
        state.deadline_ms = min(state.deadline_ms, quorum.unreachable_leader_deadline(state.leader_id, now_ms))


def _handle(quorum: QuorumState, own: OwnRequest, response: Any, now_ms: float) -> bool:
    """Whether the response has helped: after another the peer is left alone for a moment. Raises PeerRefusalError."""
    is_fetch = isinstance(response, FetchResponse)
    taken = None if is_fetch else _take_no_partition(quorum, own, response, now_ms)
    if taken is not None:
        return taken
    if response.error_code:
        if isinstance(response, VoteResponse) and response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            handle_failure(quorum, own.request_id, ErrorCode.UNSUPPORTED_VERSION, now_ms)
        error = known_code(response.error_code)
        require(quorum, error is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error, "the quorum refuses this node")
        _check_refusal(quorum, error)
        return False
    if is_fetch:
        partition: Any = response.responses[0].partitions[0]
        leader = partition.current_leader
    elif isinstance(response, FetchSnapshotResponse):
        partition = response.topics[0].partitions[0]
        leader = partition.current_leader
    else:
        partition = leader = response.topics[0].partitions[0]
    if leader is None:
        return False
    error, leader_id = known_code(partition.error_code), leader.leader_id
    endpoints = _endpoints(quorum, response, leader_id)
    handled = _take_leader(quorum, error, leader_id, leader.leader_epoch, endpoints, now_ms)
    if handled is not None:
        return handled
    if is_fetch:
        return _handle_fetch(quorum, own, error, partition, now_ms)
    if isinstance(response, FetchSnapshotResponse):
        return _handle_fetch_snapshot(quorum, error, partition, now_ms)
    if error:
        return False
    if isinstance(response, VoteResponse):
        _handle_vote(quorum, own.peer.node_id, partition.vote_granted, now_ms)
    elif isinstance(response, EndQuorumEpochResponse) and isinstance(quorum.state, Resigned):
        quorum.state.unacknowledged.discard(own.peer.node_id)
    else:
        assert isinstance(response, BeginQuorumEpochResponse | EndQuorumEpochResponse)
    return True


def _take_no_partition(quorum: QuorumState, own: OwnRequest, response: Any, now_ms: float) -> bool | None:
    """Whether a response that is not of the quorum's partition has helped; None for one that is."""
    state = quorum.state
    if isinstance(response, ApiVersionsResponse):
        if isinstance(state, RaftLeader):
            voter_changes.take_api_versions(quorum, state, own.peer, response, now_ms)
        return not response.error_code
    if isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
        return _take_own_change(quorum, response, now_ms)
    if isinstance(response, UpdateRaftVoterResponse):
        return _take_updated(quorum, response, now_ms)
    return None


def _check_refusal(quorum: QuorumState, error: ErrorCode) -> None:
    """An error that says nothing of who leads. Kafka asks again after a moment; only a broker has no other way to go on.

    Raises PeerRefusalError.
    """
    is_lasting = not quorum.identity.may_vote and error not in (ErrorCode.NONE, ErrorCode.BROKER_NOT_AVAILABLE)
    if is_lasting or error is ErrorCode.INCONSISTENT_CLUSTER_ID:
        raise PeerRefusalError(error, "the quorum's controller refuses to be followed")


def _endpoints(quorum: QuorumState, response: Any, leader_id: int) -> Endpoints:
    named = tuple(
        ListenerEndpoint(quorum.listener, each.host, each.port)
        for each in response.node_endpoints
        if each.node_id == leader_id
    )
    return named or quorum.voters.endpoints(leader_id)


def _take_leader(
    quorum: QuorumState, error: ErrorCode, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: float
) -> bool | None:
    """None where the response is to be read on (``maybeHandleCommonResponse``); False where it has told nothing new."""
    if epoch < quorum.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        # A broker, for which no election ends that, would ask again as fast as the network is.
        return quorum.identity.may_vote
    if epoch > quorum.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        before = quorum.state
        maybe_transition(quorum, leader_id, epoch, endpoints, now_ms)
        return quorum.state is not before  # Kafka asks again at once, as fast as the network is
    is_unknown = quorum.leader_id == NOBODY or isinstance(quorum.state, Unattached)
    if leader_id != NOBODY and is_unknown and quorum.can_reach(endpoints):
        maybe_transition(quorum, leader_id, epoch, endpoints, now_ms)
        return None if error is ErrorCode.NONE else True
    if error is ErrorCode.BROKER_NOT_AVAILABLE:
        return False
    if error is ErrorCode.INVALID_VOTER_KEY:
        return True
    require(quorum, error is not ErrorCode.INVALID_REQUEST, error, "another node finds a request of this one malformed")
    return None


def _handle_vote(quorum: QuorumState, voter_id: int, is_granted: bool, now_ms: float) -> None:
    state = quorum.state
    if not isinstance(state, Prospective | RaftCandidate):
        return
    state.votes.record(voter_id, is_granted)
    if state.votes.is_won:
        if isinstance(state, Prospective):
            quorum.become_candidate(now_ms)
        else:
            quorum.become_leader(now_ms)
    elif state.votes.is_lost and isinstance(state, Prospective):
        end_prospective(quorum, state, now_ms)


# --- fetches ----------------------------------------------------------------------------------------------------------


def _handle_fetch(
    quorum: QuorumState, own: OwnRequest, error: ErrorCode, partition: PartitionData, now_ms: float
) -> bool:
    state = quorum.state
    _check_refusal(quorum, error)
    if not error:
        quorum.note_leader_high_watermark(partition.high_watermark)
    if not isinstance(state, RaftFollower):
        # A broker that cannot reach the leader has no election to wait for.
        return not error and quorum.identity.may_vote
    if error or own.offset != quorum.log.end_offset:  # the log has changed since: what was sent fits to its former end
        return not error
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging is not None and diverging.epoch >= 0:
        truncate(quorum, Divergence(diverging.epoch, diverging.end_offset))
    elif snapshot is not None and (snapshot.epoch >= 0 or snapshot.end_offset >= 0):
        if snapshot.epoch < 0 or snapshot.end_offset < 0:
            return False
        wanted = MetadataSnapshotId(snapshot.end_offset, snapshot.epoch)
        if wanted not in quorum.log.snapshots:
            state.download = SnapshotDownload(wanted)
            quorum.emit(BeginSnapshot(wanted))
    else:
        _append(quorum, partition.records)
        if partition.high_watermark >= 0:
            quorum.commit(min(partition.high_watermark, quorum.log.end_offset))
    _followed(quorum, state, now_ms)
    return True


def _followed(quorum: QuorumState, state: RaftFollower, now_ms: float) -> None:
    state.has_fetched = True
    state.deadline_ms = quorum.fetch_deadline(state.leader_id, now_ms)


def truncate(quorum: QuorumState, leader: Divergence) -> None:
    """Cut off what the leader does not have. What is committed is never taken back: the leader would have it.

    Raises PeerRefusalError.
    """
    offset = min(leader.end_offset, quorum.log.end_offset)
    if leader.epoch:
        # The leader has the epoch up to its end offset. If the own log has no such epoch, all that it has of later ones goes,
        # and the next fetch compares the epoch before.
        own = quorum.log.end_offset_for_epoch(leader.epoch)
        offset = min(own.end_offset, leader.end_offset) if own.epoch == leader.epoch else own.end_offset
    committed = quorum.log.committed_offset
    why = f"the leader's metadata log differs at offset {offset}, and {committed} is committed"
    require(quorum, offset >= committed, ErrorCode.UNKNOWN_SERVER_ERROR, why)
    if offset < quorum.log.end_offset:
        quorum.log.truncate(offset)
        quorum.emit(Truncate(offset))


def _append(quorum: QuorumState, records: Any) -> None:
    if not records:
        return
    log, size = quorum.log, 0
    for batch, position in appendable(records, log.end_offset, quorum.epoch):
        if batch.partition_leader_epoch < log.last_epoch:
            break  # epochs never decrease along a log: these batches do not follow on this one
        offset = log.append(batch.partition_leader_epoch, batch.last_offset_delta + 1)
        size = position
        if batch.is_control:
            log.note_control(offset, [decode_quorum_record(record) for record in batch.records()])
    if size:
        quorum.emit(AppendFetched(memoryview(records)[:size], log.end_offset))
        quorum.flush()
    elif not quorum.identity.may_vote:
        raise PeerRefusalError(ErrorCode.CORRUPT_MESSAGE, f"no records from offset {log.end_offset} on can be appended")


def _handle_fetch_snapshot(
    quorum: QuorumState, error: ErrorCode, partition: ResponsePartitionSnapshot, now_ms: float
) -> bool:
    state = quorum.state
    if not isinstance(state, RaftFollower) or state.download is None:
        return True
    download, snapshot = state.download, partition.snapshot_id
    if error is ErrorCode.SNAPSHOT_NOT_FOUND or snapshot.end_offset < 0 or snapshot.epoch < 0:
        _drop(quorum, state)
        _followed(quorum, state, now_ms)
        return True
    _check_refusal(quorum, error)
    if error:
        return False
    if (snapshot.end_offset, snapshot.epoch, partition.position) != (*download.snapshot, download.size):
        _drop(quorum, state)
        why = f"a piece of {snapshot} from {partition.position} on follows {download.size} bytes of {download.snapshot}"
        require(quorum, False, ErrorCode.UNKNOWN_SERVER_ERROR, why)
    records = partition.unaligned_records
    assert isinstance(records, bytes | bytearray | memoryview), "received records are in memory"
    quorum.emit(AppendToSnapshot(download.snapshot, download.size, records))
    try:
        download.append(records)
        if download.size >= partition.size:
            _finish(quorum, state, download)
    except PeerRefusalError:
        _drop(quorum, state)
        raise
    except (CorruptFileError, KafkaError):
        _drop(quorum, state)
        return False
    _followed(quorum, state, now_ms)
    return True


def _drop(quorum: QuorumState, state: RaftFollower) -> None:
    assert state.download is not None
    quorum.emit(DropSnapshot(state.download.snapshot))
    state.download = None


def _finish(quorum: QuorumState, state: RaftFollower, download: SnapshotDownload) -> None:
    """The snapshot takes the place of the log. Raises PeerRefusalError."""
    head, snapshot = download.head(), download.snapshot
    is_ahead = snapshot.end_offset >= quorum.log.committed_offset
    require(quorum, is_ahead, ErrorCode.UNKNOWN_SERVER_ERROR, f"{snapshot} takes back committed records")
    state.download = None
    voters = None if head.voters is None else VoterSet.of_record(head.voters)
    quorum.log.start_after(snapshot, download.size, head.kraft_version, voters)
    # In this order: who hears of the high watermark reads what is below it, and finds the snapshot under its name.
    quorum.emit(FinishSnapshot(snapshot))
    quorum.commit(snapshot.end_offset)


# --- voters -----------------------------------------------------------------------------------------------------------


def _take_own_change(
    quorum: QuorumState, response: AddRaftVoterResponse | RemoveRaftVoterResponse, now_ms: float
) -> bool:
    """What became of joining the voters."""
    helped = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND)
    if known_code(response.error_code) not in helped:
        return False
    if isinstance(quorum.state, RaftFollower):
        quorum.state.update_deadline_ms = now_ms + quorum.times.fetch_timeout_ms
    return True


def _take_updated(quorum: QuorumState, response: UpdateRaftVoterResponse, now_ms: float) -> bool:
    error, leader = known_code(response.error_code), response.current_leader
    if leader is None:
        return False
    endpoints: Endpoints = (ListenerEndpoint(quorum.listener, leader.host, leader.port),) if leader.host else ()
    endpoints = endpoints or quorum.voters.endpoints(leader.leader_id)
    handled = _take_leader(quorum, error, leader.leader_id, leader.leader_epoch, endpoints, now_ms)
    if handled is not None:
        return handled
    state = quorum.state
    if error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION) and isinstance(state, RaftFollower):
        state.has_updated_leader = True
        _followed(quorum, state, now_ms)
        return True
    return False
