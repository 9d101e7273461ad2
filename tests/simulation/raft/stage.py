"""A quorum without chance, for scripts: nothing is lost or late unless the script says so."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from ottla.controller.raft.messages import vote_request
from ottla.tests.simulation.raft.machine import CLUSTER_ID, RaftMachine, key_of
from ottla.tests.simulation.raft.simulation import LEADER_WITHIN_MS, add_voter, remove_voter
from ottla.tests.simulation.raft.world import QuorumWorld
from ottla.tests.simulation.run import Violation

RaftScript = Callable[["QuorumStage"], None]

NEVER_MS = 1e12


class QuorumStage:
    """See the module. Raises Violation where something that is waited for does not come."""

    def __init__(self, voters: int, controllers: int = 0, *, is_real: bool = False) -> None:
        ids = list(range(1, voters + 1))
        self.world = QuorumWorld(1, ids, range(voters + 1, voters + controllers + 1), is_real=is_real, is_verbose=True)
        for machine in self.machines.values():
            machine.sync_ms = 0.5

    @property
    def machines(self) -> dict[int, RaftMachine]:
        return self.world.machines

    def others(self, *but: int) -> list[int]:
        return [node_id for node_id in self.machines if node_id not in but]

    # --- time ---------------------------------------------------------------------------------------------------------

    def run(self, for_ms: float) -> None:
        self.world.run(self.world.now_ms + for_ms)

    def until(self, is_done: Callable[[], bool], within_ms: float = LEADER_WITHIN_MS) -> None:
        if not self.world.run(self.world.now_ms + within_ms, is_done):
            raise Violation("what the script waits for does not come")

    def leader_of(self, side: Iterable[int], *, is_committed: bool = True) -> int:
        """The leader of these nodes, once its first record is committed, or at once."""
        side = list(side)

        def found() -> list[int]:
            if is_committed:
                return [each for each in side if self.machines[each].leads is not None]
            return [each for each in side if self.machines[each].is_leader]

        self.until(lambda: bool(found()))
        return found()[0]

    def elect(self) -> int:
        """Start all, and return the first leader, whom all follow."""
        for node_id in self.machines:
            self.world.start(node_id)
        leader = self.leader_of(self.machines)
        self.until(lambda: all(self.knows(each) for each in self.machines))
        return leader

    # --- machines -----------------------------------------------------------------------------------------------------

    def end(self, node_id: int) -> int:
        return self.machines[node_id].disk.log.end_offset

    def epoch(self, node_id: int) -> int:
        node = self.machines[node_id].node
        assert node is not None
        return node.epoch

    def knows(self, node_id: int) -> bool:
        """Whether a node knows all that is committed."""
        return self.machines[node_id].high_watermark == self.world.inspector.committed_end

    def write(self, node_id: int, size: int = 10) -> None:
        self.machines[node_id].append_record(b"x" * size)
        self.run(0)

    def commit(self, node_id: int) -> None:
        """Write, and wait for the commit."""
        self.write(node_id)
        end = self.end(node_id)
        self.until(lambda: self.world.inspector.committed_end >= end)

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.machines[node_id].die(loses_power=False)

    def lose_power(self, node_id: int) -> None:
        """With all that was not synced."""
        machine = self.machines[node_id]
        machine.disk.persisting = None
        machine.die(loses_power=False)
        machine.disk.lose_power(keeps=0)

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.world.start(node_id)

    def never_syncs(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.machines[node_id].sync_ms = NEVER_MS

    def cut_off(self, node_id: int) -> None:
        for other in self.others(node_id):
            self.world.cut |= {(node_id, other), (other, node_id)}

    def mute(self, node_id: int) -> None:
        """What it sends is lost."""
        self.world.cut |= {(node_id, other) for other in self.others(node_id)}

    def heal(self) -> None:
        self.world.cut.clear()

    # --- clients ------------------------------------------------------------------------------------------------------

    def add(self, leader: int, node_id: int) -> None:
        """Add a voter, and wait until that is committed."""
        machine = self.machines[leader]
        self.until(lambda: self.knows(node_id))
        self.world.ask(leader, add_voter(node_id))
        self.until(lambda: machine.node is not None and node_id in machine.node.quorum.voters.ids)
        end = self.end(leader)
        self.until(lambda: self.world.inspector.committed_end >= end)

    def remove(self, leader: int, node_id: int) -> None:
        """Ask for a removal."""
        self.world.ask(leader, remove_voter(node_id))

    def ask_for_vote(self, node_id: int, candidate: int, epoch: int) -> None:
        """Ask a node for its vote for a candidate whose log is long enough."""
        end = (epoch - 1, 1000)
        request = vote_request(CLUSTER_ID, key_of(candidate), key_of(node_id), epoch, end, is_pre_vote=False)
        self.world.ask(node_id, request)
        self.run(100)


def perform_script(
    script: RaftScript, voters: int, controllers: int = 0, *, is_real: bool = False
) -> tuple[str, list[str]]:
    """What does not hold when a script is performed, empty if all does; and what has happened.

    With ``is_real`` the product's own log is on the disks.
    """
    stage = QuorumStage(voters, controllers, is_real=is_real)
    try:
        script(stage)
    except Violation as error:
        return str(error), stage.world.events
    except AssertionError as error:
        return f"a node has stopped: {error!r} {traceback.format_exc(limit=-2)}", stage.world.events
    return "", stage.world.events
