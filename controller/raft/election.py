"""The states of a Raft node that does not lead: knowledge of the epoch, and the votes it grants (KIP-595, KIP-996).

===========  ==========================================  =============================  ================================
state        pre-vote is granted                         vote is granted                is durable
===========  ==========================================  =============================  ================================
Unattached   to a log that is up to date                 once, while no leader is       yes
                                                         known, to such a log
Prospective  the same                                    the same                       no: the state before it is
Candidate    the same                                    no: it is its own              yes, before it asks for votes
Resigned     the same                                    no: it led in this epoch       no: it is the leader's
===========  ==========================================  =============================  ================================

Deadlines are in ms on the monotonic clock; infinity for an observer, which does not stand for election.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .election_file import NOBODY
from .voter_set import Endpoints, ReplicaKey, VoterSet


class EpochElection:
    """The votes of one election; the candidate's own is counted from the start."""

    def __init__(self, voters: VoterSet, own_id: int) -> None:
        self._votes: dict[ReplicaKey, bool | None] = dict.fromkeys(voters.keys)
        self.record(own_id, True)

    def record(self, node_id: int, is_granted: bool) -> None:
        """A later response of the same voter counts instead of its first; one of no voter does not."""
        for key in self._votes:
            if key.node_id == node_id:
                self._votes[key] = is_granted

    @property
    def granting(self) -> list[int]:
        return [key.node_id for key, vote in self._votes.items() if vote]

    @property
    def unrecorded(self) -> list[ReplicaKey]:
        return [key for key, vote in self._votes.items() if vote is None]

    @property
    def is_won(self) -> bool:
        return len(self.granting) >= len(self._votes) // 2 + 1

    @property
    def is_lost(self) -> bool:
        return len(self.granting) + len(self.unrecorded) < len(self._votes) // 2 + 1


@dataclasses.dataclass(eq=False)
class Unattached:
    """The node knows an epoch, and follows nobody in it."""

    epoch: int
    leader_id: int
    """Of a leader that is known, but not how it is reached."""
    voted: ReplicaKey | None
    deadline_ms: float

    def may_grant(self, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return may_grant_unled(self.leader_id, self.voted, candidate, is_up_to_date, is_pre_vote)


@dataclasses.dataclass(eq=False)
class Prospective:
    """The node asks whether it would be elected, and raises no epoch for it."""

    epoch: int
    leader_id: int
    leader_endpoints: Endpoints
    voted: ReplicaKey | None
    votes: EpochElection
    deadline_ms: float

    def may_grant(self, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return may_grant_unled(self.leader_id, self.voted, candidate, is_up_to_date, is_pre_vote)


@dataclasses.dataclass(eq=False)
class RaftCandidate:
    """The node has voted for itself, and asks for votes."""

    epoch: int
    votes: EpochElection
    deadline_ms: float
    leader_id: int = NOBODY

    def may_grant(self, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_pre_vote and is_up_to_date


@dataclasses.dataclass(eq=False)
class Resigned:
    """The node led in this epoch. It tells the voters whom it prefers, and never votes for another in it.

    A node that was stopped as a leader begins so too: it may have lost records that it wrote, and if it led again in the same
    epoch, others would be written with the same offset and epoch.
    """

    epoch: int
    leader_id: int
    unacknowledged: set[int]
    successors: list[ReplicaKey]
    deadline_ms: float

    def may_grant(self, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_pre_vote and is_up_to_date


def may_grant_unled(
    leader_id: int, voted: ReplicaKey | None, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool
) -> bool:
    """Kafka's ``QuorumState.unattachedOrProspectiveCanGrantVote``; a vote that is asked for twice is granted twice."""
    if is_pre_vote:
        return is_up_to_date
    if voted is not None:
        unknown: Any = ReplicaKey(voted.node_id)
        return voted in (candidate, unknown) and voted.node_id == candidate.node_id
    return leader_id == NOBODY and is_up_to_date


def successor_backoff_ms(successors: list[ReplicaKey], own: ReplicaKey, backoff_max_ms: int) -> int:
    """How long a voter waits after its leader has resigned: the preferred one not at all, those behind it ever longer.

    Nobody waits for a leader that names nobody, as one that was restarted.
    """
    total = len(successors)
    unknown = ReplicaKey(own.node_id)
    position = next((place for place, key in enumerate(successors) if key in (own, unknown)), total)
    if position == 0:
        return 0
    if position >= total:
        return backoff_max_ms
    return min(backoff_max_ms, (backoff_max_ms >> (total - 1)) << (position - 1))
