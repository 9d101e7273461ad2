"""A Raft node's transition to the epoch and leader in another node's message (``KafkaRaftClient.maybeTransition``)."""

from __future__ import annotations

from ...base.errors import ErrorCode, KafkaError
from .election_file import NOBODY
from .leader import RaftLeader
from .quorum_state import QuorumState
from .voter_set import Endpoints


class PeerRefusalError(KafkaError):
    """A response that this node can do nothing with, as it can with the next one hardly."""


def require(quorum: QuorumState, holds: bool, code: ErrorCode, why: str) -> None:
    """Refuse what no node of the quorum says. It stops a controller; a broker goes on with the metadata that it has.

    Raises PeerRefusalError.
    """
    assert holds or not quorum.identity.may_vote, why
    if not holds:
        raise PeerRefusalError(code, why)


def maybe_transition(quorum: QuorumState, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: float) -> None:
    """Follow the leader of an epoch at least as high as the own one; ``leader_id`` is -1 if it is not known.

    A second leader in one epoch is a bug in one of the nodes: this one stops rather than to follow it. Raises PeerRefusalError.
    """
    is_own_id = leader_id == quorum.key.node_id and quorum.identity.may_vote  # else another process has a broker's id
    if is_own_id and not quorum.is_voter:
        # The leader had this node's id and another directory: this one has come with an empty disk (KIP-853). Kafka's would stop.
        leader_id = NOBODY
    elif is_own_id:
        assert epoch != quorum.epoch or isinstance(quorum.state, RaftLeader), (
            f"{quorum.state} is named as the leader of {epoch}"
        )
        assert epoch <= quorum.epoch, f"node {leader_id} is named as the leader of epoch {epoch}"
        return
    known = quorum.leader_id
    is_the_one = epoch != quorum.epoch or NOBODY in (leader_id, known) or leader_id == known
    require(quorum, is_the_one, ErrorCode.UNKNOWN_SERVER_ERROR, f"nodes {leader_id} and {known} lead epoch {epoch}")
    can_follow = leader_id != NOBODY and quorum.can_reach(endpoints)
    if epoch > quorum.epoch:
        if can_follow:
            quorum.become_follower(epoch, leader_id, endpoints, now_ms)
        else:
            quorum.become_unattached(epoch, NOBODY, now_ms)
    # In the same epoch only for news: to follow the leader anew forgets requests in flight, and begins its timeout again.
    elif can_follow and (known == NOBODY or len(endpoints) > len(quorum.leader_endpoints)):
        quorum.become_follower(epoch, leader_id, endpoints, now_ms)
