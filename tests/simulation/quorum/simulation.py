"""One seed of a KRaft cluster: the clients and faults of a cluster, consumers of KIP-848, and the faults of its controllers.

Controllers die, stop, lose power one by one or all at once, and wait for their disks. They are cut off in one direction or both,
from one another, from brokers, or from both. In some seeds they write snapshots often and delete what these stand for, and the
voters change all the while.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from ottla.controller.raft.events import CleanRequested

from ..cluster.aimed import AimedFaults
from ..cluster.simulation import ClusterSimulation
from ..faults import Crashed
from ..machine import Machine
from ..outcome import Result, play
from ..run import Mode
from .aimed import AimedControllerFaults
from .consumers import ConsumerGroupActors
from .controller_machine import ControllerMachine
from .voters import VoterChanges
from .world import QuorumClusterWorld


def simulate_quorum_cluster(seed: int, *, is_harsh: bool = False) -> Result:
    """Run one seed. ``is_harsh``: topics always come and go, replicas always move, and some faults are aimed."""
    rng = random.Random(seed)
    modes = [Mode.KILLS, Mode.POWER_OF_ONE, Mode.POWER_WITH_FLUSH, Mode.POWER]
    mode = rng.choices(modes, [4, 4, 2, 1])[0]
    brokers = rng.choice((3, 3, 3, 3, 4, 5))
    controllers = rng.choice((3, 3, 3, 3, 1, 5))
    session_timeout_ms = rng.choice((1500, 3000, 6000))
    is_balanced = rng.random() < 0.3
    has_elr = rng.random() < 0.5
    spare_controllers = rng.choice((0, 0, 1, 2))
    snapshot_bytes = rng.choice((None, 2_000, 10_000))
    return play(
        seed,
        lambda: QuorumClusterWorld(
            seed,
            mode,
            brokers=brokers,
            controllers=controllers,
            spare_controllers=spare_controllers,
            snapshot_bytes=snapshot_bytes,
            has_elr=has_elr,
            session_timeout_ms=session_timeout_ms,
            imbalance_check_interval_ms=2000 if is_balanced else None,
        ),
        lambda world: QuorumClusterSimulation(world, is_harsh=is_harsh, is_balanced=is_balanced).run(),
    )


class QuorumClusterSimulation(ClusterSimulation):
    """The clients of one cluster, and the faults."""

    world: QuorumClusterWorld

    def __init__(self, world: QuorumClusterWorld, *, is_harsh: bool, is_balanced: bool) -> None:
        super().__init__(world, is_harsh=is_harsh, is_balanced=is_balanced)
        if world.has_spares:
            self._clients.append(VoterChanges(world, least=1))
        self._consumers: ConsumerGroupActors | None = None
        if world.random_for("consumers").random() < 0.7:
            self._consumers = ConsumerGroupActors(world, self.history)
            self._clients.append(self._consumers)

    def _between(self, start: Callable[..., None]) -> list[Callable[[], Awaitable[None]]]:
        aimed = AimedFaults(self.world, self.history, self.inspector, self._rng, start)
        between = [self._cut, self._isolate, self._cut_from_store, self._slow_down, self._delete_records]
        between.append(self._cut_from_controllers_one_way)
        of_controllers = [self._crash_controllers, self._cut_controller, self._slow_disk, self._move_controller]
        of_controllers += [self._stop_controllers, self._clean_log, self._clean_log]
        between += [aimed.replace_sender, aimed.bounce_joining]
        if self._is_harsh:
            between += [aimed.hold_answers, *between[-2:]] * 2
            of_controllers += AimedControllerFaults(self.world, self._rng).all
        return [*between, *of_controllers, self._crash_controllers, self._cut_controller]

    def _any_controller(self) -> ControllerMachine:
        """Often the active one."""
        controllers, active = self.world.controllers, self.world.controller()
        if active is not None and self._rng.random() < 0.5:
            return controllers[active]
        return self._rng.choice(list(controllers.values()))

    async def _crash_controllers(self) -> None:
        """Crash one controller, or several: now, or at one of the next changes of the disk."""
        rng = self._rng
        others = list(self.world.controllers.values())
        victims: list[Machine] = [self._any_controller()]
        if rng.random() < 0.3:
            victims = [*rng.sample(others, rng.randint(1, len(others)))]
        for machine in victims:
            power_lost = rng.random() < 0.5
            if rng.random() < 0.5:
                machine.crash(power_lost=power_lost)
            else:
                machine.crash_at(int(2 ** rng.uniform(0, 5)), lambda path: True, power_lost=power_lost)
        await trio.sleep(rng.uniform(0.2, 4))

    async def _stop_controllers(self) -> None:
        """A clean stop and a start; at times of all controllers, one after the other."""
        machines = list(self.world.controllers.values())
        for machine in machines if self._rng.random() < 0.2 else [self._any_controller()]:
            lives = machine.lives
            machine.stop_soon()
            with trio.move_on_after(10):
                while machine.lives == lives:
                    await trio.sleep(0.05)
                await machine.wait_ready()

    async def _clean_log(self) -> None:
        """A controller deletes old snapshots, and what the oldest one left stands for."""
        server = self._any_controller().controller
        if not server.is_down and (snapshots := list(server.node.driver.node.quorum.log.snapshots)):
            snapshot = self._rng.choice(snapshots)
            self.world.log("quorum", f"controller-{server.node_id} begins its log at {snapshot.file_name}")
            with suppress(Crashed):  # what a step does on the disk it does at once
                server.node.driver.step(CleanRequested(snapshot))

    async def _cut_from_controllers_one_way(self) -> None:
        """A broker does not hear the controllers, or they do not hear it."""
        name, _ = self._any()
        hosts = [machine.name for machine in self.world.controllers.values()]
        is_deaf = self._rng.random() < 0.5
        self.world.log("network", f"{name} {'does not hear' if is_deaf else 'is not heard by'} the controllers")
        self.world.network.cut((host, name) if is_deaf else (name, host) for host in hosts)
        await self._for_a_while()
        self._heal_network()

    async def _cut_controller(self) -> None:
        """Cut a controller off from other controllers, from brokers, or from both, in one direction or both."""
        rng, name = self._rng, self._any_controller().name
        peers = [machine.name for machine in self.world.controllers.values() if machine.name != name]
        others = rng.choice([peers, self._hosts(), [*peers, *self._hosts()]])
        there, back = [(name, other) for other in others], [(other, name) for other in others]
        ways = rng.choice([there, back, there + back])
        self.world.log("network", f"cut {ways}")
        self.world.network.cut(ways)
        await self._for_a_while()
        self._heal_network()

    async def _slow_disk(self) -> None:
        """The disk of a controller is slow for a while."""
        machine, seconds = self._any_controller(), self._rng.choice((0.02, 0.2, 1.0))
        self.world.log(machine.name, f"waits for its disk for up to {seconds} s")
        machine.workers.seconds = seconds
        await self._for_a_while()
        machine.workers.seconds = 0.0

    async def _move_controller(self) -> None:
        """Have the active controller resign."""
        self.world.log("quorum", f"{self.world.controller()} is to resign")
        await self.world.remove_controller()

    async def _slow_down(self) -> None:
        name, others = self._any_controller().name, self._hosts()
        if self._rng.random() < 0.5:
            await super()._slow_down()
            return
        seconds = self._rng.choice((0.05, 0.5))
        self.world.log("network", f"{name} is slow")
        self.world.network.slow_down(itertools.product(others, [name]), seconds)
        self.world.network.slow_down(itertools.product([name], others), seconds)
        await self._for_a_while()
        self._heal_network()

    async def _settle_clients(self) -> None:
        if self._consumers is not None:
            await self._consumers.settle()

    async def _heal(self) -> None:
        for machine in self.world.controllers.values():
            machine.spare()
            machine.workers.seconds = 0.0
        await super()._heal()


__all__ = ["simulate_quorum_cluster"]
