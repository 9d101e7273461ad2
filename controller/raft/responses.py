"""Responses to a Raft node's own requests (Kafka's ``KafkaRaftClient.handle…Response``).

A higher epoch, or a leader that is not known yet, counts before anything else in a response. A lower epoch makes it void.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base.errors import ErrorCode, KafkaError, known_code
from ...log.checkpoints import CorruptFileError
from ...log.metadata_snapshots import SnapshotId
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
from .connections import OwnRequest
from .effects import AppendFetched, AppendToSnapshot, BeginSnapshot, DropSnapshot, FinishSnapshot, PeerRefused, Truncate
from .election import Prospective, RaftCandidate, Resigned, Unattached
from .election_file import NOBODY
from .follower import Following, SnapshotDownload, appendable
from .leader import Leading
from .log_outline import Divergence
from .polling import end_prospective
from .transitions import PeerRefusalError, follow_told, insist
from .voter_set import Endpoints, ListenerEndpoint, VoterSet

if TYPE_CHECKING:
    from .node import RaftNode


def take_response(node: RaftNode, request_id: int, response: Message, now_ms: float) -> None:
    own = node.connections.take(request_id)
    if own is None:
        return
    try:
        succeeded = _handle(node, own, response, now_ms)
    except PeerRefusalError as refusal:
        node.emit(PeerRefused(own.peer, refusal.code, refusal.message or ""))
        node.connections.refuse(own, now_ms)
    else:
        node.connections.end(own, succeeded, now_ms)


def take_failure(node: RaftNode, request_id: int, error: ErrorCode, now_ms: float, *, is_refused: bool = False) -> None:
    """No response came."""
    own = node.connections.take(request_id)
    if own is None:
        return
    if is_refused:
        _note_gone(node, own, now_ms)
    if error is ErrorCode.UNSUPPORTED_VERSION and isinstance(own.request, VoteRequest):
        if isinstance(node.state, Prospective):  # a voter that knows no pre-vote (KIP-996)
            node.become_candidate(now_ms)
    elif isinstance(own.request, ApiVersionsRequest) and isinstance(node.state, Leading):
        failed = ApiVersionsResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE)
        voter_changes.take_api_versions(node, node.state, own.peer, failed, now_ms)
    if error is ErrorCode.UNSUPPORTED_VERSION and not node.identity.may_vote:
        node.connections.refuse(own, now_ms)
    else:
        node.connections.end(own, False, now_ms)


def _note_gone(node: RaftNode, own: OwnRequest, now_ms: float) -> None:
    """Nothing listens at the address of a peer. A leader that was heard of has ended, and is not waited for.

    Where that is not so, since the network answers for it, others have heard of the leader, and grant no pre-vote. Then the next
    try waits for the whole fetch timeout, as the leader has not been heard of since.
    """
    state = node.state
    if isinstance(state, Following) and own.peer.address == node.leader_address and state.has_fetched:
        state.has_fetched = False
        state.deadline_ms = min(state.deadline_ms, node.desertion_deadline(state.leader_id, now_ms))


def _handle(node: RaftNode, own: OwnRequest, response: Any, now_ms: float) -> bool:
    """Whether the response has helped: after another the peer is left alone for a moment. Raises PeerRefusalError."""
    is_fetch = isinstance(response, FetchResponse)
    taken = None if is_fetch else _take_no_partition(node, own, response, now_ms)
    if taken is not None:
        return taken
    if response.error_code:
        if isinstance(response, VoteResponse) and response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            take_failure(node, own.request_id, ErrorCode.UNSUPPORTED_VERSION, now_ms)
        error = known_code(response.error_code)
        insist(node, error is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error, "the quorum refuses this node")
        _check_refusal(node, error)
        return False
    if is_fetch:
        partition: Any = response.responses[0].partitions[0]
        told = partition.current_leader
    elif isinstance(response, FetchSnapshotResponse):
        partition = response.topics[0].partitions[0]
        told = partition.current_leader
    else:
        partition = told = response.topics[0].partitions[0]
    if told is None:
        return False
    error, leader_id = known_code(partition.error_code), told.leader_id
    endpoints = _endpoints(node, response, leader_id)
    handled = _take_leader(node, error, leader_id, told.leader_epoch, endpoints, now_ms)
    if handled is not None:
        return handled
    if is_fetch:
        return _take_fetch(node, own, error, partition, now_ms)
    if isinstance(response, FetchSnapshotResponse):
        return _take_snapshot(node, error, partition, now_ms)
    if error:
        return False
    if isinstance(response, VoteResponse):
        _take_vote(node, own.peer.node_id, partition.vote_granted, now_ms)
    elif isinstance(response, EndQuorumEpochResponse) and isinstance(node.state, Resigned):
        node.state.unacknowledged.discard(own.peer.node_id)
    else:
        assert isinstance(response, BeginQuorumEpochResponse | EndQuorumEpochResponse)
    return True


def _take_no_partition(node: RaftNode, own: OwnRequest, response: Any, now_ms: float) -> bool | None:
    """Whether a response that is not of the quorum's partition has helped; None for one that is."""
    state = node.state
    if isinstance(response, ApiVersionsResponse):
        if isinstance(state, Leading):
            voter_changes.take_api_versions(node, state, own.peer, response, now_ms)
        return not response.error_code
    if isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
        return _take_own_change(node, response, now_ms)
    if isinstance(response, UpdateRaftVoterResponse):
        return _take_updated(node, response, now_ms)
    return None


