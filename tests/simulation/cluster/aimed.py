"""Aimed faults: sequences that are too rare by chance, in the order in which a certain rule is needed.

Each chooses its victims by the present state of the cluster, and does nothing if that does not fit. Other faults at the same
time, and the outcome, are left to chance. ``StoreAimedFaults`` are those of a cluster with a store.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

import trio

from ..clients import TOPICS
from ..history import History, TopicPartition
from ..producers import IdempotentProducer, Refused
from ..run import Mode
from .inspector import Inspector
from .machines import SimulatedCluster
from .world import ClusterWorld

_PATIENCE_SECONDS = 1.5
_LOOK_SECONDS = 0.01
_PROBES = 4


class Probe(IdempotentProducer):
    """Writes single records to a partition. All its batches have about the same size."""

    codecs = (0,)
    is_busy = False

    async def write(self, partition: TopicPartition) -> None:
        self.is_busy = True
        try:
            if self.producer_id < 0:
                await self.init()
            key = b"probe" if partition[0] == "compact" else None
            now_ms = self.world.clock.now_ms()
            await self.produce(partition, [self.history.record(self.name, partition, now_ms, key=key, padding=100)])
        except Refused as error:
            if not self.world.mode.may_lose:
                self.world.violate(f"{self.name}: {error}")
            self.producer_id = -1
        finally:
            self.is_busy = False


class Roles(NamedTuple):
    """A partition whose replicas are all in sync, and their roles: ``heir`` leads when ``leader`` is gone."""

    partition: TopicPartition
    leader: int
    heir: int
    third: int
    controller: int


class AimedFaults:
    """See the module. ``start`` starts a task that runs beside the faults."""

    def __init__(
        self,
        world: SimulatedCluster,
        history: History,
        inspector: Inspector,
        rng: random.Random,
        start: Callable[..., None],
    ) -> None:
        self._world = world
        self._inspector = inspector
        self._rng = rng
        self._start = start
        self._probes = [Probe(world, history, f"p{number}", 0.1) for number in range(_PROBES)]

    # --- a leader that is one no more ---------------------------------------------------------------------------------

    async def hold_answers(self) -> None:
        """A leader cannot send to its followers, is replaced, and gets the new leader's records before it can send again."""
        rng, network = self._rng, self._world.network
        roles = self._roles()
        if roles is None:
            return
        first, second = rng.sample((roles.heir, roles.third), 2)
        self._log(
            f"{roles.leader}, the leader of {roles.partition}, sends nothing to {first}, and no broker to {second}"
        )
        network.choke(self._ways([(roles.leader, first)]))
        await trio.sleep(rng.uniform(0.05, 0.6))
        network.choke(self._into(second))
        await trio.sleep(rng.uniform(0.05, 0.6))
        await self._forget(roles.leader)
        await trio.sleep(rng.uniform(0.1, 0.6))
        network.heal()
        network.choke(self._into(second))
        await trio.sleep(rng.uniform(0.1, 0.6))
        self._heal()

    async def replace_sender(self) -> None:
        """A leader has to send the end of its log to a follower, but gets records of its heir before it can (KAFKA-18723).

        The follower has a record that the heir lacks, and does not know of the heir yet.
        """
        network = self._world.network
        roles = self._roles()
        if roles is None or roles.controller == roles.third:
            return
        key, leader, heir, third = roles.partition, roles.leader, roles.heir, roles.third
        self._log(f"{leader} is to send {third} of {key} what it has of {heir}")
        network.choke(self._ways([(leader, heir)]))
        self._write(key)
        await trio.sleep(self._rng.uniform(0.02, 0.1))
        network.choke(self._ways([(leader, third)]))
        self._write(key)
        await trio.sleep(self._rng.uniform(0.02, 0.1))
        network.choke(self._into(third))
        await self._forget(leader)
        await self._until(lambda: self._leads(key) == heir)
        network.heal()
        network.choke(self._into(third))
        self._write(key)
        await self._until(lambda: self._epoch_of(leader, key) == self._epoch_of(heir, key))
        await trio.sleep(self._rng.uniform(0, 0.2))
        network.heal()
        network.choke(way for way in self._into(third) if way[0] != self._world.host(leader))
        await trio.sleep(0.2)
        self._heal()

    # --- a broker that is back ----------------------------------------------------------------------------------------

    async def bounce_joining(self) -> None:
        """A follower has caught up, and restarts before the controller hears from the leader that it is in sync."""
        roles = self._roles()
        if roles is None or roles.leader == roles.controller:
            return
        network = self._world.network
        others = [broker_id for broker_id in (roles.heir, roles.third) if broker_id != roles.controller]
        joining = self._rng.choice(others)
        self._log(
            f"{joining} has caught up with {roles.leader} in {roles.partition}, and goes down before it is in sync"
        )
        network.cut(self._ways([(roles.leader, roles.controller)]))
        await self._forget(joining)
        await self._until(lambda: joining not in self._world.states()[roles.partition].isr)
        for _ in range(3):
            self._write(roles.partition)
        await trio.sleep(self._rng.uniform(0.2, 0.6))
        await self._bounce(joining)
        network.heal()
        network.choke(self._ways([(roles.leader, joining)]))
        await trio.sleep(self._rng.uniform(0.1, 0.6))
        self._heal()

    async def _bounce(self, broker_id: int, before_it_is_missed: Callable[[], None] = lambda: None) -> None:
        """Restart a broker, with its machine if that is allowed, at once and with another broker epoch."""
        machine = self._world.machines[broker_id]
        if not machine.ready.is_set() or self._world.must_spare:
            return
        before = self._world.registration(broker_id)
        machine.is_held = True
        machine.crash(power_lost=self._world.mode is not Mode.KILLS)
        before_it_is_missed()
        try:
            await self._world.expire(broker_id)
        finally:
            machine.is_held = False
        await self._until(lambda: self._world.registration(broker_id) not in (None, before))

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _roles(self) -> Roles | None:
        """The roles in a partition that clients write to; None if none fits, or there is no controller."""
        world = self._world
        controller = world.controller()
        if controller is None or (controller in world.machines and not world.machines[controller].ready.is_set()):
            return None
        found = []
        for key, state in world.states().items():
            replicas = world.assignment(key[0]).get(key[1], ()) if key[0] in TOPICS else ()
            followers = [replica for replica in replicas if replica != state.leader]
            if state.leader in replicas and len(followers) == 2 <= len(state.isr) - 1:
                found.append(Roles(key, state.leader, *followers, controller))
        return self._rng.choice(found) if found else None

    def _write(self, partition: TopicPartition) -> None:
        """Write a record, however long it takes."""
        for probe in self._probes:
            if not probe.is_busy:
                probe.is_busy = True
                self._start(probe.write, partition)
                return

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition, but not for ever: it may never hold."""
        with trio.move_on_after(_PATIENCE_SECONDS):
            while not holds():
                await trio.sleep(_LOOK_SECONDS)

    def _leads(self, partition: TopicPartition) -> int:
        return self._world.states()[partition].leader

    def _epoch_of(self, broker_id: int, partition: TopicPartition) -> int:
        """The newest leader epoch in a broker's log; -1 if there is none."""
        for replica in self._inspector.partitions(broker_id):
            if (replica.topic, replica.log.partition) == partition:
                return replica.log.latest_epoch
        return -1

    async def _forget(self, broker_id: int) -> None:
        """End the session of a broker, if the cluster can spare it."""
        if not self._world.must_spare:
            await self._world.expire(broker_id)

    def _ways(self, ways: Iterable[tuple[int, int]]) -> list[tuple[str, str]]:
        return [(self._world.host(source), self._world.host(target)) for source, target in ways]

    def _into(self, broker_id: int) -> list[tuple[str, str]]:
        """The paths from all other brokers."""
        return self._ways((other, broker_id) for other in self._world.places if other != broker_id)

    def _heal(self) -> None:
        self._world.network.heal()
        self._world.log("network", "is well")

    def _log(self, what: str) -> None:
        self._world.log("aimed", what)


