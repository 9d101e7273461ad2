"""One seed: clients and faults for a while, then a time without faults, and then everything is checked.

The seed decides what the machine may lose, which clients there are, and when which faults happen.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import trio

from .checkers import Checker, Contents
from .clients import PARTITIONS, Administrator
from .faults import is_under
from .groups import GroupState, Member
from .history import History
from .outcome import Result, play
from .producers import IdempotentProducer, TransactionalProducer
from .readers import Reader
from .world import DATA, Mode, Violation, World

PLACES: list[Callable[[str], bool]] = [
    lambda path: True,
    lambda path: True,
    is_under("__transaction_state"),
    is_under("__consumer_offsets"),
    is_under("plain"),
    is_under("compact"),
    is_under("aged"),
    is_under("__cluster_state"),
    lambda path: path.rsplit("/", 1)[0] == DATA,  # the checkpoints
    lambda path: path.endswith((".cleaned", ".swap", ".deleted")),
]
_SECONDS_OF_FAULTS = (6.0, 20.0)


def simulate(seed: int) -> Result:
    """Run one seed."""
    mode = random.Random(seed).choices([Mode.KILLS, Mode.POWER_WITH_FLUSH, Mode.POWER], [5, 4, 1])[0]
    return play(seed, lambda: World(seed, mode), lambda world: Simulation(world).run())


class Simulation:
    """The clients of one world, and the faults."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.history = History()
        self._rng = world.random_for("simulation")
        self._over = trio.Event()
        self._admin = Administrator(world, self.history, "admin")
        pace = self._rng.choice((0.05, 0.2, 0.5))
        self._readers = [
            Reader(world, self.history, "uncommitted", committed=False),
            Reader(world, self.history, "committed", committed=True),
        ]
        group = GroupState()
        self._clients = [
            *(IdempotentProducer(world, self.history, f"i{n}", pace * 2) for n in range(self._rng.randint(1, 2))),
            *(
                TransactionalProducer(world, self.history, f"t{n}", pace, is_v2=self._rng.random() < 0.5)
                for n in range(self._rng.randint(1, 3))
            ),
            *(Member(world, self.history, f"m{n}", group) for n in range(self._rng.randint(1, 3))),
            *self._readers,
        ]

    async def run(self) -> None:
        """Run everything of this seed."""
        world = self.world
        world.log("world", f"seed {world.seed}, {world.mode.value}, {len(self._clients)} clients")
        async with trio.open_nursery() as broker:
            broker.start_soon(world.machine.keep_running)
            await world.machine.wait_ready()
            await self._admin.create_topics()
            async with trio.open_nursery() as clients:
                for client in self._clients:
                    clients.start_soon(client.run, self._over)
                await self._make_trouble()
                await self._heal()
                self._over.set()
            world.log("world", "all clients are done")
            await self._judge()
            await world.machine.stop()
            broker.cancel_scope.cancel()

    # --- trouble ------------------------------------------------------------------------------------------------------

    async def _make_trouble(self) -> None:
        world, rng = self.world, self._rng
        world.network.trouble = rng.choice((0, 0.02, 0.1))
        deadline = trio.current_time() + rng.uniform(*_SECONDS_OF_FAULTS)
        kinds = [self._crash, self._crash, self._crash, self._stop_and_go, self._fail_disk, self._fill_disk]
        kinds += [self._jump, self._delete_records, self._delete_records]
        while trio.current_time() < deadline:
            await trio.sleep(rng.uniform(0.1, 2.5))
            await rng.choice(kinds)()

    async def _crash(self) -> None:
        """Die at one of the next changes of the disk."""
        world, rng = self.world, self._rng
        power_lost = world.mode is not Mode.KILLS and rng.random() < 0.7
        lives = world.machine.lives
        if rng.random() < 0.1:
            world.machine.crash(power_lost=power_lost)
        else:
            world.machine.crash_at(int(2 ** rng.uniform(0, 7)), rng.choice(PLACES), power_lost=power_lost)
        with trio.move_on_after(rng.uniform(0.5, 4)):
            while world.machine.lives == lives:
                await trio.sleep(0.1)
        if rng.random() < 0.5:
            world.machine.spare()

    async def _stop_and_go(self) -> None:
        await self.world.machine.restart()

    async def _fail_disk(self) -> None:
        """Let reads, writes or syncs of some files fail for a while."""
        world, rng = self.world, self._rng
        operation = rng.choice(("read", "write", "sync", "rename", "truncate", "open"))
        place = rng.choice(PLACES)
        world.log("disk", f"{operation} fails")
        world.machine.is_faulty = True
        world.machine.disk.fail(operation, errno.EIO, where=place)
        await trio.sleep(rng.uniform(0.1, 2))
        world.machine.disk.heal()
        await self._recover_disk()

    async def _fill_disk(self) -> None:
        world, rng = self.world, self._rng
        room = rng.choice((0, 100, 1000, 5000))
        world.log("disk", f"has room for {room} bytes")
        world.machine.is_faulty = True
        world.machine.disk.capacity = world.machine.disk.used + room
        await trio.sleep(rng.uniform(0.1, 3))
        world.machine.disk.capacity = None
        await self._recover_disk()

    async def _recover_disk(self) -> None:
        """Repair the disk; a broker that has given it up starts again."""
        world = self.world
        world.log("disk", "is well")
        if world.machine.is_offline:
            await world.machine.restart()
        await world.machine.wait_ready()
        if world.machine.is_offline:
            await world.machine.restart()
        world.machine.is_faulty = False

    async def _jump(self) -> None:
        """Set the clock."""
        by = self._rng.choice((-3_600_000, -5000, 5000, 1_000_000))
        self.world.log("clock", f"jumps by {by} ms")
        self.world.clock.jump(by)

    async def _delete_records(self) -> None:
        with trio.move_on_after(5):
            await self._admin.delete_records()

    async def _heal(self) -> None:
        world = self.world
        world.network.trouble = 0
        world.machine.spare()
        await world.machine.wait_ready()
        world.log("world", "no more faults")

    # --- judgement ----------------------------------------------------------------------------------------------------

    async def _judge(self) -> None:
        world, rng = self.world, self._rng
        await trio.sleep(3)  # for the cleaner and the coordinator to finish
        checker = Checker(world, self.history, self._readers)
        contents = await checker.check()
        world.log("world", f"{sum(map(len, contents.values()))} records are there")
        await world.machine.restart()
        await checker.check_same(contents, "a clean stop")
        lives = world.machine.lives
        world.machine.crash(power_lost=False)
        while world.machine.lives == lives:
            await trio.sleep(0.1)
        await world.machine.wait_ready()
        await checker.check_same(contents, "a kill")
        if rng.random() < 0.3:
            await self._damage(checker, contents)

    async def _damage(self, checker: Checker, contents: Contents) -> None:
        """Flip a bit in a closed segment while the broker is stopped."""
        world, rng = self.world, self._rng
        topic, number = damaged = rng.choice([p for p in PARTITIONS if p[0] in ("plain", "compact")])
        folder = f"{DATA}/{topic}-{number}/"
        closed = [path for path in world.machine.disk.paths() if path.startswith(folder) and path.endswith(".log")][:-1]
        if not closed:
            return
        path = rng.choice(closed)
        first = int(path.rsplit("/", 1)[1].removesuffix(".log"))
        offset = world.machine.disk.flip_bit(path, rng)
        if offset is None:
            return
        world.log("disk", f"flips a bit of {path}, in the batch at {offset} (the segment begins at {first})")
        world.machine.is_faulty = True
        if rng.random() < 0.5:
            await world.machine.restart()
        await trio.sleep(2)
        await checker.check_damaged(contents, damaged, offset)


__all__ = ["Result", "Violation", "simulate"]
