"""One seed of a share group: members, leaders and share coordinators, with faults for a while; then all that is left is read.

When faults end the members accept all that they get. Within a bounded time nothing is left to be delivered, and no record was
lost (``model``).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from ottla.share_coordinator.state import SharePartitionKey
from ottla.share_partitions import found_batches

from ..outcome import Result, play
from .log import aborted_transactions
from .member import ShareMember
from .world import GROUP, KEYS, ShareWorld

SECONDS_OF_FAULTS = (5.0, 25.0)
SETTLED_WITHIN_SECONDS = 30.0
_ENOUGH = 20
"""After so many violations the end is not waited for."""


def simulate_share(seed: int) -> Result:
    """Run one seed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found_batches, "aborted_transactions", aborted_transactions)
        return play(seed, lambda: ShareWorld(seed), lambda world: ShareSimulation(world).run())


class ShareSimulation:
    """The members and the faults."""

    def __init__(self, world: ShareWorld) -> None:
        self._world = world
        self._rng = rng = world.random_for("simulation")
        self._members = [ShareMember(world, f"m{number}") for number in range(rng.choice((1, 2, 3, 5)))]
        self._under_way = 0
        """How much goes on that has to end."""
        world.log("world", f"{world.terms}, isolation {world.isolation_level}")

    async def run(self) -> None:
        """Run everything of this seed."""
        world = self._world
        async with trio.open_nursery() as nursery:
            world.nursery = nursery
            await world.coordinators.begin(nursery, KEYS)
            await world.begin_life()
            for member in self._members:
                nursery.start_soon(member.run)
            await self._make_trouble()
            await self._settle()
            self._judge()
            nursery.cancel_scope.cancel()

    async def _make_trouble(self) -> None:
        world, rng = self._world, self._rng
        world.store.trouble = rng.choice((0, 0, 0.1, 0.4))
        world.store.delay_seconds = rng.choice((0, 0, 0.1, 1.0))
        world.coordinators.set_faults(rng.choice((0, 0.1)), rng.choice((0, 0, 0.1)), rng.choice((0, 0.1, 0.5)))
        kinds: list[Callable[[], None]] = [self._append] * 12
        kinds += [self._end_transaction] * 3 + [self._compact, self._trim] + [self._move] * rng.choice((0, 1, 3))
        kinds += [self._move_coordinator] * rng.choice((0, 1, 3)) + [self._elect_again] * rng.choice((0, 1))
        kinds += [self._begin_anew] * rng.choice((0, 0, 1))
        pause = rng.choice((0.05, 0.3))
        deadline = trio.current_time() + rng.uniform(*SECONDS_OF_FAULTS)
        while trio.current_time() < deadline:
            await trio.sleep(rng.expovariate(1 / pause))
            rng.choice(kinds)()
            assert world.life is not None
            world.check(world.life)

    def _append(self) -> None:
        log = self._rng.choice(self._world.logs)
        log.append()
        assert self._world.life is not None
        self._world.life.changed()

    def _end_transaction(self) -> None:
        for log in self._world.logs:
            log.end_transaction()
        assert self._world.life is not None
        self._world.life.changed()

    def _compact(self) -> None:
        self._rng.choice(self._world.logs).compact()

    def _trim(self) -> None:
        log = self._rng.choice(self._world.logs)
        log.trim()
        self._world.log("log", f"starts at {log.log_start_offset}")

    def _move(self) -> None:
        assert self._world.nursery is not None
        self._world.nursery.start_soon(self._lead_elsewhere)

    async def _lead_elsewhere(self) -> None:
        """The leader dies, or learns later that another one leads."""
        world, rng = self._world, self._rng
        before = world.life
        assert before is not None
        is_killed = rng.random() < 0.5
        if is_killed:
            before.die()
        if rng.random() < 0.3:
            self._move_coordinator()  # of the same broker
        await world.begin_life()
        if not is_killed:
            self._under_way += 1
            await trio.sleep(rng.choice((0, 0.5, 3.0)))
            before.depose()
            self._under_way -= 1

    def _move_coordinator(self) -> None:
        assert self._world.nursery is not None
        self._world.coordinators.move(self._world.nursery, is_killed=self._rng.random() < 0.5)

    def _elect_again(self) -> None:
        assert self._world.nursery is not None
        self._world.nursery.start_soon(self._world.coordinators.elect_again)

    def _begin_anew(self) -> None:
        assert self._world.nursery is not None
        self._world.nursery.start_soon(self._anew, self._rng.choice(KEYS))

    async def _anew(self, key: SharePartitionKey) -> None:
        self._under_way += 1
        await self._world.begin_anew(key)
        self._under_way -= 1

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """End all faults, and wait until everything is delivered."""
        world = self._world
        world.store.trouble = world.store.delay_seconds = 0.0
        world.coordinators.set_faults(0.0, 0.0, 0.0)
        for member in self._members:
            member.is_calm = True
        self._end_transaction()
        while self._under_way or world.coordinators.ending:
            await trio.sleep(0.1)
        if world.has_begun_anew:
            assert world.life is not None
            world.life.share_partitions.retire(GROUP)
        world.log("world", "no more faults")
        deadline = trio.current_time() + SETTLED_WITHIN_SECONDS
        while (why := self._unsettled()) is not None:
            if len(world.violations) > _ENOUGH:
                return
            if trio.current_time() > deadline:
                world.violate(f"after {SETTLED_WITHIN_SECONDS} s without faults {why}")
                return
            await trio.sleep(0.2)

    def _unsettled(self) -> str | None:
        """Why not everything is delivered."""
        life = self._world.life
        assert life is not None
        found = {led.key: led.state for led in life.led()}
        for key in KEYS:
            if key not in found:
                return f"nobody reads partition {key.partition}"
            state, end = found[key], self._world.logs[key.partition].log_end_offset
            if state.start_offset < end:
                return f"partition {key.partition} of {GROUP} is at {state.start_offset}, not at {end}: {state.batches}"
        return None

    def _judge(self) -> None:
        world = self._world
        coordinator = world.coordinators.current
        coordinator.compare()
        coordinator.compare_log()
        for key, kept in coordinator.kept.states.items():
            if lost := world.models[key][kept.state_epoch].lost(kept.ended):
                world.violate(f"partition {key.partition}: {lost} were not delivered as often as they should")