def _check_refusal(node: RaftNode, error: ErrorCode) -> None:
    """An error that says nothing of who leads. Kafka asks again after a moment; only a broker has no other way to go on.

    Raises PeerRefusalError.
    """
    is_lasting = not node.identity.may_vote and error not in (ErrorCode.NONE, ErrorCode.BROKER_NOT_AVAILABLE)
    if is_lasting or error is ErrorCode.INCONSISTENT_CLUSTER_ID:
        raise PeerRefusalError(error, "the quorum's controller refuses to be followed")


def _endpoints(node: RaftNode, response: Any, leader_id: int) -> Endpoints:
    told = tuple(
        ListenerEndpoint(node.listener, each.host, each.port)
        for each in response.node_endpoints
        if each.node_id == leader_id
    )
    return told or node.voters.endpoints(leader_id)


def _take_leader(
    node: RaftNode, error: ErrorCode, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: float
) -> bool | None:
    """None where the response is to be read on (``maybeHandleCommonResponse``); False where it has told nothing new."""
    if epoch < node.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        # A broker, for which no election ends that, would ask again as fast as the network is.
        return node.identity.may_vote
    if epoch > node.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        before = node.state
        follow_told(node, leader_id, epoch, endpoints, now_ms)
        return node.state is not before  # Kafka asks again at once, as fast as the network is
    is_unknown = node.leader_id == NOBODY or isinstance(node.state, Unattached)
    if leader_id != NOBODY and is_unknown and node.can_reach(endpoints):
        follow_told(node, leader_id, epoch, endpoints, now_ms)
        return None if error is ErrorCode.NONE else True
    if error is ErrorCode.BROKER_NOT_AVAILABLE:
        return False
    if error is ErrorCode.INVALID_VOTER_KEY:
        return True
    insist(node, error is not ErrorCode.INVALID_REQUEST, error, "another node finds a request of this one malformed")
    return None


def _take_vote(node: RaftNode, voter_id: int, is_granted: bool, now_ms: float) -> None:
    state = node.state
    if not isinstance(state, Prospective | RaftCandidate):
        return
    state.votes.record(voter_id, is_granted)
    if state.votes.is_won:
        if isinstance(state, Prospective):
            node.become_candidate(now_ms)
        else:
            node.become_leader(now_ms)
    elif state.votes.is_lost and isinstance(state, Prospective):
        end_prospective(node, state, now_ms)


# --- fetches ----------------------------------------------------------------------------------------------------------


def _take_fetch(node: RaftNode, own: OwnRequest, error: ErrorCode, partition: PartitionData, now_ms: float) -> bool:
    state = node.state
    _check_refusal(node, error)
    if not error:
        node.note_told(partition.high_watermark)
    if not isinstance(state, Following):
        return not error and node.identity.may_vote  # a broker that cannot reach the leader has no election to wait for
    if error or own.offset != node.log.end_offset:
        return not error
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if diverging is not None and diverging.epoch >= 0:
        truncate(node, Divergence(diverging.epoch, diverging.end_offset))
    elif snapshot is not None and (snapshot.epoch >= 0 or snapshot.end_offset >= 0):
        if snapshot.epoch < 0 or snapshot.end_offset < 0:
            return False
        told = SnapshotId(snapshot.end_offset, snapshot.epoch)
        if told not in node.log.snapshots:
            state.download = SnapshotDownload(told)
            node.emit(BeginSnapshot(told))
    else:
        _append(node, partition.records)
        if partition.high_watermark >= 0:
            node.commit(min(partition.high_watermark, node.log.end_offset))
    _followed(node, state, now_ms)
    return True


def _followed(node: RaftNode, state: Following, now_ms: float) -> None:
    state.has_fetched = True
    state.deadline_ms = node.fetch_deadline(state.leader_id, now_ms)