class StoreAimedFaults(AimedFaults):
    """With a store, a broker can be back before the controller sees that it went, and a controller does not see that it is one no
    more.
    """

    _world: ClusterWorld

    async def bounce_leader(self) -> None:
        """A leader restarts before a request confirms its leadership; it gets that when it is back, before its absence shows."""
        roles = self._roles()
        if roles is None or roles.leader == roles.controller:
            return
        other = roles.third if roles.heir == roles.controller else roles.heir
        self._log(
            f"{roles.leader}, the leader of {roles.partition}, is back before {roles.controller} sees that it went"
        )
        self._world.network.cut(self._ways([(roles.controller, roles.leader)]))
        for _ in range(3):
            self._write(roles.partition)
        await trio.sleep(self._rng.uniform(0, 0.1))
        await self._forget(other)
        await trio.sleep(self._rng.uniform(0.05, 0.3))
        place = self._world.places[roles.controller]
        with trio.move_on_after(self._world.session_timeout_ms / 1000 * self._rng.uniform(0.2, 0.6)):
            await self._bounce(roles.leader, before_it_is_missed=place.cut_from_store)
            self._heal()
            await trio.sleep_forever()
        place.heal()
        self._heal()

    async def replace_controller(self) -> None:
        """Cut the controller from the store until another one is elected; then it continues."""
        controller = self._world.controller()
        if controller is None:
            return
        self._log(f"broker {controller} does not hear that it is to be controller no more")
        place = self._world.places[controller]
        place.cut_from_store()
        await self._world.remove_controller()
        await trio.sleep(self._world.session_timeout_ms / 1000 * self._rng.uniform(0.1, 0.6))
        place.heal()


__all__ = ["AimedFaults", "StoreAimedFaults"]
