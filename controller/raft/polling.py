"""The end of a Raft node's step: expired timers, and requests that are due (``KafkaRaftClient.poll…``)."""

from __future__ import annotations

import math

from ...wire.messages.fetch import FetchRequest
from . import inbound, messages, voter_changes
from .effects import RaftPeer, ShutdownFinished
from .election import Prospective, RaftCandidate, Resigned, Unattached
from .election_file import NOBODY
from .follower import RaftFollower
from .leader import RaftLeader
from .quorum_state import QuorumState
from .voter_set import address_of


def poll(quorum: QuorumState, now_ms: float) -> float:
    """Bring the node up to date; returns when it is to be done next. One state may lead to another at once."""
    while not _has_shut_down(quorum, now_ms):
        state = quorum.state
        if isinstance(state, RaftFollower):
            deadline = _poll_follower(quorum, state, now_ms)
        elif isinstance(state, RaftLeader):
            deadline = _poll_leader(quorum, state, now_ms)
        elif isinstance(state, RaftCandidate | Prospective):
            deadline = _poll_nominee(quorum, state, now_ms)
        elif isinstance(state, Resigned):
            deadline = _poll_resigned(quorum, state, now_ms)
        else:
            deadline = _poll_unattached(quorum, state, now_ms)
        if quorum.state is state:
            shutdown = math.inf if quorum.shutdown_deadline_ms is None else quorum.shutdown_deadline_ms
            return min(deadline, shutdown)
    return math.inf


def _has_shut_down(quorum: QuorumState, now_ms: float) -> bool:
    """A node may go when it is not missed: it is no voter, the only one, or another leads."""
    if quorum.is_stopped or quorum.shutdown_deadline_ms is None:
        return quorum.is_stopped
    is_led = quorum.leader_id not in (NOBODY, quorum.key.node_id)
    if not quorum.is_voter or quorum.is_only_voter or is_led:
        quorum.is_stopped = True
        quorum.emit(ShutdownFinished(True))
    elif quorum.shutdown_deadline_ms <= now_ms:
        quorum.is_stopped = True
        quorum.emit(ShutdownFinished(False))
    return quorum.is_stopped


def _poll_leader(quorum: QuorumState, leading: RaftLeader, now_ms: float) -> float:
    is_deserted = leading.check_quorum_deadline_ms <= now_ms
    if quorum.shutdown_deadline_ms is not None or leading.is_resign_requested or is_deserted:
        quorum.become_resigned(now_ms)
        return now_ms
    voter_changes.expire(quorum, leading, now_ms)
    inbound.complete_expired(quorum, leading, now_ms)
    if leading.begin_quorum_deadline_ms <= now_ms:
        leading.begin_quorum_ms = now_ms + quorum.times.begin_quorum_interval_ms
        for key in leading.non_acknowledging_voters(now_ms):
            for peer in quorum.peers([key.node_id]):
                request = messages.begin_quorum_epoch_request(
                    quorum.identity.cluster_id, quorum.key.node_id, quorum.epoch, key, quorum.identity.endpoints
                )
                quorum.send(peer, request, now_ms)
    pending = [each.deadline_ms for each in (leading.adding, leading.removing) if each is not None]
    return min(
        leading.check_quorum_deadline_ms,
        leading.begin_quorum_deadline_ms,
        *pending,
        *(fetch.deadline_ms for fetch in leading.waiting),
    )


def _poll_nominee(quorum: QuorumState, state: RaftCandidate | Prospective, now_ms: float) -> float:
    is_stopping = quorum.shutdown_deadline_ms is not None
    if state.deadline_ms <= now_ms and not is_stopping:
        if isinstance(state, Prospective):
            end_prospective(quorum, state, now_ms)
        else:
            quorum.become_prospective(now_ms)
        return now_ms
    deadline = math.inf if is_stopping else state.deadline_ms
    if state.votes.is_lost:
        # It sits out the rest of its random time, which gives another candidate the room to win.
        return deadline
    is_pre_vote = isinstance(state, Prospective)
    for key in state.votes.unrecorded:
        for peer in quorum.peers([key.node_id]):
            request = messages.vote_request(
                quorum.identity.cluster_id, quorum.key, key, quorum.epoch, quorum.log.end, is_pre_vote
            )
            quorum.send(peer, request, now_ms)
            deadline = min(deadline, now_ms + quorum.connections.ready_in_ms(peer, now_ms))
    return deadline


def end_prospective(quorum: QuorumState, state: Prospective, now_ms: float) -> None:
    """Without a majority of pre-votes the node goes back to the leader that it had."""
    if state.leader_id != NOBODY and quorum.can_reach(state.leader_endpoints):
        quorum.become_follower(state.epoch, state.leader_id, state.leader_endpoints, now_ms)
    else:
        quorum.become_unattached(state.epoch, state.leader_id, now_ms)


def _poll_resigned(quorum: QuorumState, state: Resigned, now_ms: float) -> float:
    if quorum.shutdown_deadline_ms is None and state.deadline_ms <= now_ms:
        quorum.become_unattached(state.epoch + 1, NOBODY, now_ms)
        return now_ms
    deadline = math.inf if quorum.shutdown_deadline_ms is not None else state.deadline_ms
    for peer in quorum.peers(sorted(state.unacknowledged)):
        request = messages.end_quorum_epoch_request(
            quorum.identity.cluster_id, quorum.key.node_id, state.epoch, state.successors, quorum.identity.endpoints
        )
        quorum.send(peer, request, now_ms)
        deadline = min(deadline, now_ms + quorum.connections.ready_in_ms(peer, now_ms))
    return deadline


