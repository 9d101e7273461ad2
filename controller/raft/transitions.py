"""What another node says of the epoch and its leader, and what this one makes of it (``KafkaRaftClient.maybeTransition``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import ErrorCode, KafkaError
from .election_file import NOBODY
from .leader import Leading
from .voter_set import Endpoints

if TYPE_CHECKING:
    from .node import RaftNode


class PeerRefusalError(KafkaError):
    """A response that this node can do nothing with, as it can with the next one hardly."""


def insist(node: RaftNode, holds: bool, code: ErrorCode, why: str) -> None:
    """What no node of the quorum says. It stops one whose log and votes count; a broker goes on with the metadata that it has.

    Raises PeerRefusalError.
    """
    assert holds or not node.identity.may_vote, why
    if not holds:
        raise PeerRefusalError(code, why)


def follow_told(node: RaftNode, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: float) -> None:
    """An epoch at least as high as the own one, and its leader, -1 if that is not known.

    A second leader in one epoch is a bug in one of the nodes: this one stops rather than to follow it. Raises PeerRefusalError.
    """
    is_own_id = leader_id == node.key.node_id and node.identity.may_vote  # else another process has a broker's id
    if is_own_id and not node.is_voter:
        # The leader had this node's id and another directory: this one has come with an empty disk (KIP-853). Kafka's would stop.
        leader_id = NOBODY
    elif is_own_id:
        assert epoch != node.epoch or isinstance(node.state, Leading), f"{node.state} is told that it leads {epoch}"
        assert epoch <= node.epoch, f"node {leader_id} is told that it leads epoch {epoch}"
        return
    known = node.leader_id
    is_the_one = epoch != node.epoch or NOBODY in (leader_id, known) or leader_id == known
    insist(node, is_the_one, ErrorCode.UNKNOWN_SERVER_ERROR, f"nodes {leader_id} and {known} lead epoch {epoch}")
    can_follow = leader_id != NOBODY and node.can_reach(endpoints)
    if epoch > node.epoch:
        if can_follow:
            node.become_follower(epoch, leader_id, endpoints, now_ms)
        else:
            node.become_unattached(epoch, NOBODY, now_ms)
    elif can_follow and (known == NOBODY or len(endpoints) > len(node.leader_endpoints)):
        node.become_follower(epoch, leader_id, endpoints, now_ms)
