"""Rules of Raft, each broken on purpose: the simulation must detect it.

A breakage disables one rule of the product by replacing a function. ``test_raft_broken_rules`` has a scenario for each, and
``make simulate RAFT=1 BREAK=vote_before_sync SEEDS=2000`` runs seeds with one until a checker detects it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.controller.raft import effects, election, inbound, polling, voter_changes
from ottla.controller.raft.election_file import NOBODY
from ottla.controller.raft.follower import RaftFollower
from ottla.controller.raft.leader import RaftLeader
from ottla.controller.raft.log_outline import Divergence, LogOutline
from ottla.controller.raft.metadata_log import MetadataLog
from ottla.controller.raft.quorum_state import QuorumState, RaftState
from ottla.controller.raft.voter_set import VoterSet
from ottla.log.memory_disk import MemoryDisk
from ottla.tests.simulation.raft.world import QuorumWorld

RaftBreakage = Callable[[pytest.MonkeyPatch], None]


def vote_before_sync(patch: pytest.MonkeyPatch) -> None:
    """A vote is told before it is on stable storage."""

    def reordered(self: QuorumWorld, new: list[effects.RaftEffect]) -> list[effects.RaftEffect]:
        later = [effect for effect in new if isinstance(effect, effects.Persist)]
        return [effect for effect in new if not isinstance(effect, effects.Persist)] + later

    patch.setattr(QuorumWorld, "reordered", reordered)


def fetch_before_flush(patch: pytest.MonkeyPatch) -> None:
    """A voter fetches at offsets that are not on stable storage."""
    patch.setattr(polling, "may_fetch", lambda quorum: True)


def unflushed_leader_counts(patch: pytest.MonkeyPatch) -> None:
    """A leader counts its own log before it is flushed, as Kafka's does."""
    patch.setattr(QuorumState, "counted_offset", property(lambda self: self.log.end_offset))


def watermark_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """Records of earlier epochs are committed as soon as a majority has them."""
    patch.setattr(RaftLeader, "_is_of_own_epoch", lambda self, offset: True)


def no_resigned_start(patch: pytest.MonkeyPatch) -> None:
    """A leader that is started again leads on in its epoch (KAFKA-10527)."""
    initial_state = QuorumState._initial_state

    def led_on(self: QuorumState, now_ms: float, known: Any) -> RaftState:
        state = initial_state(self, now_ms, known)
        if isinstance(state, election.Resigned) and self.is_voter:
            votes = election.EpochElection(VoterSet([self.as_voter]), self.key.node_id)
            return election.RaftCandidate(state.epoch, votes, state.deadline_ms)
        return state

    patch.setattr(QuorumState, "_initial_state", led_on)


