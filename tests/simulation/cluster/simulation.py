"""One seed of a cluster: clients and faults for a while, then a time without faults, and then everything is checked.

The seed decides what machines may lose, how many there are, which clients there are, and when which faults happen. Faults of
machines and faults between them are independent of each other.
"""

from __future__ import annotations

import errno
import functools
import itertools
import random
from collections.abc import Awaitable, Callable

import trio

from ottla.controller.zookeeper.nodes import znodes

from ..checkers import Checker
from ..clients import Administrator
from ..groups import GroupState, Member
from ..history import History
from ..machine import Machine
from ..outcome import Result, play
from ..producers import IdempotentProducer, TransactionalProducer
from ..readers import Reader
from ..run import Mode, Violation
from ..simulation import PLACES
from .aimed import StoreAimedFaults
from .inspector import Inspector
from .moves import Mover, interrupt
from .topics import PassingTopics
from .world import ClusterPlace, ClusterWorld

_SECONDS_OF_FAULTS = (8.0, 25.0)
_SETTLED_SECONDS = 90.0
_BACK_AT_ONCE = (0.05,)


def simulate_cluster(seed: int, *, is_harsh: bool = False) -> Result:
    """Run one seed. ``is_harsh``: topics always come and go, replicas always move, and more faults are aimed."""
    rng = random.Random(seed)
    modes = [Mode.KILLS, Mode.POWER_OF_ONE, Mode.POWER_WITH_FLUSH, Mode.POWER]
    mode = rng.choices(modes, [4, 4, 2, 1])[0]
    brokers = rng.choice((3, 3, 3, 3, 4, 5))
    session_timeout_ms = rng.choice((1500, 3000, 6000))
    is_balanced = rng.random() < 0.3
    properties = {"leader.imbalance.check.interval.seconds": "2"} if is_balanced else {}
    return play(
        seed,
        lambda: ClusterWorld(seed, mode, brokers=brokers, session_timeout_ms=session_timeout_ms, properties=properties),
        lambda world: ClusterSimulation(world, is_harsh=is_harsh, is_balanced=is_balanced).run(),
    )


