"""The end of each step of a Raft node: timers that have expired, and requests that are due (``KafkaRaftClient.poll…``)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...wire.messages.fetch import FetchRequest
from . import inbound, messages, voter_changes
from .effects import RaftPeer, ShutdownFinished
from .election import Prospective, RaftCandidate, Resigned, Unattached
from .election_file import NOBODY
from .follower import Following
from .leader import Leading
from .voter_set import address_of

if TYPE_CHECKING:
    from .node import RaftNode


def poll(node: RaftNode, now_ms: float) -> float:
    """Bring the node up to date; returns when it is to be done next. One state may lead to another at once."""
    while not _has_shut_down(node, now_ms):
        state = node.state
        if isinstance(state, Following):
            deadline = _poll_follower(node, state, now_ms)
        elif isinstance(state, Leading):
            deadline = _poll_leader(node, state, now_ms)
        elif isinstance(state, RaftCandidate | Prospective):
            deadline = _poll_nominee(node, state, now_ms)
        elif isinstance(state, Resigned):
            deadline = _poll_resigned(node, state, now_ms)
        else:
            deadline = _poll_unattached(node, state, now_ms)
        if node.state is state:
            shutdown = math.inf if node.shutdown_deadline_ms is None else node.shutdown_deadline_ms
            return min(deadline, shutdown)
    return math.inf


def _has_shut_down(node: RaftNode, now_ms: float) -> bool:
    """A node may go when it is not missed: it is no voter, the only one, or another leads."""
    if node.is_stopped or node.shutdown_deadline_ms is None:
        return node.is_stopped
    is_led = node.leader_id not in (NOBODY, node.key.node_id)
    if not node.is_voter or node.is_only_voter or is_led:
        node.is_stopped = True
        node.emit(ShutdownFinished(True))
    elif node.shutdown_deadline_ms <= now_ms:
        node.is_stopped = True
        node.emit(ShutdownFinished(False))
    return node.is_stopped


def _poll_leader(node: RaftNode, leading: Leading, now_ms: float) -> float:
    is_deserted = leading.check_quorum_deadline_ms <= now_ms
    if node.shutdown_deadline_ms is not None or leading.is_resign_requested or is_deserted:
        node.become_resigned(now_ms)
        return now_ms
    voter_changes.expire(node, leading, now_ms)
    inbound.answer_expired(node, leading, now_ms)
    if leading.begin_quorum_deadline_ms <= now_ms:
        leading.begin_quorum_ms = now_ms + node.times.begin_quorum_interval_ms
        for key in leading.to_remind(now_ms):
            for peer in node.peers([key.node_id]):
                request = messages.begin_quorum_epoch_request(
                    node.identity.cluster_id, node.key.node_id, node.epoch, key, node.identity.endpoints
                )
                node.send(peer, request, now_ms)
    pending = [each.deadline_ms for each in (leading.adding, leading.removing) if each is not None]
    return min(
        leading.check_quorum_deadline_ms,
        leading.begin_quorum_deadline_ms,
        *pending,
        *(fetch.deadline_ms for fetch in leading.waiting),
    )


def _poll_nominee(node: RaftNode, state: RaftCandidate | Prospective, now_ms: float) -> float:
    is_stopping = node.shutdown_deadline_ms is not None
    if state.deadline_ms <= now_ms and not is_stopping:
        if isinstance(state, Prospective):
            end_prospective(node, state, now_ms)
        else:
            node.become_prospective(now_ms)
        return now_ms
    deadline = math.inf if is_stopping else state.deadline_ms
    if state.votes.is_lost:
        return deadline
    is_pre_vote = isinstance(state, Prospective)
    for key in state.votes.unrecorded:
        for peer in node.peers([key.node_id]):
            request = messages.vote_request(
                node.identity.cluster_id, node.key, key, node.epoch, node.log.end, is_pre_vote
            )
            node.send(peer, request, now_ms)
            deadline = min(deadline, now_ms + node.connections.ready_in_ms(peer, now_ms))
    return deadline


def end_prospective(node: RaftNode, state: Prospective, now_ms: float) -> None:
    """Without a majority of pre-votes the node goes back to the leader that it had."""
    if state.leader_id != NOBODY and node.can_reach(state.leader_endpoints):
        node.become_follower(state.epoch, state.leader_id, state.leader_endpoints, now_ms)
    else:
        node.become_unattached(state.epoch, state.leader_id, now_ms)


def _poll_resigned(node: RaftNode, state: Resigned, now_ms: float) -> float:
    if node.shutdown_deadline_ms is None and state.deadline_ms <= now_ms:
        node.become_unattached(state.epoch + 1, NOBODY, now_ms)
        return now_ms
    deadline = math.inf if node.shutdown_deadline_ms is not None else state.deadline_ms
    for peer in node.peers(sorted(state.unacknowledged)):
        request = messages.end_quorum_epoch_request(
            node.identity.cluster_id, node.key.node_id, state.epoch, state.successors, node.identity.endpoints
        )
        node.send(peer, request, now_ms)
        deadline = min(deadline, now_ms + node.connections.ready_in_ms(peer, now_ms))
    return deadline


def _poll_unattached(node: RaftNode, state: Unattached, now_ms: float) -> float:
    if node.shutdown_deadline_ms is not None:
        return math.inf
    if node.may_stand and state.deadline_ms <= now_ms:
        node.become_prospective(now_ms)
        return now_ms
    return min(_fetch_from_any(node, now_ms), state.deadline_ms if node.may_stand else math.inf)


def _poll_follower(node: RaftNode, state: Following, now_ms: float) -> float:
    if not node.identity.may_vote:
        return _fetch_from_best(node, state, now_ms)
    is_voter, may_stand = node.is_voter, node.may_stand
    if may_stand and state.deadline_ms <= now_ms:
        node.become_prospective(now_ms)
        return now_ms
    deadline = state.deadline_ms if may_stand else math.inf
    if state.update_deadline_ms <= now_ms and _introduce(node, state, is_voter, now_ms):
        state.update_deadline_ms = now_ms + node.times.fetch_timeout_ms
    if is_voter or node.times.auto_join:
        deadline = min(deadline, max(state.update_deadline_ms, now_ms + node.connections.busy_for_ms(now_ms)))
    return min(deadline, _fetch_from_best(node, state, now_ms))


def _introduce(node: RaftNode, state: Following, is_voter: bool, now_ms: float) -> bool:
    """Tell the leader what it does not know of this node; False where that could not be sent yet."""
    if node.connections.busy_for_ms(now_ms):
        return False
    version, voters, cluster_id = node.log.quorum.kraft_version, node.voters, node.identity.cluster_id
    leader = _leader_of(node, state)
    if is_voter:
        if voters.needs_update(node.as_voter) if version else not state.has_updated_leader:
            return node.send(leader, messages.update_voter_request(cluster_id, node.as_voter, state.epoch), now_ms)
    elif version and node.times.auto_join:
        old = voters.voters.get(node.key.node_id)
        if old is not None:
            return node.send(leader, messages.remove_voter_request(cluster_id, old.key), now_ms)
        request = messages.add_voter_request(cluster_id, node.as_voter, node.times.request_timeout_ms)
        return node.send(leader, request, now_ms)
    return True


def _leader_of(node: RaftNode, state: Following) -> RaftPeer:
    address = address_of(state.endpoints, node.listener)
    assert address is not None, "only a leader that can be reached is followed"
    return RaftPeer(state.leader_id, address)


def _fetch_from_best(node: RaftNode, state: Following, now_ms: float) -> float:
    """Fetch from the leader; from any server while that does not answer. Returns when to look again."""
    leader = _leader_of(node, state)
    connections = node.connections
    if connections.has_timed_out(leader, now_ms):
        connections.leave_alone(leader, now_ms)
        return _fetch_from_any(node, now_ms)
    if connections.is_backing_off(leader, now_ms):
        return _fetch_from_any(node, now_ms)
    busy_ms = connections.busy_for_ms(now_ms)
    if not busy_ms and may_fetch(node):
        download = state.download
        if download is None:
            node.send(leader, _fetch(node), now_ms)
        else:
            request = messages.fetch_snapshot_request(
                node.identity.cluster_id,
                node.key,
                state.epoch,
                download.snapshot,
                download.size,
                node.times.fetch_snapshot_max_bytes,
            )
            node.send(leader, request, now_ms)
        busy_ms = connections.busy_for_ms(now_ms)
    return now_ms + busy_ms if busy_ms else math.inf


def _fetch_from_any(node: RaftNode, now_ms: float) -> float:
    """Ask one of the bootstrap servers, whose response tells who leads. Returns when to look again."""
    busy_ms = node.connections.busy_for_ms(now_ms)
    if busy_ms:
        return now_ms + busy_ms
    if not may_fetch(node):
        return math.inf
    known = (node.identity.endpoints, node.leader_endpoints)
    useless = [address for endpoints in known if (address := address_of(endpoints, node.listener)) is not None]
    # Kafka asks bootstrap servers only. A broker that has one, which has led and is gone, would wait for it for ever.
    voters = [] if node.identity.may_vote else node.peers(node.voters.ids)
    peer = node.connections.ready_bootstrap(useless, now_ms, voters)
    if peer is None:
        return now_ms + node.connections.bootstrap_ready_in_ms(useless, now_ms, voters)
    node.send(peer, _fetch(node), now_ms)
    return now_ms + node.connections.busy_for_ms(now_ms)


def may_fetch(node: RaftNode) -> bool:
    """A fetch at an offset says that all below is on stable storage; the end of the flush comes as an event."""
    return node.log.flushed_offset == node.log.end_offset or not node.has_to_flush


def _fetch(node: RaftNode) -> FetchRequest:
    return messages.fetch_request(
        node.identity.cluster_id,
        node.key,
        node.epoch,
        node.log.end,
        -1 if node.high_watermark is None else node.high_watermark,
        max_wait_ms=node.times.max_wait_ms,
        max_bytes=node.times.fetch_max_bytes,
    )