def followers_vote(patch: pytest.MonkeyPatch) -> None:
    """A follower grants votes in the epoch of its leader, and a candidate in its own."""

    def may_grant(self: Any, candidate: Any, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_up_to_date

    patch.setattr(RaftFollower, "may_grant", may_grant)
    patch.setattr(election.RaftCandidate, "may_grant", may_grant)


def forgets_its_vote(patch: pytest.MonkeyPatch) -> None:
    """A voter grants every vote that it is asked for."""

    def may_grant(leader_id: int, voted: Any, candidate: Any, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_up_to_date

    patch.setattr(election, "may_grant_unled", may_grant)


def votes_for_any_log(patch: pytest.MonkeyPatch) -> None:
    """A vote is granted to a candidate whose log ends earlier."""
    patch.setattr(inbound, "is_up_to_date", lambda quorum, end: True)


def truncation_by_offset(patch: pytest.MonkeyPatch) -> None:
    """A leader compares only where logs end: it does not look at the epoch of a follower's last record."""

    def check_fetch(self: LogOutline, offset: int, epoch: int) -> Any:
        if offset > self.end_offset:
            return Divergence(self.last_epoch, self.end_offset)
        return check(self, offset, self.epoch_at(offset - 1)) if offset else check(self, offset, epoch)

    check = LogOutline.check_fetch
    patch.setattr(LogOutline, "check_fetch", check_fetch)


def voters_when_committed(patch: pytest.MonkeyPatch) -> None:
    """A voter set counts only when it is committed."""

    def voters(self: QuorumState) -> VoterSet:
        committed = self.log.quorum_at(self.log.committed_offset - 1).voters
        return self._static_voters if committed is None else committed

    patch.setattr(QuorumState, "voters", property(voters))


def voters_at_once(patch: pytest.MonkeyPatch) -> None:
    """A change of the voters begins before the last one is committed."""

    def committed_voters(quorum: QuorumState, leading: RaftLeader, now_ms: float, change: str = "") -> VoterSet:
        leading.adding = leading.removing = None
        return quorum.voters

    patch.setattr(voter_changes, "committed_voters", committed_voters)


def removed_leader_stays(patch: pytest.MonkeyPatch) -> None:
    """A leader that is no voter any more leads on."""
    complete = voter_changes.complete_committed

    def complete_committed(quorum: QuorumState, leading: RaftLeader) -> None:
        complete(quorum, leading)
        leading.is_resign_requested = False

    patch.setattr(voter_changes, "complete_committed", complete_committed)


def removed_voters_never_stand(patch: pytest.MonkeyPatch) -> None:
    """Only voters of the newest set stand for election, as in Kafka."""
    patch.setattr(QuorumState, "may_become_candidate", property(lambda self: self.is_voter))


def no_check_quorum(patch: pytest.MonkeyPatch) -> None:
    """A leader that nobody follows leads on."""
    patch.setattr(RaftLeader, "check_quorum_deadline_ms", float("inf"))


def single_voters_check_quorum(patch: pytest.MonkeyPatch) -> None:
    """A leader that is the only voter resigns because nobody fetches (KAFKA-16144)."""
    patch.setattr(RaftLeader, "check_quorum_deadline_ms", property(lambda self: self._check_quorum_ms))


def old_leaders_vote(patch: pytest.MonkeyPatch) -> None:
    """A leader that is started again votes for another in the epoch that it led."""
    initial_state = QuorumState._initial_state

    def begin_anew(self: QuorumState, now_ms: float, known: Any) -> RaftState:
        has_led = known.leader_id == self.key.node_id
        return initial_state(self, now_ms, known._replace(leader_id=NOBODY) if has_led else known)

    patch.setattr(QuorumState, "_initial_state", begin_anew)


def no_pre_vote(patch: pytest.MonkeyPatch) -> None:
    """A node stands for election without asking first."""
    become = QuorumState.become_prospective

    def become_prospective(self: QuorumState, now_ms: float) -> None:
        become(self, now_ms)
        if isinstance(self.state, election.Prospective):
            self.become_candidate(now_ms)

    patch.setattr(QuorumState, "become_prospective", become_prospective)


def name_not_synced(patch: pytest.MonkeyPatch) -> None:
    """``quorum-state`` is renamed, and the directory is not synced, as in Kafka."""
    write_file = MemoryDisk.write_file

    def without_name(self: MemoryDisk, path: str, data: bytes, *, sync: bool = True, sync_name: bool = True) -> None:
        write_file(self, path, data, sync=sync, sync_name=False)

    patch.setattr(MemoryDisk, "write_file", without_name)


def flush_of_nothing(patch: pytest.MonkeyPatch) -> None:
    """A flush ends without anything on stable storage."""
    patch.setattr(MetadataLog, "flush_at_once", lambda self: None)


BREAKAGES: dict[str, RaftBreakage] = {
    breakage.__name__: breakage
    for breakage in (
        vote_before_sync,
        fetch_before_flush,
        unflushed_leader_counts,
        watermark_of_earlier_epochs,
        no_resigned_start,
        followers_vote,
        forgets_its_vote,
        votes_for_any_log,
        truncation_by_offset,
        voters_when_committed,
        voters_at_once,
        removed_leader_stays,
        removed_voters_never_stand,
        no_check_quorum,
        single_voters_check_quorum,
        old_leaders_vote,
        no_pre_vote,
        name_not_synced,
        flush_of_nothing,
    )
}
