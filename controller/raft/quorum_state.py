"""The state of a node of a quorum: its identity, its log, the voters, its role in the epoch, and the ways to another role.

The role is one of the states in ``election``, ``follower`` and ``leader``. A method that changes it, or the log, emits effects in
the order in which they are performed. Requests (``inbound``), responses and timers (``polling``) decide when it is called.

What holds, and why (Kafka's ``QuorumState``):

- A vote, an epoch and a leadership are on stable storage before any other node hears of them: ``Persist`` comes first.
- An epoch never falls. In an epoch a node votes for one candidate, follows one leader, and never votes if it led.
- A leader's high watermark is counted by what voters have on stable storage, itself included. Kafka's leader counts itself before
  its flush.
- Followers that miss their leader stand for election one after the other, within a quarter of the fetch timeout. In Kafka they do
  not: both followers of a dead leader time out together, and split the vote.
- A voter that is removed stands for election until it knows that this is committed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ...wire.messages.control_records import KRaftVersionRecord, LeaderChangeMessage, LeaderChangeVoter
from ...wire.schema import ZERO_UUID, Message
from .effects import (
    Append,
    AppendControl,
    AppendRefused,
    DropSnapshot,
    Flush,
    HighWatermarkAdvanced,
    Persist,
    RaftEffect,
    RaftPeer,
    SendRequest,
)
from .election import EpochElection, Prospective, RaftCandidate, Resigned, Unattached
from .election_file import NOBODY, ElectionState
from .events import PreparedBatch
from .follower import RaftFollower
from .leader import RaftLeader
from .log_outline import LogOutline
from .messages import KnownLeader
from .request_manager import RaftRequestManager
from .settings import RaftTimes
from .voter_set import Endpoints, QuorumVoter, ReplicaKey, VoterSet, address_of
from .voters import KRAFT_VERSIONS, ControllerAddress

RaftState = Unattached | Prospective | RaftCandidate | Resigned | RaftFollower | RaftLeader

_TURN, _TURNS, _JITTER = 0.1, 0.2, 0.025
"""What of the fetch timeout a follower waits longer than the one before it, so that an election fits in between; the last one
than the first; and any by chance."""
_UNREACHABLE_LEADER = 0.025
"""What of the fetch timeout the first follower waits once nothing listens where its leader was."""


class RaftIdentity(NamedTuple):
    """Who a node is."""

    cluster_id: str
    key: ReplicaKey
    endpoints: Endpoints
    """Where others reach it."""
    listener: str
    """The one by which nodes of the quorum reach it."""
    may_vote: bool = True
    """Whether it is a controller, which may become a voter, and so flushes what it fetches."""


class PendingRequests(Protocol):
    """Requests that wait at a leader, and get their responses when its log or its state changes."""

    def complete_appended(self, quorum: QuorumState, leading: RaftLeader) -> None:
        """The leader has appended to its log."""

    def complete_committed(self, quorum: QuorumState, leading: RaftLeader) -> None:
        """The leader's high watermark has moved."""

    def refuse_all(self, quorum: QuorumState, left: RaftLeader) -> None:
        """The leader leads no more. ``quorum`` is in its next state."""