def _poll_unattached(quorum: QuorumState, state: Unattached, now_ms: float) -> float:
    if quorum.shutdown_deadline_ms is not None:
        return math.inf
    if quorum.may_become_candidate and state.deadline_ms <= now_ms:
        quorum.become_prospective(now_ms)
        return now_ms
    return min(_fetch_from_any(quorum, now_ms), state.deadline_ms if quorum.may_become_candidate else math.inf)


def _poll_follower(quorum: QuorumState, state: RaftFollower, now_ms: float) -> float:
    if not quorum.identity.may_vote:
        return _fetch_from_best(quorum, state, now_ms)
    is_voter, may_become_candidate = quorum.is_voter, quorum.may_become_candidate
    if may_become_candidate and state.deadline_ms <= now_ms:
        quorum.become_prospective(now_ms)
        return now_ms
    deadline = state.deadline_ms if may_become_candidate else math.inf
    # A change of the voters goes to the leader between two fetches, as one request at a time is in flight.
    if state.update_deadline_ms <= now_ms and _maybe_send_voter_change(quorum, state, is_voter, now_ms):
        state.update_deadline_ms = now_ms + quorum.times.fetch_timeout_ms
    if is_voter or quorum.times.auto_join:
        deadline = min(deadline, max(state.update_deadline_ms, now_ms + quorum.connections.busy_for_ms(now_ms)))
    return min(deadline, _fetch_from_best(quorum, state, now_ms))


def _maybe_send_voter_change(quorum: QuorumState, state: RaftFollower, is_voter: bool, now_ms: float) -> bool:
    """Tell the leader what it does not know of this node; False where that could not be sent yet."""
    if quorum.connections.busy_for_ms(now_ms):
        return False
    version, voters, cluster_id = quorum.kraft_version, quorum.voters, quorum.identity.cluster_id
    leader = _leader_of(quorum, state)
    if is_voter:
        if voters.needs_update(quorum.as_voter) if version else not state.has_updated_leader:
            return quorum.send(leader, messages.update_voter_request(cluster_id, quorum.as_voter, state.epoch), now_ms)
    elif version and quorum.times.auto_join:
        old = voters.voters.get(quorum.key.node_id)
        if old is not None:
            return quorum.send(leader, messages.remove_voter_request(cluster_id, old.key), now_ms)
        request = messages.add_voter_request(cluster_id, quorum.as_voter, quorum.times.request_timeout_ms)
        return quorum.send(leader, request, now_ms)
    return True


def _leader_of(quorum: QuorumState, state: RaftFollower) -> RaftPeer:
    address = address_of(state.endpoints, quorum.listener)
    assert address is not None, "only a leader that can be reached is followed"
    return RaftPeer(state.leader_id, address)


def _fetch_from_best(quorum: QuorumState, state: RaftFollower, now_ms: float) -> float:
    """Fetch from the leader; from any server while the leader does not respond. Returns when to look again."""
    leader = _leader_of(quorum, state)
    connections = quorum.connections
    if connections.has_timed_out(leader, now_ms):
        connections.back_off_after_timeout(leader, now_ms)
        return _fetch_from_any(quorum, now_ms)
    if connections.is_backing_off(leader, now_ms):
        return _fetch_from_any(quorum, now_ms)
    busy_ms = connections.busy_for_ms(now_ms)
    if not busy_ms and may_fetch(quorum):
        download = state.download
        if download is None:
            quorum.send(leader, _fetch(quorum), now_ms)
        else:
            request = messages.fetch_snapshot_request(
                quorum.identity.cluster_id,
                quorum.key,
                state.epoch,
                download.snapshot,
                download.size,
                quorum.times.fetch_snapshot_max_bytes,
            )
            quorum.send(leader, request, now_ms)
        busy_ms = connections.busy_for_ms(now_ms)
    return now_ms + busy_ms if busy_ms else math.inf


def _fetch_from_any(quorum: QuorumState, now_ms: float) -> float:
    """Ask one of the bootstrap servers, whose response tells who leads. Returns when to look again."""
    busy_ms = quorum.connections.busy_for_ms(now_ms)
    if busy_ms:
        return now_ms + busy_ms
    if not may_fetch(quorum):
        return math.inf
    known = (quorum.identity.endpoints, quorum.leader_endpoints)
    useless = [address for endpoints in known if (address := address_of(endpoints, quorum.listener)) is not None]
    # Kafka asks bootstrap servers only. A broker that has one, which has led and is gone, would wait for it for ever.
    voters = [] if quorum.identity.may_vote else quorum.peers(quorum.voters.ids)
    peer = quorum.connections.ready_bootstrap(useless, now_ms, voters)
    if peer is None:
        return now_ms + quorum.connections.bootstrap_ready_in_ms(useless, now_ms, voters)
    quorum.send(peer, _fetch(quorum), now_ms)
    return now_ms + quorum.connections.busy_for_ms(now_ms)


def may_fetch(quorum: QuorumState) -> bool:
    """A fetch at an offset says that all below is on stable storage; the end of the flush comes as an event."""
    return quorum.log.flushed_offset == quorum.log.end_offset or not quorum.has_to_flush


def _fetch(quorum: QuorumState) -> FetchRequest:
    return messages.fetch_request(
        quorum.identity.cluster_id,
        quorum.key,
        quorum.epoch,
        quorum.log.end,
        -1 if quorum.high_watermark is None else quorum.high_watermark,
        max_wait_ms=quorum.times.max_wait_ms,
        max_bytes=quorum.times.fetch_max_bytes,
    )
