"""What must hold of a quorum at all times, looked at after every step of every node.

- There is one leader in an epoch. A node's epoch never falls below one that it has told another node.
- A voter votes for one candidate in an epoch, across all its lives; who led votes for no other.
- What a node takes for committed is the same on all nodes for ever, in log or snapshot, and is on stable storage of a majority of
  the voters that the leader counts by. Each leader has all of it. Nothing of it is cut off.
- The high watermark never falls while a node lives.
- Consecutive voter sets differ by one voter, and a leader has at most one change that is not committed.
- The node's outline of its log is what is on its disk.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING

from ottla.controller.raft.leader import RaftLeader
from ottla.controller.raft.voter_set import ReplicaKey
from ottla.tests.simulation.raft.disk import StoredBatch
from ottla.tests.simulation.run import Violation

if TYPE_CHECKING:
    from ottla.tests.simulation.raft.machine import RaftMachine


class QuorumInspector:
    """See the module. Raises Violation."""

    def __init__(self) -> None:
        self.leaders: dict[int, ReplicaKey] = {}
        self.votes: dict[tuple[ReplicaKey, int], int] = {}
        self.committed: list[StoredBatch] = []
        self.digests: dict[int, bytes] = {0: b""}
        """Of all that is committed below an offset that ends a batch."""
        self.commits = 0

    @property
    def committed_end(self) -> int:
        return self.committed[-1].next_offset if self.committed else 0

    def batch_at(self, offset: int) -> StoredBatch | None:
        """The committed batch that begins there."""
        low, high = 0, len(self.committed)
        while low < high:
            middle = (low + high) // 2
            if self.committed[middle].base_offset < offset:
                low = middle + 1
            else:
                high = middle
        found = self.committed[low] if low < len(self.committed) else None
        return found if found is not None and found.base_offset == offset else None

    def check(self, what: bool, message: str) -> None:
        if not what:
            raise Violation(message)

    # --- elections ----------------------------------------------------------------------------------------------------

    def voted(self, voter: ReplicaKey, epoch: int, candidate_id: int) -> None:
        known = self.votes.setdefault((voter, epoch), candidate_id)
        self.check(known == candidate_id, f"{voter.node_id} votes for {known} and for {candidate_id} in epoch {epoch}")

    def stepped(self, machine: RaftMachine) -> None:
        """A node has made a step, whose effects are not performed yet."""
        assert machine.node is not None
        quorum = machine.node.quorum
        state = quorum.state
        self.check(state.epoch >= machine.told_epoch, f"{machine.name} goes back to epoch {state.epoch}")
        if quorum.high_watermark is not None:
            self.check(quorum.high_watermark >= machine.high_watermark, f"high watermark of {machine.name} falls")
            machine.high_watermark = quorum.high_watermark
        if isinstance(state, RaftLeader) and machine.led_epoch != state.epoch:
            machine.led_epoch = state.epoch
            known = self.leaders.setdefault(state.epoch, quorum.key)
            self.check(known == quorum.key, f"{known.node_id} and {quorum.key.node_id} lead epoch {state.epoch}")
            self.voted(quorum.key, state.epoch, quorum.key.node_id)
            self.check(
                state.epoch_start_offset >= self.committed_end,
                f"{machine.name} leads epoch {state.epoch} without all that is committed",
            )
        history = quorum.log.history
        if history and history[-1] is not machine.newest_quorum:
            machine.newest_quorum = history[-1]
            self._check_voters(machine)

    def _check_voters(self, machine: RaftMachine) -> None:
        assert machine.node is not None
        quorum = machine.node.quorum
        changes = []
        sets = [entry for entry in quorum.log.history if entry.voters is not None]
        for before, after in itertools.pairwise(sets):
            assert before.voters is not None and after.voters is not None
            changed = set(before.voters.keys) ^ set(after.voters.keys)
            self.check(len(changed) <= 1, f"voters of {machine.name} go from {before.voters} to {after.voters}")
            if changed:
                changes.append(after.offset)
        state = quorum.state
        if isinstance(state, RaftLeader) and state.high_watermark is not None:
            uncommitted = [offset for offset in changes if offset >= state.high_watermark]
            self.check(len(uncommitted) <= 1, f"{machine.name} changes voters at {uncommitted} at once")

    # --- the log ------------------------------------------------------------------------------------------------------

    def advanced(self, machine: RaftMachine, high_watermark: int) -> None:
        """A node takes all below ``high_watermark`` for committed; its log has it."""
        disk = machine.disk
        while machine.checked_offset < high_watermark:
            offset = machine.checked_offset
            batch = disk.log.find(offset)
            if batch is None or batch.base_offset != offset:
                self._check_snapshot(machine, offset)
                if machine.checked_offset == offset:
                    raise Violation(f"{machine.name} has no batch at {offset}, which it takes for committed")
                continue
            known = self.batch_at(offset)
            if known is None:
                self.check(offset == self.committed_end, f"{machine.name} commits at {offset} within a batch")
                self._commit(machine, batch)
            else:
                self.check(known == batch, f"{machine.name} has another batch at {offset} than was committed")
            machine.checked_offset = batch.next_offset

    def _commit(self, machine: RaftMachine, batch: StoredBatch) -> None:
        assert machine.node is not None
        quorum = machine.node.quorum
        state = quorum.state
        if isinstance(state, RaftLeader):
            voters = [machine.world.machines[voter_id] for voter_id in state.voters]
            having = sum(voter.disk.remove_pending_sync_member(batch) for voter in voters)
            self.check(
                having > len(voters) // 2,
                f"{machine.name} commits {batch.base_offset}, which {having} of {len(voters)} voters have synced",
            )
        digest = hashlib.blake2b(self.digests[batch.base_offset] + batch.data, digest_size=8).digest()
        self.digests[batch.next_offset] = digest
        self.committed.append(batch)
        self.commits += 1

    def _check_snapshot(self, machine: RaftMachine, offset: int) -> None:
        for snapshot, data in machine.disk.snapshots.items():
            if snapshot.end_offset > offset and (digest := self.digests.get(snapshot.end_offset)) is not None:
                self.check(digest in data, f"the snapshot {snapshot} of {machine.name} differs from what was committed")
                machine.checked_offset = snapshot.end_offset
                return

    def truncated(self, machine: RaftMachine, offset: int) -> None:
        """A node is about to cut its log."""
        known = self.batch_at(offset)
        if known is not None and machine.disk.log.find(offset) == known:
            raise Violation(f"{machine.name} cuts off {offset}, which is committed")

    def rested(self, machine: RaftMachine) -> None:
        """All effects of a node are performed."""
        assert machine.node is not None
        known, log = machine.node.quorum.log, machine.disk.log
        self.check(
            known.end_offset == log.end_offset,
            f"{machine.name} believes in {known.end_offset}, and has {log.end_offset}",
        )
        if log.batches:
            self.check(known.last_epoch == log.last_epoch, f"{machine.name} believes in another epoch than it has")