class QuorumState:
    """See the module."""

    def __init__(
        self,
        identity: RaftIdentity,
        times: RaftTimes,
        log: LogOutline,
        bootstrap: Sequence[ControllerAddress],
        static_voters: VoterSet,
        randomness: random.Random,
        pending: PendingRequests,
    ) -> None:
        self.identity = identity
        self.times = times
        self.log = log
        self.high_watermark: int | None = None
        """What this node knows to be committed since its start; None before it has heard."""
        self.leader_high_watermark: int | None = None
        """The leader's, which the node's own log may not have come to yet. It comes with everything that a leader sends."""
        self.shutdown_deadline_ms: float | None = None
        """When the node stops even if it is missed; None while it is not to stop."""
        self.is_stopped = False
        # Those of ``controller.quorum.voters``. They count while the log has no voters.
        self._static_voters = static_voters
        self._randomness = randomness
        self._pending = pending
        addresses = list(bootstrap) or [
            address
            for voter in static_voters.voters.values()
            if (address := address_of(voter.endpoints, identity.listener)) is not None
        ]
        peers = [RaftPeer(-2 - place, address) for place, address in enumerate(addresses)]
        self.connections = RaftRequestManager(peers, times, randomness)
        self.state: RaftState = Unattached(0, NOBODY, None, math.inf)
        self._persisted: tuple[ElectionState, int] | None = None
        """The election and the level of ``kraft.version`` in ``quorum-state``."""
        self._effects: list[RaftEffect] = []

    def initialize(self, now_ms: float, election: ElectionState | None) -> None:
        """Begin with what ``quorum-state`` says; None without that file."""
        known = election or ElectionState()
        self._persisted = None if election is None else (election, self.kraft_version)
        self.state = self._initial_state(now_ms, known)
        self.persist()
        # A single voter has nobody to wait for: its own vote elects it, also the one that it gave itself before the stop.
        if self.is_only_voter and not isinstance(self.state, RaftCandidate):
            self.become_prospective(now_ms)
        elif isinstance(self.state, RaftCandidate) and self.state.votes.is_won:
            self.become_leader(now_ms)
        self.flush()

    def _initial_state(self, now_ms: float, known: ElectionState) -> RaftState:
        voted = None if known.voted_id == NOBODY else ReplicaKey(known.voted_id, known.voted_directory_id)
        deadline = self.election_deadline(now_ms) if self.may_become_candidate else math.inf
        endpoints = self.voters.endpoints(known.leader_id)
        if known.epoch < self.log.last_epoch:
            # ``quorum-state`` is lost or older than the log, so its leader and its vote are of an epoch that is over.
            return Unattached(self.log.last_epoch, NOBODY, None, deadline)
        if known.leader_id == self.key.node_id:
            # A broker that was a controller has nothing to resign from. The epoch that Kafka's goes on to, the quorum has not.
            leads_no_more = Unattached(known.epoch, NOBODY, voted, deadline)
            return self._resigned(known.epoch, [], now_ms) if self.identity.may_vote else leads_no_more
        if (
            voted in (self.key, ReplicaKey(self.key.node_id))
            and known.leader_id == NOBODY
            and self.may_become_candidate
        ):
            # With a leader the election is over. Kafka stands again, which others find malformed once it has written.
            return RaftCandidate(known.epoch, EpochElection(self.voters, self.key.node_id), deadline)
        if known.leader_id != NOBODY and self.can_reach(endpoints):
            return self._following(known.epoch, known.leader_id, endpoints, voted, now_ms)
        return Unattached(known.epoch, known.leader_id, voted, deadline)

    # --- who this is --------------------------------------------------------------------------------------------------

    @property
    def key(self) -> ReplicaKey:
        return self.identity.key

    @property
    def listener(self) -> str:
        return self.identity.listener

    @property
    def as_voter(self) -> QuorumVoter:
        return QuorumVoter(self.key, self.identity.endpoints, *KRAFT_VERSIONS)

    # --- the voters ---------------------------------------------------------------------------------------------------

    @property
    def kraft_version(self) -> int:
        """The level of ``kraft.version`` that the log has, committed or not."""
        return self.log.quorum.kraft_version

    @property
    def voters(self) -> VoterSet:
        """The newest voter set of the log, committed or not."""
        known = self.log.quorum.voters
        return self._static_voters if known is None else known

    @property
    def is_voter(self) -> bool:
        return self.identity.may_vote and self.voters.is_voter(self.key)

    @property
    def may_become_candidate(self) -> bool:
        """Whether it may ask for votes: it is a voter, or was one before a change that may not be committed.

        Kafka has voters only. There a leader of two that removes itself, and dies before the other has heard, leaves nobody who
        can be elected: its own log is longer, and it does not stand (section 4.2.2 of Ongaro's dissertation).
        """
        if self.is_voter or not self.identity.may_vote:
            return self.is_voter
        if not self.has_uncommitted_voters:
            return False
        before = self.log.quorum_at(self.log.quorum.offset - 1).voters
        return before is not None and before.is_voter(self.key)

    @property
    def is_only_voter(self) -> bool:
        return self.identity.may_vote and self.voters.is_only_voter(self.key)

    @property
    def ignores_static_voters(self) -> bool:
        """Whether ``controller.quorum.voters`` is set, and the log has voters, which count in its place."""
        return bool(self._static_voters.voters) and self.log.quorum.voters is not None

    @property
    def has_uncommitted_voters(self) -> bool:
        """Whether the newest voter set of the log is not known to be committed."""
        entry = self.log.quorum
        return entry.voters is not None and entry.offset >= self.log.committed_offset

    # --- the leader ---------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leader_id(self) -> int:
        """Of the leader in this epoch, which is this node also when it has resigned; -1 where it is not known."""
        return self.state.leader_id

    @property
    def leader_endpoints(self) -> Endpoints:
        state = self.state
        if isinstance(state, RaftFollower):
            return state.endpoints
        if isinstance(state, Prospective):
            return state.leader_endpoints
        return self.identity.endpoints if isinstance(state, RaftLeader | Resigned) else ()

    @property
    def leader_address(self) -> ControllerAddress | None:
        """Where nodes of the quorum reach the leader, if that is known."""
        return address_of(self.leader_endpoints, self.listener)

    def known_leader(self, listener: str) -> KnownLeader:
        return KnownLeader(self.epoch, self.leader_id, address_of(self.leader_endpoints, listener))

    def can_reach(self, endpoints: Endpoints) -> bool:
        return address_of(endpoints, self.listener) is not None

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def election_deadline(self, now_ms: float) -> float:
        return now_ms + self.times.election_timeout_ms * (1 + self._randomness.random())

    def fetch_deadline(self, leader_id: int, now_ms: float) -> float:
        """When a follower that does not hear of its leader stands for election."""
        return now_ms + self.times.fetch_timeout_ms * (1 + self._turn(leader_id))

    def unreachable_leader_deadline(self, leader_id: int, now_ms: float) -> float:
        """When a follower stands for election because nothing listens at its leader's address any more."""
        return now_ms + self.times.fetch_timeout_ms * (_UNREACHABLE_LEADER + self._turn(leader_id))

    def _turn(self, leader_id: int) -> float:
        """What of the fetch timeout this follower waits longer than the first one.

        All of them miss a leader at the same moment, as a rule. They stand one after the other, by their ids, so that the vote is
        not split; whoever has the newest log wins in its turn.
        """
        others = [voter_id for voter_id in self.voters.ids if voter_id != leader_id]
        place = others.index(self.key.node_id) if self.key.node_id in others else len(others)
        turn = min(_TURN, _TURNS / max(1, len(others) - 1))
        return turn * place + _JITTER * self._randomness.random()

    # --- from state to state ------------------------------------------------------------------------------------------

    def become_unattached(self, epoch: int, leader_id: int, now_ms: float) -> None:
        """Know an epoch, and follow nobody. What is left of an election timeout goes on, unless the election was lost."""
        state = self.state
        assert epoch > state.epoch or isinstance(state, Prospective), f"epoch {epoch} in {state}"
        if not self.may_become_candidate:
            deadline = math.inf
        elif isinstance(state, RaftCandidate | Unattached | Resigned) or (
            isinstance(state, Prospective) and not state.votes.is_lost
        ):
            deadline = state.deadline_ms
        else:
            deadline = self.election_deadline(now_ms)
        if deadline == math.inf and self.may_become_candidate:
            # The state before had no timer: this node has only now become one that may stand.
            deadline = self.election_deadline(now_ms)
        voted = state.voted if isinstance(state, Prospective) and epoch == state.epoch else None
        self._enter(Unattached(epoch, leader_id, voted, deadline))

    def become_prospective(self, now_ms: float) -> None:
        state = self.state
        assert self.may_become_candidate and not isinstance(state, RaftLeader | Prospective), (
            f"{state} asks for pre-votes"
        )
        # A pre-vote raises no epoch, so the vote that was given in this one must not be forgotten.
        if isinstance(state, RaftCandidate):
            voted: ReplicaKey | None = self.key
        else:
            voted = None if isinstance(state, Resigned) else state.voted
        votes = EpochElection(self.voters, self.key.node_id)
        deadline = self.election_deadline(now_ms)
        self._enter(Prospective(state.epoch, state.leader_id, self.leader_endpoints, voted, votes, deadline))
        if votes.is_won:
            self.become_candidate(now_ms)

    def become_candidate(self, now_ms: float) -> None:
        assert self.may_become_candidate and isinstance(self.state, Prospective), f"{self.state} asks for votes"
        votes = EpochElection(self.voters, self.key.node_id)
        self._enter(RaftCandidate(self.epoch + 1, votes, self.election_deadline(now_ms)))
        if votes.is_won:
            self.become_leader(now_ms)

    def become_follower(self, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: float) -> None:
        state = self.state
        is_own_id = leader_id == self.key.node_id and self.identity.may_vote
        assert not is_own_id, f"node {leader_id} would follow itself in epoch {epoch}"
        assert epoch >= state.epoch and not (epoch == state.epoch and isinstance(state, RaftLeader)), (
            f"a second leader, {leader_id}, in epoch {epoch}"
        )
        voted: ReplicaKey | None = None
        if epoch == state.epoch:
            voted = self.key if isinstance(state, RaftCandidate) else getattr(state, "voted", None)
        self._enter(self._following(epoch, leader_id, endpoints, voted, now_ms))

    def _following(
        self, epoch: int, leader_id: int, endpoints: Endpoints, voted: ReplicaKey | None, now_ms: float
    ) -> RaftFollower:
        update_deadline = now_ms + self.times.fetch_timeout_ms
        return RaftFollower(epoch, leader_id, endpoints, voted, self.fetch_deadline(leader_id, now_ms), update_deadline)

    def become_resigned(self, now_ms: float) -> None:
        assert isinstance(self.state, RaftLeader), f"{self.state} resigns"
        self._enter(self._resigned(self.epoch, self.state.successors(), now_ms))

    def _resigned(self, epoch: int, successors: list[ReplicaKey], now_ms: float) -> Resigned:
        unacknowledged = set(self.voters.ids) - {self.key.node_id}
        return Resigned(epoch, self.key.node_id, unacknowledged, successors, self.election_deadline(now_ms))

    def become_leader(self, now_ms: float) -> None:
        state = self.state
        assert isinstance(state, RaftCandidate) and state.votes.is_won, f"{state} was not elected"
        voters = self.voters
        leading = RaftLeader(self.key, state.epoch, self.log.end_offset, voters, self.times, now_ms)
        self._enter(leading)
        # Records of earlier epochs are committed only with one of this epoch, and a controller may have none to write.
        change = LeaderChangeMessage(
            leader_id=self.key.node_id,
            voters=[LeaderChangeVoter(voter_id=voter_id) for voter_id in voters.ids],
            granting_voters=[LeaderChangeVoter(voter_id=voter_id) for voter_id in state.votes.granting],
        )
        messages: list[Message] = [change]
        known = self.log.quorum
        if not known.kraft_version:
            leading.volatile_voters = voters.with_voter(self.as_voter)
        elif known.offset < 0 or voters.needs_update(self.as_voter):
            # The set is from the 0-0 checkpoint, which others may not have, or it has this leader with other addresses.
            updated = voters.with_voter(self.as_voter)
            messages += [KRaftVersionRecord(k_raft_version=known.kraft_version), updated.to_record()]
        self.append_control(messages)

    def _enter(self, state: RaftState) -> None:
        """Leave the present state for another, which is durable unless the one before it stands for it."""
        left, self.state = self.state, state
        self.connections.reset()
        # Before anything is sent: a node that forgot its epoch or its vote in a crash could vote twice.
        if not isinstance(state, Prospective | Resigned):
            self.persist()
        if isinstance(left, RaftLeader):
            self._pending.refuse_all(self, left)
        elif isinstance(left, RaftFollower) and left.download is not None:
            self.emit(DropSnapshot(left.download.snapshot))

    def persist(self) -> None:
        """Write ``quorum-state``, if it says anything else."""
        state, voters = self.state, self.voters.ids
        voted: ReplicaKey | None = None
        if isinstance(state, RaftCandidate):
            voted = self.key
        elif isinstance(state, Unattached | Prospective | RaftFollower):
            voted = state.voted
        voted_id, directory_id = voted or (NOBODY, ZERO_UUID)
        version = min(self.kraft_version, 1)
        election = ElectionState(state.epoch, state.leader_id, voted_id, directory_id)
        if not version:
            election = election._replace(voted_directory_id=ZERO_UUID, voters=voters)
        if (election, version) != self._persisted:
            self._persisted = (election, version)
            self.emit(Persist(election, version))

    # --- the log ------------------------------------------------------------------------------------------------------

    def append(self, epoch: int, batches: Sequence[PreparedBatch]) -> None:
        """Append as the leader of ``epoch``; refused where this node is not."""
        state = self.state
        if not isinstance(state, RaftLeader) or state.epoch != epoch:
            self.emit(AppendRefused(epoch))
            return
        for batch in batches:
            offset = self.log.append(state.epoch, batch.record_count)
            self.emit(Append(offset, state.epoch, batch.records, batch.record_count))
        self._appended(state)

    def append_voters(self, voters: VoterSet) -> int:
        """Append the next voter set as the leader, which counts by it at once."""
        return self.append_control([voters.to_record()])

    def append_control(self, messages: Sequence[Message]) -> int:
        """Append a control batch as the leader; returns the offset of its last record."""
        state = self.state
        assert isinstance(state, RaftLeader), f"{state} appends"
        offset = self.log.append(state.epoch, len(messages))
        self.emit(AppendControl(offset, state.epoch, tuple((message, 0) for message in messages)))
        self.log.note_control(offset, messages)
        self._appended(state)
        return offset + len(messages) - 1

    def _appended(self, leading: RaftLeader) -> None:
        self._count_own_log(leading)
        # Followers get the records before the leader flushes them: their disks work at the same time as its own.
        self._pending.complete_appended(self, leading)
        self.flush()

    def flush(self) -> None:
        """Flush what is not, unless a flush is in flight: its end begins the next one."""
        if self.has_to_flush and self.log.begin_flush():
            self.emit(Flush(self.log.end_offset))

    def end_flush(self) -> None:
        """The flush in flight has ended."""
        self.log.end_flush()
        if isinstance(self.state, RaftLeader):
            self._count_own_log(self.state)
        self.flush()

    @property
    def has_to_flush(self) -> bool:
        """A broker's log counts for no majority (KAFKA-13884)."""
        return self.identity.may_vote

    def _count_own_log(self, leading: RaftLeader) -> None:
        """Count the leader's own log as far as it is flushed, and by the newest voter set."""
        leading.update_voter_and_observer_states(self.voters)
        leading.update_local_end_offset(self.counted_offset)
        self.advance_leader(leading)

    @property
    def counted_offset(self) -> int:
        """How far the own log counts for a majority."""
        return self.log.flushed_offset

    def advance_leader(self, leading: RaftLeader) -> None:
        """Commit what a majority of the voters has."""
        if leading.advance_high_watermark():
            assert leading.high_watermark is not None
            self.commit(leading.high_watermark)
            self._pending.complete_committed(self, leading)

    def commit(self, offset: int) -> None:
        """All below is committed; going back is ignored."""
        self.note_leader_high_watermark(offset)
        if self.high_watermark is None or offset > self.high_watermark:
            self.high_watermark = offset
            self.log.committed_offset = max(self.log.committed_offset, offset)
            self.emit(HighWatermarkAdvanced(offset))

    def note_leader_high_watermark(self, high_watermark: int) -> None:
        """A leader has said how far it has committed; -1 where it has not, in its epoch."""
        if high_watermark >= 0:
            self.leader_high_watermark = max(high_watermark, self.leader_high_watermark or 0)

    # --- effects ------------------------------------------------------------------------------------------------------

    def emit(self, effect: RaftEffect) -> None:
        self._effects.append(effect)

    def take_effects(self) -> list[RaftEffect]:
        """Those emitted since the last call, in their order."""
        effects, self._effects = self._effects, []
        return effects

    def send(self, peer: RaftPeer, request: Message, now_ms: float) -> bool:
        """Whether it was sent: not to a peer that has a request, or has just failed."""
        own = self.connections.begin(peer, request, self.log.end_offset, now_ms)
        if own is None:
            return False
        self.emit(SendRequest(own.request_id, peer, request, self.times.request_timeout_ms))
        return True

    def peers(self, node_ids: Iterable[int]) -> list[RaftPeer]:
        """Where these voters are reached."""
        return [
            RaftPeer(node_id, address)
            for node_id in node_ids
            if (address := address_of(self.voters.endpoints(node_id), self.listener)) is not None
        ]
