"""One seed of a simulated quorum: 1-5 voters and up to 3 observers, faults of every kind, then a time without any.

When faults end there is a leader within ten election timeouts, a record is committed, and all nodes come to have it.
"""

from __future__ import annotations

import dataclasses
import random
import traceback
from collections.abc import Iterable

from ottla.controller.raft import events
from ottla.tests.simulation.raft.machine import CLUSTER_ID, RaftMachine, endpoint_of, key_of
from ottla.tests.simulation.raft.world import TIMES, QuorumWorld
from ottla.tests.simulation.run import Violation
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

FAULTS_MS = 12_000
LEADER_WITHIN_MS = 10 * TIMES.election_timeout_ms


@dataclasses.dataclass
class RaftResult:
    """What came of a seed. ``violation`` is empty where everything holds."""

    seed: int
    violation: str
    events: list[str]
    steps: int = 0
    elections: int = 0
    commits: int = 0
    crashes: int = 0


def simulate_raft(seed: int, *, is_real: bool | None = None, is_verbose: bool = False) -> RaftResult:
    """Run a seed; every other one with the product's own log on its disks, unless ``is_real`` says whether."""
    world = _make_world(seed, seed % 2 == 0 if is_real is None else is_real, is_verbose)
    violation = ""
    try:
        QuorumFaults(world).run()
    except Violation as error:
        violation = str(error)
    except AssertionError as error:
        violation = f"a node has stopped: {error!r} {traceback.format_exc(limit=-2)}"
    if violation:
        world.log("VIOLATION", violation)
    return RaftResult(
        seed, violation, world.events, world.steps, world.elections, world.inspector.commits, world.crashes
    )


def _make_world(seed: int, is_real: bool, is_verbose: bool) -> QuorumWorld:
    chance = random.Random(f"{seed} make")
    voters = chance.choice([1, 2, 3, 3, 3, 3, 4, 5, 5])
    is_static = chance.random() < 0.15
    controllers = chance.choice([0, 0, 1, 1, 2])
    brokers = chance.choice([0, 0, 1])
    ids = list(range(1, voters + controllers + brokers + 1))
    return QuorumWorld(
        seed,
        ids[:voters],
        ids[voters : voters + controllers],
        ids[voters + controllers :],
        is_static=is_static,
        is_real=is_real,
        is_verbose=is_verbose,
    )


