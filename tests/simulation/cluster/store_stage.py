"""A scripted scenario of brokers that share a store: the script chooses the controller, and sessions expire when it says so."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import trio

from ..outcome import Result
from ..run import Mode
from .stage import NO_CONFIGS, PROPERTIES, RESTART_SECONDS, SESSION_TIMEOUT_MS, Script, Stage, perform_on
from .world import ClusterWorld


class StoreStage(Stage):
    """See the module. ``controller`` is the broker that starts first."""

    world: ClusterWorld

    def __init__(self, controller: int, world: ClusterWorld, nursery: trio.Nursery) -> None:
        super().__init__(world, nursery)
        self._controller = controller

    async def _start_brokers(self) -> None:
        machines = self.world.machines
        for broker_id in (self._controller, *(other for other in machines if other != self._controller)):
            self.nursery.start_soon(machines[broker_id].keep_running)
            await machines[broker_id].wait_ready()
        assert self.world.controller() == self._controller

    def has_node(self, path: str) -> bool:
        return path in self.world.store.tree.nodes

    def slow_store(self, broker_id: int, seconds: float) -> None:
        """Delay every request of a broker to the store, and its response, by this long from now on."""
        self.world.places[broker_id].link.latency = lambda: seconds

    async def forget(self, broker_id: int) -> None:
        """Expire a broker's session."""
        assert self.world.registration(broker_id) is not None, f"broker {broker_id} has no session"
        await self.world.expire(broker_id)

    async def bounce(self, broker_id: int, unseen_by: int | None = None) -> None:
        """A broker's machine loses power and is back at once, before the controller ``unseen_by`` can look."""
        before = self.world.registration(broker_id)
        self.kill(broker_id, power_lost=True)
        if unseen_by is not None:
            self.world.places[unseen_by].cut_from_store()
        await self.forget(broker_id)
        self.machine(broker_id).is_held = False
        await self.until(lambda: self.world.registration(broker_id) not in (None, before))


def perform(
    script: Script[StoreStage],
    *,
    controller: int = 3,
    mode: Mode = Mode.KILLS,
    seed: int = 1,
    acks: int = -1,
    topic_configs: Mapping[str, str] = NO_CONFIGS,
) -> Result:
    """Run a script, and return the result, as ``perform_on`` does. A ``controller`` 4 has no replica."""

    def new_world() -> ClusterWorld:
        return ClusterWorld(
            seed,
            mode,
            brokers=max(3, controller),
            session_timeout_ms=SESSION_TIMEOUT_MS,
            restart_seconds=RESTART_SECONDS,
            properties=PROPERTIES,
        )

    new_stage = functools.partial(StoreStage, controller)
    return perform_on(new_stage, new_world, script, seed=seed, acks=acks, topic_configs=topic_configs)
