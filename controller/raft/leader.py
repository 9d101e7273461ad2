"""The leader state of a Raft node: replica progress, high watermark, and the check for a majority (KIP-595).

The high watermark is the offset that a majority of the newest voter set has on stable storage, once that is behind the first
record of the leader's own epoch. Records of earlier epochs are committed by that record only: a majority that has them can be
outvoted by a log that ends in a later epoch. The leader counts its own log as far as it is flushed, and a voter's fetch at an
offset says that everything below is on its stable storage.
"""

from __future__ import annotations

import dataclasses
import math

from .settings import RaftTimes
from .voter_set import Endpoints, ReplicaKey, VoterSet

OBSERVER_TIMEOUT_MS = 300_000
"""An observer is forgotten after so long without a fetch."""
CAUGHT_UP_WITHIN_MS = 3_600_000
"""An observer becomes a voter only if it has fetched within this time, and was at the log's end once."""


@dataclasses.dataclass(eq=False)
class ReplicaProgress:
    """What the leader knows of a voter or an observer. Times in ms on the monotonic clock."""

    key: ReplicaKey
    end_offset: int | None = None
    """The offset of its last fetch, of the leader itself the end of what is flushed; None before there is one."""
    last_fetch_ms: float = -math.inf
    last_caught_up_ms: float = -math.inf
    """The last time at which it had all that the leader had."""
    leader_end_at_fetch: int = -1
    """The leader's log end offset at the last fetch."""

    def update_follower_state(self, offset: int, leader_end: int, now_ms: float) -> None:
        if offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif 0 < self.leader_end_at_fetch <= offset:
            # It has what the leader had at its last fetch. While records come without a pause it never reaches the very end.
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.leader_end_at_fetch = leader_end
        self.last_fetch_ms = now_ms
        self.end_offset = offset


@dataclasses.dataclass(eq=False)
class PendingFetch:
    """A Fetch that waits for records, or for the high watermark to move."""

    request_id: int
    request: object
    listener: str
    """The one that it came by; the response names the leader's address of this listener."""
    offset: int
    """The log's end in the follower."""
    deadline_ms: float


@dataclasses.dataclass(eq=False)
class PendingAdd:
    """A voter that is added: asked for its versions first, then in the log."""

    request_id: int
    key: ReplicaKey
    endpoints: Endpoints
    acks_when_committed: bool
    deadline_ms: float
    offset: int | None = None
    """Where the new set is in the log; None before that."""
    has_response: bool = False
    """Whether it was responded to when the new set was appended, before that is committed."""


@dataclasses.dataclass(eq=False)
class PendingRemove:
    """A voter that is removed."""

    request_id: int
    offset: int
    """Where the set without it is in the log."""
    deadline_ms: float