class QuorumFaults:
    """Everything that goes wrong in a seed, and the clients that go on meanwhile."""

    def __init__(self, world: QuorumWorld) -> None:
        self._world = world
        self._random = random.Random(f"{world.seed} faults")
        chance = self._random
        world.loss = chance.choice([0, 0, 0.01, 0.05, 0.2])
        world.doubled = chance.choice([0, 0.02, 0.1])
        world.delay_ms = chance.choice([0.5, 2, 10, 40])
        world.is_encoded = world.seed % 5 == 3
        world.power = chance.choice([0, 0.5, 1, 1])
        self._pause_ms = chance.choice([150, 400, 1000])
        """Between two faults, in the mean."""
        self._write_ms = chance.choice([20, 100, 400])
        sync_ms = chance.choice([0.5, 3, 20, 60])
        for machine in world.machines.values():
            machine.sync_ms = sync_ms
            if chance.random() < 0.5:
                machine.rate = chance.choice([0.5, 0.8, 1.25, 2])
        self._kinds = [
            *[self._kill] * 4,
            self._kill_soon,
            self._kill_soon,
            self._kill_all,
            self._cut_one_way,
            self._isolate,
            self._partition,
            self._heal,
            self._heal,
            self._slow_disk,
            self._fill_disk,
            self._change_rate,
            self._resign,
            self._shut_down,
        ]
        self._is_over = False
        self._written = 0

    def run(self) -> None:
        """Raises Violation, AssertionError."""
        world = self._world
        for node_id in world.machines:
            world.after(self._random.uniform(0, 500), world.start, node_id)
        for work, pause in (
            (self._write, self._write_ms),
            (self._snapshot, 300),
            (self._clean, 700),
            (self._change_voters, 500),
        ):
            world.after(self._random.expovariate(1 / pause), self._repeat, work, pause)
        world.after(700, self._repeat, self._fault, self._pause_ms)
        world.run(FAULTS_MS)
        self._recover()

    def _repeat(self, work: object, pause_ms: float) -> None:
        if not self._is_over:
            work()  # type: ignore[operator]
            self._world.after(self._random.expovariate(1 / pause_ms), self._repeat, work, pause_ms)

    # --- clients ------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        for machine in self._world.machines.values():
            self._written += 1
            machine.append_record(b"%d" % self._written)

    def _snapshot(self) -> None:
        machine = self._any()
        if machine.node is not None:
            ends = [offset for offset in self._world.inspector.digests if offset <= machine.checked_offset]
            machine.write_snapshot(self._random.choice(ends[-20:]))

    def _clean(self) -> None:
        machine = self._any()
        if machine.node is not None and machine.node.quorum.log.snapshots:
            machine.step(events.CleanRequested(self._random.choice(list(machine.node.quorum.log.snapshots))))

    def _change_voters(self) -> None:
        world = self._world
        leader = world.leader
        if leader is None or leader.node is None or leader.leads is None:
            return
        if not leader.node.quorum.kraft_version:
            leader.step(events.KRaftVersionRequested(leader.leads, 1))
            return
        voters = leader.node.quorum.voters.ids
        others = [each.node_id for each in world.machines.values() if each.identity.may_vote]
        joining = [node_id for node_id in others if node_id not in voters]
        if joining and self._random.random() < 0.6:
            world.ask(leader.node_id, add_voter(self._random.choice(joining)))
        elif len(voters) > 1:
            world.ask(leader.node_id, remove_voter(self._random.choice(voters)))

    # --- faults -------------------------------------------------------------------------------------------------------

    def _any(self) -> RaftMachine:
        return self._random.choice(list(self._world.machines.values()))

    def _fault(self) -> None:
        kind = self._random.choice(self._kinds)
        kind()

    def _kill(self) -> None:
        machine = self._world.leader if self._random.random() < 0.4 else self._any()
        if machine is not None and machine.node is not None:
            machine.die(self._world.loses_power())
            self._start_later(machine)

    def _start_later(self, machine: RaftMachine) -> None:
        delay = self._random.choice([1, 50, 500, 3000]) * self._random.random()
        self._world.after(delay, self._start, machine)

    def _start(self, machine: RaftMachine) -> None:
        if not self._is_over:
            if machine.node is None and self._random.random() < 0.1:
                machine.move()
            machine.disk.make_room()
            self._world.start(machine.node_id)

    def _kill_soon(self) -> None:
        """At one of the next effects."""
        machine = self._any()
        machine.dies_after = self._random.randint(0, 12)
        self._world.after(500, self._start, machine)

    def _kill_all(self) -> None:
        for machine in self._world.machines.values():
            if machine.node is not None:
                machine.die(self._world.loses_power())
                self._start_later(machine)

    def _cut_one_way(self) -> None:
        self._world.cut.add((self._any().node_id, self._any().node_id))

    def _isolate(self) -> None:
        leader = self._world.leader
        machine = leader if leader is not None and self._random.random() < 0.5 else self._any()
        others = [each for each in self._world.machines if each != machine.node_id]
        self._world.cut.update((machine.node_id, other) for other in others)
        self._world.cut.update((other, machine.node_id) for other in others)

    def _partition(self) -> None:
        sides = {node_id: self._random.random() < 0.5 for node_id in self._world.machines}
        self._world.cut = {(a, b) for a in sides for b in sides if sides[a] != sides[b]}

    def _heal(self) -> None:
        self._world.cut.clear()

    def _slow_disk(self) -> None:
        self._any().sync_ms = self._random.choice([1, 10, 100, 600])

    def _fill_disk(self) -> None:
        self._any().disk.fill()

    def _change_rate(self) -> None:
        self._any().change_rate(self._random.choice([0.5, 0.8, 1, 1.25, 2]))

    def _resign(self) -> None:
        leader = self._world.leader
        if leader is not None and leader.leads is not None:
            leader.step(events.ResignRequested(leader.leads))

    def _shut_down(self) -> None:
        machine = self._any()
        if machine.node is not None:
            machine.step(events.ShutdownRequested(5000))
            self._world.after(self._random.uniform(0, 3000), self._stop, machine, machine.life)

    def _stop(self, machine: RaftMachine, life: int) -> None:
        if machine.life == life and machine.node is not None:
            machine.die(loses_power=False)
            self._start_later(machine)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Without faults there is a leader soon, which commits, and which all follow; the same with one node cut off."""
        world = self._world
        self._is_over = True
        world.log("world", "heals")
        world.cut.clear()
        world.loss = world.doubled = 0.0
        world.delay_ms = min(world.delay_ms, 10)
        for machine in world.machines.values():
            machine.sync_ms = min(machine.sync_ms, 20)
            machine.disk.make_room()
            machine.dies_after = None
            machine.change_rate(1.0)
            if machine.node is not None and machine.node.quorum.shutdown_deadline_ms is not None:
                machine.die(loses_power=False)
            world.start(machine.node_id)
        if not world.run(world.now_ms + LEADER_WITHIN_MS, lambda: world.leader is not None):
            raise Violation("no leader within ten election timeouts")
        world.run(world.now_ms + 3000)  # the first one resigns, if its removal from the voters is committed now
        leader = self._leader_of(world.machines)
        self._commit(leader, list(world.machines))
        assert leader.node is not None
        if not leader.node.quorum.is_voter:
            raise Violation(f"{leader.name} leads, and is no voter")
        if len(leader.node.quorum.voters) > 2:
            self._cut_one_off(leader)
        else:
            before = leader.leads
            world.run(world.now_ms + 4 * TIMES.fetch_timeout_ms)
            if leader.leads != before:
                raise Violation(f"{leader.name} does not lead on")

    def _leader_of(self, side: Iterable[int]) -> RaftMachine:
        """The leader of these nodes, which is there soon."""
        world = self._world

        def found() -> RaftMachine | None:
            leading = [world.machines[each] for each in side if world.machines[each].leads is not None]
            return max(leading, key=lambda machine: machine.leads or 0, default=None)

        world.run(world.now_ms + LEADER_WITHIN_MS, lambda: found() is not None)
        leader = found()
        if leader is None:
            raise Violation(f"no leader of {sorted(side)} within ten election timeouts")
        return leader

    def _commit(self, leader: RaftMachine, side: list[int]) -> None:
        """A record of the leader is committed, and these nodes come to know it."""
        world = self._world
        leader.append_record(b"the end")
        assert leader.node is not None
        end = leader.node.quorum.log.end_offset

        def all_have_it() -> bool:
            nodes = [world.machines[each].node for each in side]
            return all(node is not None and (node.quorum.high_watermark or 0) >= end for node in nodes)

        if not world.run(world.now_ms + 10_000, all_have_it):
            raise Violation(f"not all of {side} come to have all below {end}")

    def _cut_one_off(self, leader: RaftMachine) -> None:
        """One voter is alone for a while. The others go on, and still do when it is back; it does not lead meanwhile."""
        world = self._world
        assert leader.node is not None
        alone = leader.node_id if self._random.random() < 0.5 else self._random.choice(leader.node.quorum.voters.ids)
        others = [each for each in world.machines if each != alone]
        world.log("world", f"node {alone} is cut off")
        world.cut = {way for other in others for way in ((alone, other), (other, alone))}
        leads = self._leader_of(others)
        self._commit(leads, others)
        world.run(world.now_ms + 4 * TIMES.fetch_timeout_ms)
        if world.machines[alone].leads is not None:
            raise Violation(f"node {alone} leads alone")
        before = leads.leads
        world.log("world", f"node {alone} is back")
        world.cut.clear()
        self._commit(leads, list(world.machines))
        world.run(world.now_ms + 2 * TIMES.fetch_timeout_ms)
        if leads.leads != before:
            raise Violation(f"{leads.name} is deposed by node {alone}, which was cut off")


def add_voter(node_id: int) -> AddRaftVoterRequest:
    name, host, port = endpoint_of(node_id)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1000,
        voter_id=node_id,
        voter_directory_id=key_of(node_id).directory_id,
        listeners=[Listener(name=name, host=host, port=port)],
    )


def remove_voter(node_id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=key_of(node_id).directory_id
    )
