"""A scripted scenario on a quorum of controllers: brokers, controllers and paths fail when the script says so.

Controllers are nodes like the brokers: ``kill``, ``start`` and ``ways`` take the ids of both. A broker that is dead or cut off is
fenced when the script says so, because no script takes as long as a session lasts.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.broker.server import BrokerServer

from ..cluster.stage import (
    NO_CONFIGS,
    PARTITION,
    PROPERTIES,
    RESTART_SECONDS,
    SESSION_TIMEOUT_MS,
    Script,
    Stage,
    Ways,
    perform_on,
)
from ..machine import Machine
from ..outcome import Result
from ..run import Mode
from .world import QuorumClusterWorld


class QuorumClusterStage(Stage):
    """See the module."""

    world: QuorumClusterWorld

    # --- controllers --------------------------------------------------------------------------------------------------

    def machine(self, node_id: int) -> Machine:
        return self.world.controllers.get(node_id) or self.world.machines[node_id]

    @property
    def active(self) -> int:
        """The active controller. There must be one."""
        node_id = self.world.controller()
        assert node_id is not None, "no controller is active"
        return node_id

    @property
    def standbys(self) -> list[int]:
        """The controllers that are not active."""
        return [node_id for node_id in self.world.controllers if node_id != self.world.controller()]

    async def await_another(self, before: int) -> int:
        """Wait until another controller than this one is active, and return it."""
        await self.until(lambda: self.world.controller() not in (None, before))
        return self.active

    async def resign(self) -> int:
        """Have the active controller resign, and return the next one."""
        before = self.active
        await self.world.remove_controller()
        return await self.await_another(before)

    def slow_disk(self, node_id: int, seconds: float) -> None:
        """A controller waits for its disk for up to this long from now on; 0 for an end of that."""
        self.world.controllers[node_id].workers.seconds = seconds

    def end_of_metadata(self, node_id: int) -> int:
        """Where the metadata log of a controller ends."""
        return self.world.controllers[node_id].controller.node.driver.node.quorum.log.end_offset

    # --- paths and starts ---------------------------------------------------------------------------------------------

    def stall(self, ways: Ways) -> None:
        """Nothing arrives by the connections that there are, from the first node of each pair to the second, until ``ways``."""
        self.world.network.stall(self._hosts(ways))

    def has_parts(self, broker_id: int, before: BrokerServer | None) -> bool:
        """Whether a broker has started so far, after the life ``before``, that it registers next."""
        server = self.machine(broker_id).server
        return server is not None and server is not before and hasattr(server.assembly, "services")

    def knows_leader(self, broker_id: int) -> bool:
        """Whether a broker that has started knows who leads the partition."""
        server = self.machine(broker_id).server
        assert server is not None and server.assembly is not None
        partition = server.assembly.services.metadata.partition(*PARTITION)
        return partition is not None and partition.leader == self.leader

    # --- sessions of brokers ------------------------------------------------------------------------------------------

    def is_fenced(self, broker_id: int) -> bool:
        return self.world.image.quorum_brokers[broker_id].is_fenced

    def broker_epoch(self, broker_id: int) -> int:
        """Of a broker's present registration."""
        return self.world.image.quorum_brokers[broker_id].epoch

    async def forget(self, broker_id: int) -> None:
        """Have a broker fenced. A living one is cut from the controllers until it is."""
        place = self.world.places[broker_id]
        was_cut = place.is_cut
        place.cut_from_store()
        self.world.watched(self.active).end_session(broker_id)
        await self.until(lambda: self.is_fenced(broker_id))
        if not was_cut:
            place.heal()

    async def bounce(self, broker_id: int) -> None:
        """A broker's machine loses power and registers again at once, before its former life is fenced."""
        before = self.broker_epoch(broker_id)
        self.kill(broker_id, power_lost=True)
        self.world.watched(self.active).drop_session(broker_id)
        self.machine(broker_id).is_held = False
        await self.until(lambda: self.broker_epoch(broker_id) != before)

    # --- judgement ----------------------------------------------------------------------------------------------------

    async def heal(self) -> None:
        self.world.network.heal()
        for node_id in self.world.controllers:
            self.slow_disk(node_id, 0.0)
            await self.start(node_id)
        await super().heal()


def perform_on_quorum(
    script: Script[QuorumClusterStage],
    *,
    has_elr: bool = True,
    brokers: int = 3,
    controllers: int = 3,
    mode: Mode = Mode.KILLS,
    seed: int = 1,
    acks: int = -1,
    topic_configs: Mapping[str, str] = NO_CONFIGS,
) -> Result:
    """Run a script, and return the result, as ``perform_on`` does. ``has_elr``: whether eligible leader replicas are on."""

    def new_world() -> QuorumClusterWorld:
        return QuorumClusterWorld(
            seed,
            mode,
            brokers=brokers,
            controllers=controllers,
            has_elr=has_elr,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            restart_seconds=RESTART_SECONDS,
            properties=PROPERTIES,
        )

    return perform_on(QuorumClusterStage, new_world, script, seed=seed, acks=acks, topic_configs=topic_configs)


__all__ = ["QuorumClusterStage", "perform_on_quorum"]