class ClusterSimulation:
    """The clients of one cluster, and the faults."""

    def __init__(self, world: ClusterWorld, *, is_harsh: bool, is_balanced: bool) -> None:
        """``is_balanced``: the controller elects preferred leaders by itself; otherwise a client has them elected at the end."""
        self.world = world
        self._is_harsh = is_harsh
        self._is_balanced = is_balanced
        self.history = History()
        self.inspector = Inspector(world)
        self._rng = world.random_for("simulation")
        self._over = trio.Event()
        self._admin = Administrator(world, self.history, "admin")
        self._readers = [
            Reader(world, self.history, "uncommitted", committed=False),
            Reader(world, self.history, "committed", committed=True),
        ]
        pace = self._rng.choice((0.15, 0.3, 0.6))
        group = GroupState()
        self._clients = [
            *(IdempotentProducer(world, self.history, f"i{n}", pace) for n in range(self._rng.randint(1, 2))),
            *(
                TransactionalProducer(world, self.history, f"t{n}", pace, is_v2=self._rng.random() < 0.5)
                for n in range(self._rng.randint(1, 2))
            ),
            *(Member(world, self.history, f"m{n}", group) for n in range(self._rng.randint(1, 2))),
            *self._readers,
        ]
        if is_harsh or self._rng.random() < 0.3:
            self._clients.append(PassingTopics(world, self.history, "topics"))
        self._mover: Mover | None = None
        if is_harsh or world.random_for("moves").random() < 0.25:
            self._mover = Mover(world, self.history, "mover")
            self._clients.append(self._mover)

    async def run(self) -> None:
        """Run everything of this seed."""
        world = self.world
        world.log("world", f"seed {world.seed}, {world.mode.value}, {len(world.machines)} machines")
        async with trio.open_nursery() as nursery:
            await world.open(nursery)
            for machine in world.machines.values():
                nursery.start_soon(machine.keep_running)
            for machine in world.machines.values():
                await machine.wait_ready()
            await self._admin.create_topics()
            nursery.start_soon(self.inspector.run)
            async with trio.open_nursery() as clients:
                for client in self._clients:
                    clients.start_soon(client.run, self._over)
                await self._make_trouble(clients.start_soon)
                await self._heal()
                await self._settle_clients()
                self._over.set()
            world.log("world", "all clients are done")
            await self._judge()
            nursery.cancel_scope.cancel()

    # --- trouble ------------------------------------------------------------------------------------------------------

    async def _make_trouble(self, start: Callable[..., None]) -> None:
        """``start`` starts a task that runs beside the faults."""
        rng = self._rng
        self.world.network.trouble = rng.choice((0, 0.02, 0.05))
        machines = [self._crash, self._crash, self._crash, self._stop_and_go, self._fail_disk, self._fill_disk]
        if self._mover is not None:
            machines += [functools.partial(interrupt, self.world, self._mover)] * 3
        between = self._between(start)
        if rng.random() < 0.3:
            self.world.trusts_time = False
            machines.append(self._jump)
        deadline = trio.current_time() + rng.uniform(*_SECONDS_OF_FAULTS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_at, machines, deadline)
            nursery.start_soon(self._keep_at, between, deadline)

    def _between(self, start: Callable[..., None]) -> list[Callable[[], Awaitable[None]]]:
        """Faults between machines."""
        aimed = StoreAimedFaults(self.world, self.history, self.inspector, self._rng, start)
        between = [self._cut, self._cut, self._isolate, self._cut_from_store, self._slow_down, self._expire]
        between += [self._lose_store_connection, self._move_controller, self._delete_records]
        between += [aimed.replace_sender, aimed.bounce_leader, aimed.bounce_joining]
        if self._is_harsh:
            between += [aimed.hold_answers, aimed.replace_controller, *between[-3:]] * 2
        return between

    async def _keep_at(self, kinds: list[Callable[[], Awaitable[None]]], deadline: float) -> None:
        while trio.current_time() < deadline:
            await trio.sleep(self._rng.uniform(0.1, 3))
            await self._until_whole()
            await self._rng.choice(kinds)()

    async def _until_whole(self) -> None:
        """If one machine at a time may lose power: wait until the cluster has recovered from its loss."""
        deadline = trio.current_time() + _SETTLED_SECONDS
        while self.world.must_spare:
            await trio.sleep(0.1)
            if trio.current_time() > deadline:
                raise Violation(f"a replica that has lost records is in sync for {_SETTLED_SECONDS} s")

    def _any(self) -> tuple[str, Machine]:
        machine = self._rng.choice(list(self.world.machines.values()))
        return machine.name, machine

    async def _crash(self) -> None:
        """Crash one machine, rarely several at a time: at once, or at one of its next changes of the disk."""
        world, rng = self.world, self._rng
        count = rng.choice((1, 1, 1, 2, len(world.machines)))
        for machine in rng.sample(list(world.machines.values()), count):
            power_lost = world.mode is not Mode.KILLS and rng.random() < 0.6
            if rng.random() < 0.4:
                machine.crash(power_lost=power_lost)
            else:
                machine.crash_at(int(2 ** rng.uniform(0, 6)), rng.choice(PLACES), power_lost=power_lost)
            await self._until_whole()
        await trio.sleep(rng.uniform(0.2, 4))

    async def _stop_and_go(self) -> None:
        """A clean stop and a start; at times of all brokers, one after the other."""
        machines = list(self.world.machines.values())
        for machine in machines if self._rng.random() < 0.2 else [self._rng.choice(machines)]:
            await self._until_whole()
            machine.stop_soon()
            with trio.move_on_after(10):
                lives = machine.lives
                while machine.lives == lives:
                    await trio.sleep(0.05)
                await machine.wait_ready()

    async def _fail_disk(self) -> None:
        rng = self._rng
        name, machine = self._any()
        operation = rng.choice(("read", "write", "sync", "rename", "truncate", "open"))
        self.world.log(name, f"{operation} fails on its disk")
        machine.is_faulty = True
        machine.disk.fail(operation, errno.EIO, where=rng.choice(PLACES))
        await trio.sleep(rng.uniform(0.1, 3))
        machine.disk.heal()
        await self._recover_disk(machine)

    async def _fill_disk(self) -> None:
        rng = self._rng
        name, machine = self._any()
        room = rng.choice((0, 100, 1000, 5000))
        self.world.log(name, f"its disk has room for {room} bytes")
        machine.is_faulty = True
        machine.disk.capacity = machine.disk.used + room
        await trio.sleep(rng.uniform(0.1, 3))
        machine.disk.capacity = None
        await self._recover_disk(machine)

    async def _recover_disk(self, machine: Machine) -> None:
        """Repair the disk; a broker that has given it up starts again."""
        await self._until_whole()
        self.world.log(machine.name, "its disk is well")
        with trio.move_on_after(15):
            while machine.is_offline or machine.stops_by_itself or not machine.ready.is_set():
                if machine.is_offline:
                    machine.stop_soon()
                await trio.sleep(0.1)
        machine.is_faulty = False

    async def _jump(self) -> None:
        name, machine = self._any()
        by = self._rng.choice((-3_600_000, -5000, 5000, 1_000_000))
        self.world.log(name, f"its clock jumps by {by} ms")
        machine.clock.jump(by)

    # --- trouble between machines -------------------------------------------------------------------------------------

    async def _for_a_while(self) -> None:
        await trio.sleep(self._rng.choice((0.3, 1.5, 5.0)))

    def _hosts(self) -> list[str]:
        return list(self.world.addresses)

    async def _cut(self) -> None:
        """Cut the connection between two machines, or one direction of it."""
        first, second = self._rng.sample(self._hosts(), 2)
        ways = [(first, second)] if self._rng.random() < 0.4 else [(first, second), (second, first)]
        self.world.log("network", f"cut {ways}")
        self.world.network.cut(ways)
        await self._for_a_while()
        self._heal_network()

    async def _isolate(self) -> None:
        """Cut one machine from all others, and maybe from the store; its clients can reach it."""
        name, _ = self._any()
        others = [host for host in self._hosts() if host != name]
        self.world.log("network", f"{name} is isolated")
        self.world.network.cut([*((name, other) for other in others), *((other, name) for other in others)])
        if self._rng.random() < 0.5:
            self._place(name).cut_from_store()
        await self._for_a_while()
        self._place(name).heal()
        self._heal_network()

    async def _cut_from_store(self) -> None:
        name, _ = self._any()
        self.world.log("network", f"{name} is cut from the store")
        self._place(name).cut_from_store()
        await self._for_a_while()
        self._place(name).heal()
        self.world.log("network", f"{name} reaches the store")

    async def _slow_down(self) -> None:
        name, _ = self._any()
        seconds = self._rng.choice((0.05, 0.5, 2.0))
        self.world.log("network", f"{name} is slow")
        others = [host for host in self._hosts() if host != name]
        self.world.network.slow_down(itertools.product(others, [name]), seconds)
        self.world.network.slow_down(itertools.product([name], others), seconds)
        await self._for_a_while()
        self._heal_network()

    def _heal_network(self) -> None:
        self.world.network.heal()
        self.world.log("network", "is well")

    async def _expire(self) -> None:
        sessions = self.world.store.sessions
        if sessions:
            session = self._rng.choice(sessions)
            self.world.log("store", f"session {session.session_id} expires")
            await session.expire()

    async def _lose_store_connection(self) -> None:
        name, _ = self._any()
        is_executed = self._rng.random() < 0.7
        self.world.log("store", f"{name} will lose its connection with a request, executed: {is_executed}")
        self._place(name).link.lose_connection_at_next_multi(is_executed=is_executed)

    async def _move_controller(self) -> None:
        """Remove the controller's node, as an administrator may do."""
        nodes = self.world.store.tree.nodes
        if znodes.CONTROLLER in nodes:
            self.world.log("store", f"broker {self.world.controller()} is to be controller no more")
            await self.world.remove_controller()

    async def _delete_records(self) -> None:
        with trio.move_on_after(5):
            await self._admin.delete_records()

    def _place(self, name: str) -> ClusterPlace:
        return next(place for place in self.world.places.values() if place.host == name)

    async def _heal(self) -> None:
        world = self.world
        world.network.trouble = 0
        self._heal_network()
        for place in world.places.values():
            place.heal()
        for machine in world.machines.values():
            machine.spare()
            machine.restart_seconds = _BACK_AT_ONCE
        for machine in world.machines.values():
            await machine.wait_ready()
        world.log("world", "no more faults")

    async def _settle_clients(self) -> None:
        """Wait for clients that have something to do after the last fault."""

    # --- judgement ----------------------------------------------------------------------------------------------------

    async def _judge(self) -> None:
        world = self.world
        await self._settle()
        await trio.sleep(3)  # for the cleaner and the coordinators to finish
        checker = Checker(world, self.history, self._readers)
        contents = await checker.check()
        if self._mover is not None:
            self._mover.check()
        world.log("world", f"{sum(map(len, contents.values()))} records are there")
        self.inspector.check_equal()
        self.inspector.check_strays()
        for machine in world.machines.values():
            await machine.restart()
        await self._settle()
        await checker.check_same(contents, "a rolling restart")
        lives = {machine: machine.lives for machine in world.machines.values()}
        for machine in world.machines.values():
            machine.crash(power_lost=False)
        for machine, before in lives.items():
            while machine.lives == before:
                await trio.sleep(0.1)
            await machine.wait_ready()
        await self._settle()
        await checker.check_same(contents, "a kill of all")
        self.inspector.check_equal()

    async def _settle(self) -> None:
        """Wait until nothing is left to do: preferred replicas lead, ISRs are complete, replicas equally long."""
        inspector = self.inspector
        with trio.move_on_after(_SETTLED_SECONDS) as scope:
            while inspector.unsettled() is not None:
                await trio.sleep(0.1)
            if not self._is_balanced:
                await self._admin.elect_preferred()
            while (inspector.unsettled() or inspector.unbalanced()) is not None:
                await trio.sleep(0.1)
        if scope.cancelled_caught:
            why = inspector.unsettled() or inspector.unbalanced()
            self.world.violate(f"after {_SETTLED_SECONDS} s without faults {why}")