def truncate(node: RaftNode, leader: Divergence) -> None:
    """Cut off what the leader does not have. What is committed is never taken back: the leader would have it.

    Raises PeerRefusalError.
    """
    offset = min(leader.end_offset, node.log.end_offset)
    if leader.epoch:
        own = node.log.end_offset_for_epoch(leader.epoch)
        offset = min(own.end_offset, leader.end_offset) if own.epoch == leader.epoch else own.end_offset
    committed = node.log.committed_offset
    why = f"the leader's metadata log differs at offset {offset}, and {committed} is committed"
    insist(node, offset >= committed, ErrorCode.UNKNOWN_SERVER_ERROR, why)
    if offset < node.log.end_offset:
        node.log.truncate(offset)
        node.emit(Truncate(offset))


def _append(node: RaftNode, records: Any) -> None:
    if not records:
        return
    log, size = node.log, 0
    for batch, position in appendable(records, log.end_offset, node.epoch):
        if batch.partition_leader_epoch < log.last_epoch:
            break
        offset = log.append(batch.partition_leader_epoch, batch.last_offset_delta + 1)
        size = position
        if batch.is_control:
            log.note_control(offset, [decode_quorum_record(record) for record in batch.records()])
    if size:
        node.emit(AppendFetched(memoryview(records)[:size], log.end_offset))
        node.flush()
    elif not node.identity.may_vote:
        raise PeerRefusalError(ErrorCode.CORRUPT_MESSAGE, f"no records from offset {log.end_offset} on can be appended")


def _take_snapshot(node: RaftNode, error: ErrorCode, partition: ResponsePartitionSnapshot, now_ms: float) -> bool:
    state = node.state
    if not isinstance(state, Following) or state.download is None:
        return True
    download, told = state.download, partition.snapshot_id
    if error is ErrorCode.SNAPSHOT_NOT_FOUND or told.end_offset < 0 or told.epoch < 0:
        _drop(node, state)
        _followed(node, state, now_ms)
        return True
    _check_refusal(node, error)
    if error:
        return False
    if (told.end_offset, told.epoch, partition.position) != (*download.snapshot, download.size):
        _drop(node, state)
        why = f"a piece of {told} from {partition.position} on follows {download.size} bytes of {download.snapshot}"
        insist(node, False, ErrorCode.UNKNOWN_SERVER_ERROR, why)
    records = partition.unaligned_records
    assert isinstance(records, bytes | bytearray | memoryview), "what was received is in memory"
    node.emit(AppendToSnapshot(download.snapshot, download.size, records))
    try:
        download.append(records)
        if download.size >= partition.size:
            _finish(node, state, download)
    except PeerRefusalError:
        _drop(node, state)
        raise
    except (CorruptFileError, KafkaError):
        _drop(node, state)
        return False
    _followed(node, state, now_ms)
    return True


def _drop(node: RaftNode, state: Following) -> None:
    assert state.download is not None
    node.emit(DropSnapshot(state.download.snapshot))
    state.download = None


def _finish(node: RaftNode, state: Following, download: SnapshotDownload) -> None:
    """The snapshot takes the place of the log. Raises PeerRefusalError."""
    head, snapshot = download.head(), download.snapshot
    is_ahead = snapshot.end_offset >= node.log.committed_offset
    insist(node, is_ahead, ErrorCode.UNKNOWN_SERVER_ERROR, f"{snapshot} takes back what is committed")
    state.download = None
    voters = None if head.voters is None else VoterSet.of_record(head.voters)
    node.log.start_after(snapshot, download.size, head.kraft_version, voters)
    node.emit(FinishSnapshot(snapshot))
    node.commit(snapshot.end_offset)


# --- voters -----------------------------------------------------------------------------------------------------------


def _take_own_change(node: RaftNode, response: AddRaftVoterResponse | RemoveRaftVoterResponse, now_ms: float) -> bool:
    """What became of joining the voters."""
    helped = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND)
    if known_code(response.error_code) not in helped:
        return False
    if isinstance(node.state, Following):
        node.state.update_deadline_ms = now_ms + node.times.fetch_timeout_ms
    return True


def _take_updated(node: RaftNode, response: UpdateRaftVoterResponse, now_ms: float) -> bool:
    error, told = known_code(response.error_code), response.current_leader
    if told is None:
        return False
    endpoints: Endpoints = (ListenerEndpoint(node.listener, told.host, told.port),) if told.host else ()
    endpoints = endpoints or node.voters.endpoints(told.leader_id)
    handled = _take_leader(node, error, told.leader_id, told.leader_epoch, endpoints, now_ms)
    if handled is not None:
        return handled
    state = node.state
    if error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION) and isinstance(state, Following):
        state.has_updated_leader = True
        _followed(node, state, now_ms)
        return True
    return False