class RaftLeader:
    """The state of a leader; see the module."""

    def __init__(
        self, own: ReplicaKey, epoch: int, start_offset: int, voters: VoterSet, times: RaftTimes, now_ms: float
    ) -> None:
        self.own = own
        self.leader_id = own.node_id
        self.epoch = epoch
        self.epoch_start_offset = start_offset
        """The offset of the epoch's first record, LeaderChangeMessage."""
        self.high_watermark: int | None = None
        """None until a record of the leader's own epoch is committed."""
        self.voters: dict[int, ReplicaProgress] = {key.node_id: ReplicaProgress(key) for key in voters.keys}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        """By id and directory: a node that has lost its disk is another observer."""
        self.waiting: list[PendingFetch] = []
        self.adding: PendingAdd | None = None
        self.removing: PendingRemove | None = None
        self.volatile_voters: VoterSet = voters
        """With ``kraft.version`` 0: the static voters with what they have told of themselves."""
        self.is_resign_requested = False
        self.begin_quorum_ms = now_ms
        """When BeginQuorumEpoch is sent next."""
        # The voters that have followed since the timer of ``check_quorum_deadline_ms`` has begun.
        self._fetched: set[int] = set()
        self._times = times
        self._check_quorum_ms = now_ms + times.check_quorum_timeout_ms

    def may_grant(self, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return False

    # --- replicas -----------------------------------------------------------------------------------------------------

    def replica(self, key: ReplicaKey) -> ReplicaProgress:
        """A replica whose directory is not the voter's is an observer of its own."""
        voter = self.voters.get(key.node_id)
        if voter is not None and _matches(voter.key, key):
            return voter
        return self.observers.setdefault(key, ReplicaProgress(key))

    def is_voter(self, key: ReplicaKey) -> bool:
        voter = self.voters.get(key.node_id)
        return voter is not None and _matches(voter.key, key)

    def update_voter_and_observer_states(self, voters: VoterSet) -> None:
        """Count by another voter set from now on; what is known of each replica is kept."""
        known = dict(self.voters)
        self.voters = {}
        for key in voters.keys:
            progress = known.pop(key.node_id, None)
            if progress is None or not _matches(progress.key, key):
                if progress is not None:
                    # The id stays and the directory is another one: what the old disk had must not count for the new one.
                    self.observers[progress.key] = progress
                progress = self.observers.pop(key, None) or ReplicaProgress(key)
            progress.key = key
            self.voters[key.node_id] = progress
        self.observers.update({progress.key: progress for progress in known.values()})

    def clear_inactive_observers(self, now_ms: float) -> None:
        self.observers = {
            key: progress
            for key, progress in self.observers.items()
            if key == self.own or now_ms - progress.last_fetch_ms < OBSERVER_TIMEOUT_MS
        }

    def has_caught_up(self, key: ReplicaKey, now_ms: float) -> bool:
        progress = self.observers.get(key)
        return (
            progress is not None
            and progress.last_caught_up_ms > -math.inf
            and progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    def successors(self) -> list[ReplicaKey]:
        """The other voters, those with most of the log first."""
        others = [progress for progress in self.voters.values() if progress.key.node_id != self.own.node_id]
        return [progress.key for progress in sorted(others, key=_by_offset)]

    def non_acknowledging_voters(self, now_ms: float) -> list[ReplicaKey]:
        """Voters that have not fetched lately, and may not know who leads."""
        oldest = now_ms - self._times.begin_quorum_interval_ms
        return [
            progress.key
            for progress in self.voters.values()
            if progress.key.node_id != self.own.node_id and progress.last_fetch_ms <= oldest
        ]

    # --- the high watermark -------------------------------------------------------------------------------------------

    def update_local_end_offset(self, flushed_offset: int) -> None:
        self.replica(self.own).end_offset = flushed_offset

    def advance_high_watermark(self) -> bool:
        """Whether it has moved. A new voter set may have less; it never falls (LeaderState.maybeUpdateHighWatermark)."""
        # By falling offsets: the voter in the middle and all before it are a majority that has this offset.
        offset = sorted(self.voters.values(), key=_by_offset)[len(self.voters) // 2].end_offset
        if offset is None or not self._is_of_own_epoch(offset):
            return False
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def _is_of_own_epoch(self, offset: int) -> bool:
        return offset > self.epoch_start_offset

    # --- check quorum -------------------------------------------------------------------------------------------------

    def update_check_quorum_for_following_voter(self, key: ReplicaKey, now_ms: float) -> None:
        """A voter follows; a majority of them, with the leader if it is one, starts the timer anew."""
        if self.is_voter(key) and key.node_id != self.own.node_id:
            self._fetched.add(key.node_id)
        needed = len(self.voters) // 2 + 1 - (self.own.node_id in self.voters)
        if len(self._fetched & self.voters.keys()) >= needed:
            self._fetched.clear()
            self._check_quorum_ms = now_ms + self._times.check_quorum_timeout_ms

    @property
    def check_quorum_deadline_ms(self) -> float:
        """When the leader resigns because no majority follows. A single voter never does (KAFKA-16144)."""
        return math.inf if len(self.voters) == 1 else self._check_quorum_ms

    @property
    def begin_quorum_deadline_ms(self) -> float:
        return self.begin_quorum_ms if self.voters.keys() - {self.own.node_id} else math.inf


def _matches(known: ReplicaKey, key: ReplicaKey) -> bool:
    return known == key or known == ReplicaKey(key.node_id)


def _by_offset(progress: ReplicaProgress) -> tuple[float, ReplicaKey]:
    return (math.inf if progress.end_offset is None else -progress.end_offset), progress.key
