"""Quorums of several nodes that must elect a leader and commit: at the start, after failures, and with some links cut (KIP-996).

The situations are those of Kafka's ``RaftEventSimulationTest``. Time and chance are the simulation's, and its inspector looks at
every step; nothing is lost but by the links that are cut.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from ottla.controller.raft import events
from ottla.tests.simulation.raft.disk import ModelDisk
from ottla.tests.simulation.raft.machine import RaftMachine
from ottla.tests.simulation.raft.world import QuorumWorld

WITHIN_MS = 30_000
WRITE_EVERY_MS = 50

SEED = 1
SIZES = pytest.mark.parametrize(("voters", "observers"), [(1, 0), (1, 2), (2, 1), (3, 0), (4, 1), (5, 3)])
MAJORITIES = pytest.mark.parametrize(("voters", "observers"), [(3, 0), (3, 2), (4, 1), (5, 3)])


def quorum(voters: int, observers: int = 0, *, is_static: bool = False) -> QuorumWorld:
    """All started, and whoever leads writes."""
    ids = range(1, voters + 1)
    world = QuorumWorld(SEED, ids, brokers=range(voters + 1, voters + observers + 1), is_static=is_static)
    for node_id in world.machines:
        world.start(node_id)
    keep_writing(world)
    return world


def keep_writing(world: QuorumWorld) -> None:
    for machine in world.machines.values():
        machine.append_record(b"record")
    world.after(WRITE_EVERY_MS, keep_writing, world)


def until(world: QuorumWorld, is_done: Callable[[], bool]) -> None:
    assert world.run(world.now_ms + WITHIN_MS, is_done), "the quorum makes no progress"


def running(world: QuorumWorld) -> list[RaftMachine]:
    return [machine for machine in world.machines.values() if machine.node is not None]


def has_leader(world: QuorumWorld) -> bool:
    """Whether all that run know of the same one, which knows that it leads."""
    known = {(machine.node.epoch, machine.node.leader_id) for machine in running(world) if machine.node}
    return len(known) == 1 and world.leader is not None and known == {(world.leader.leads, world.leader.node_id)}


def reach(world: QuorumWorld, offset: int, node_ids: Iterable[int] | None = None) -> None:
    """Wait until these nodes, or all that run, know that everything below is committed."""
    machines = running(world) if node_ids is None else [world.machines[each] for each in node_ids]
    until(world, lambda: all(machine.high_watermark >= offset for machine in machines))


def committed(world: QuorumWorld) -> int:
    return world.inspector.committed_end


def leader_of(world: QuorumWorld) -> int:
    until(world, lambda: has_leader(world))
    assert world.leader is not None
    return world.leader.node_id


def cut(world: QuorumWorld, source: int, *targets: int) -> None:
    """What ``source`` sends to these is lost."""
    world.cut |= {(source, target) for target in targets}


def cut_off(world: QuorumWorld, node_id: int) -> None:
    for other in world.machines:
        cut(world, node_id, other)
        cut(world, other, node_id)


@SIZES
@pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])
def test_a_first_leader_is_elected(voters: int, observers: int, is_static: bool) -> None:
    world = quorum(voters, observers, is_static=is_static)
    leader_of(world)
    reach(world, 10)


@MAJORITIES
@pytest.mark.parametrize("how", ["killed", "power", "shut down"])
def test_a_leader_fails_and_comes_back(voters: int, observers: int, how: str) -> None:
    world = quorum(voters, observers)
    leader = leader_of(world)
    reach(world, 10)
    machine = world.machines[leader]
    if how == "shut down":
        machine.step(events.ShutdownRequested(5000))
        until(world, lambda: machine.node is not None and machine.node.quorum.is_stopped)
    machine.die(loses_power=how == "power")
    reach(world, committed(world) + 10)
    world.start(leader)
    reach(world, committed(world) + 10)


@SIZES
@pytest.mark.parametrize("loses_power", [False, True], ids=["killed", "power"])
def test_all_fail_and_a_majority_comes_back(voters: int, observers: int, loses_power: bool) -> None:
    world = quorum(voters, observers)
    reach(world, 10)
    for machine in running(world):
        machine.die(loses_power)
    for node_id in range(1, voters // 2 + 2):
        world.start(node_id)
    reach(world, committed(world) + 10)


@MAJORITIES
def test_a_leader_is_cut_off(voters: int, observers: int) -> None:
    """It resigns, and when it is back it follows."""
    world = quorum(voters, observers)
    leader = leader_of(world)
    reach(world, 10)
    cut_off(world, leader)
    rest = [each for each in world.machines if each != leader]
    reach(world, committed(world) + 10, rest)
    world.run(world.now_ms + 5000)
    assert world.machines[leader].leads is None
    world.cut.clear()
    reach(world, committed(world) + 10)
    assert world.leader is not None and world.leader.node_id != leader


@pytest.mark.parametrize("observers", [0, 3])
def test_a_majority_is_cut_off_from_a_minority(observers: int) -> None:
    """It goes on alone; the minority commits nothing."""
    world = quorum(5, observers)
    leader_of(world)
    reach(world, 10)
    minority, majority = (1, 2), (3, 4, 5)
    for node_id in minority:
        cut(world, node_id, *majority)
    for node_id in majority:
        cut(world, node_id, *minority)
    end = max(machine.disk.log.end_offset for machine in running(world))
    reach(world, 2 * end, majority)
    assert all(world.machines[each].high_watermark < 2 * end for each in minority)
    world.cut.clear()
    reach(world, committed(world) + 10)


def cut_as_in_kip_996(world: QuorumWorld, a: int, b: int, c: int, d: int, e: int) -> None:
    """``a`` reaches only ``c``, and ``b`` only ``d``; ``c``, ``d`` and ``e`` reach each other."""
    cut(world, a, b, d, e)
    cut(world, b, a, c, e)
    cut(world, c, b)
    cut(world, d, a)
    cut(world, e, a, b)


@pytest.mark.parametrize("observers", [0, 3])
def test_a_leader_is_elected_once_where_some_do_not_reach_each_other(observers: int) -> None:
    """Without pre-votes, those that do not reach the leader would depose it again and again."""
    world = QuorumWorld(SEED, range(1, 6), brokers=range(6, 6 + observers))
    cut_as_in_kip_996(world, 1, 2, 3, 4, 5)
    for node_id in world.machines:
        world.start(node_id)
    keep_writing(world)
    until(world, lambda: world.leader is not None)
    assert world.leader is not None
    leader, epoch = world.leader.node_id, world.leader.leads
    assert leader in (3, 4, 5)
    near = {3: (1, 3, 4, 5), 4: (2, 3, 4, 5), 5: (3, 4, 5)}[leader]
    reach(world, 20, near)
    world.run(world.now_ms + 10_000)
    assert (world.leader.node_id, world.leader.leads, world.elections) == (leader, epoch, 1)


@pytest.mark.parametrize("observers", [0, 3])
def test_a_leader_stays_while_it_reaches_a_majority(observers: int) -> None:
    world = quorum(5, observers)
    leader = leader_of(world)
    reach(world, 5)
    epoch, elections = world.machines[leader].leads, world.elections
    a, b, d, e = [(leader - 1 + each) % 5 + 1 for each in range(1, 5)]
    cut_as_in_kip_996(world, a, b, leader, d, e)
    reach(world, committed(world) + 20, (a, leader, d, e))
    world.run(world.now_ms + 10_000)
    assert (world.machines[leader].leads, world.elections) == (epoch, elections)


@MAJORITIES
def test_one_leader_after_the_other_is_cut_off(voters: int, observers: int) -> None:
    """The first one is back just when its successor is cut off."""
    world = quorum(voters, observers)
    first = leader_of(world)
    reach(world, 10)
    cut_off(world, first)
    until(world, lambda: world.leader is not None and world.leader.node_id != first)
    assert world.leader is not None
    second = world.leader.node_id
    world.cut.clear()
    cut_off(world, second)
    end = committed(world) + 10
    until(world, lambda: committed(world) >= end)
    assert world.leader is not None and world.leader.node_id != second


@MAJORITIES
def test_a_node_loses_its_disk(voters: int, observers: int) -> None:
    """It begins with nothing, and is given all of it again. It may have voted, so what holds is less than else."""
    world = quorum(voters, observers, is_static=True)
    leader_of(world)
    reach(world, 10)
    lost = world.machines[random.Random(SEED).randint(1, voters)]
    lost.die(loses_power=False)
    lost.disk, lost.told_epoch = ModelDisk(random.Random(SEED)), 0
    until(world, lambda: has_leader(world))
    reach(world, committed(world) + 10)
    world.start(lost.node_id)
    reach(world, committed(world) + 10)
