"""Aimed faults of controllers: sequences that are too rare by chance, in the order in which a certain rule is needed.

Each chooses its victims by the present state of the cluster, and does nothing if that does not fit. Other faults at the same
time, and the outcome, are left to chance.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import trio

from ottla.base.partitions import NO_LEADER
from ottla.controller.quorum.active.context import OperationContext
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.result import ControllerResult
from ottla.wire.messages.metadata_log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from ottla.wire.messages.topic_records import PartitionChangeRecord
from ottla.wire.schema import Message

from ..run import Mode
from .world import QuorumClusterWorld

_BEGIN = BeginTransactionRecord(name="a transaction of the simulation")
_FAVOURED = 20
_PATIENCE_SECONDS = 1.5
_GONE_SECONDS = 0.01
_BACK_SECONDS = 1.0
"""Shorter than any session."""
_LOOK_SECONDS = 0.001
_ENDS = (EndTransactionRecord(), AbortTransactionRecord(reason="so it was decided"), None)


class _Pair(NamedTuple):
    leader: int
    follower: int


class AimedControllerFaults:
    """See the module."""

    def __init__(self, world: QuorumClusterWorld, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        every: list[Callable[[], Awaitable[None]]] = [
            self.write_transaction,
            self.isolate_active,
            self.die_together,
            self.hear_late,
            self.tell_late,
            self.tell_long_after,
            self.answer_late,
        ]
        self.all = [*every, *[rng.choice(every)] * _FAVOURED]
        """One of them is the favourite of a seed: its steps need no other fault between them."""

    async def write_transaction(self) -> None:
        """The active controller elects a leader anew in a metadata transaction: that ends, is aborted, or is left open.

        Nobody else may write within it: a controller that leaves one open resigns.
        """
        node_id, end = self._world.controller(), self._rng.choice(_ENDS)
        if node_id is None:
            return
        controller = self._world.watched(node_id)
        partitions = [
            (topic_id, number, partition.leader)
            for topic_id, topic in controller.state.image.topics_by_id.newest().items()
            for number, partition in topic.partitions.items()
            if partition.leader != NO_LEADER
        ]
        if controller.state.transaction is not None or not partitions:
            return
        topic_id, number, leader = self._rng.choice(partitions)
        change = PartitionChangeRecord(topic_id=topic_id, partition_id=number, leader=leader)
        self._log(
            f"{node_id} elects {leader} anew in a transaction, {'left open' if end is None else type(end).__name__}"
        )
        write_transaction(controller, change, end)
        if end is None:
            await self._world.remove_controller()

    async def isolate_active(self) -> None:
        """The active controller is cut from the others. Brokers still reach it, one of which is killed."""
        world, rng = self._world, self._rng
        node_id = world.controller()
        if node_id is None or len(world.controllers) == 1:
            return
        name = world.controllers[node_id].name
        others = [machine.name for machine in world.controllers.values() if machine.name != name]
        self._log(f"{name} is alone")
        world.network.cut([*itertools.product([name], others), *itertools.product(others, [name])])
        if not world.must_spare:
            rng.choice(list(world.machines.values())).crash(power_lost=False)
        await trio.sleep(rng.uniform(0.5, 5))
        self._heal()

    async def die_together(self) -> None:
        """Two brokers die, and the active controller with them: the next one fences both in the same moment."""
        world, node_id = self._world, self._world.controller()
        if node_id is None or world.must_spare:
            return
        victims = self._rng.sample(list(world.machines.values()), 2)
        self._log(f"{', '.join(machine.name for machine in victims)} die with controller {node_id}")
        for machine in (*victims, world.controllers[node_id]):
            machine.crash(power_lost=False)
        await trio.sleep(self._rng.uniform(1, 4))

    async def hear_late(self) -> None:
        """A broker is killed. When it is back it hears nothing by the connection by which it follows the metadata log."""
        world, rng = self._world, self._rng
        machine, node_id = rng.choice(list(world.machines.values())), world.controller()
        if node_id is None or world.must_spare or not machine.ready.is_set():
            return
        before = machine.server
        machine.crash(power_lost=False)
        with trio.move_on_after(_PATIENCE_SECONDS):
            while machine.server is before or not hasattr(machine.server.assembly, "services"):  # type: ignore[union-attr]
                await trio.sleep(_LOOK_SECONDS)
        self._log(f"{machine.name} does not hear of its registration")
        world.network.stall((controller.name, machine.name) for controller in world.controllers.values())
        await trio.sleep(rng.uniform(0.2, 1.5))
        self._heal()

    async def tell_late(self) -> None:
        """A follower has caught up, and until its leader can tell the controller of that, it is fenced, or another life of it."""
        world, rng = self._world, self._rng
        pair = self._pair()
        if pair is None:
            return
        self._log(f"{pair.leader} tells late that {pair.follower} is in sync")
        await self._part(pair)
        world.network.cut((self._world.host(pair.leader), controller.name) for controller in world.controllers.values())
        await trio.sleep(rng.uniform(0.05, 0.5))
        await self._replace(pair.follower)
        self._heal()

    async def tell_long_after(self) -> None:
        """As before, but one controller alone is told late: others were active, and have fenced the follower."""
        world, rng, first = self._world, self._rng, self._world.controller()
        pair = self._pair()
        if pair is None or first is None or len(world.controllers) == 1:
            return
        self._log(f"{pair.leader} tells {first} long after that {pair.follower} is in sync")
        await self._part(pair)
        world.network.cut([(self._world.host(pair.leader), world.controllers[first].name)])
        await trio.sleep(rng.uniform(0.05, 0.5))
        await world.remove_controller()
        await trio.sleep(rng.uniform(2.2, 3))
        await self._fence(pair.follower)
        for _ in range(10):
            if world.controller() != first:
                await world.remove_controller()
                await trio.sleep(0.5)
        self._heal()

    async def answer_late(self) -> None:
        """A follower is in sync again, of which its leader does not hear; and then the two do not hear each other."""
        rng, pair = self._rng, self._pair()
        if pair is None:
            return
        self._log(f"{pair.leader} does not hear that {pair.follower} is in sync")
        here, there = self._world.host(pair.leader), self._world.host(pair.follower)
        await self._part(pair)
        self._world.network.cut((controller.name, here) for controller in self._world.controllers.values())
        await trio.sleep(rng.uniform(0.1, 0.7))
        self._world.network.cut([(here, there), (there, here)])
        await trio.sleep(rng.uniform(2, 3.5))
        self._heal()

    def _pair(self) -> _Pair | None:
        """A leader and a follower in sync; None where the cluster is to be left alone."""
        world = self._world
        if world.controller() is None or world.must_spare:
            return None
        found = [
            _Pair(state.leader, replica)
            for state in world.states().values()
            for replica in state.isr
            if replica != state.leader and state.leader in state.isr and world.is_member(replica)
        ]
        return self._rng.choice(found) if found else None

    async def _part(self, pair: _Pair) -> None:
        """Cut two brokers from each other until the leader has had the follower removed from the ISR."""
        here, there = self._world.host(pair.leader), self._world.host(pair.follower)
        self._world.network.cut([(here, there), (there, here)])
        await trio.sleep(self._rng.uniform(2.5, 4))
        self._world.network.heal()

    async def _fence(self, broker_id: int) -> None:
        """Fence a broker that goes on, for a moment."""
        world, node_id = self._world, self._world.controller()
        if node_id is not None and not world.must_spare and world.watched(node_id).has_unfenced(broker_id):
            world.places[broker_id].cut_from_store()
            world.watched(node_id).end_session(broker_id)
            await trio.sleep(self._rng.uniform(0.1, 0.5))
            world.places[broker_id].heal()

    async def _replace(self, broker_id: int) -> None:
        """Fence a broker, or restart it before that, with its machine where that may lose power."""
        world, node_id = self._world, self._world.controller()
        if node_id is None or world.must_spare or world.image.quorum_brokers[broker_id].is_fenced:
            return
        if not world.is_well(broker_id):
            return  # it may be away for so long that the end of its session counts
        machine = world.machines[broker_id]
        if self._rng.random() < 0.5:
            await self._fence(broker_id)
            return
        epoch = world.image.quorum_brokers[broker_id].epoch
        machine.is_held = True
        machine.crash(power_lost=world.mode is not Mode.KILLS)
        world.watched(node_id).drop_session(broker_id)
        await trio.sleep(_GONE_SECONDS)
        machine.is_held = False
        with trio.move_on_after(_BACK_SECONDS) as waiting:
            while (broker := world.image.quorum_brokers[broker_id]).epoch == epoch or broker.is_fenced:
                await trio.sleep(_LOOK_SECONDS)
        node_id = world.controller()
        if waiting.cancelled_caught and node_id is not None and world.watched(node_id).has_unfenced(broker_id):
            world.watched(node_id).end_session(broker_id)  # or it would never end, and nobody would fence the broker

    def _heal(self) -> None:
        self._world.network.heal()
        self._world.log("network", "is well")

    def _log(self, what: str) -> None:
        self._world.log("aimed", what)


def write_transaction(controller: ActiveController, change: Message, end: Message | None) -> None:
    """Write a record in a metadata transaction, batch by batch, and end that by ``end``, if at all."""
    for record in (_BEGIN, change, end):
        if record is not None:
            controller.run(_writing(record), lambda response: None)


def _writing(record: Message) -> Any:
    """The operation that writes a record."""

    def operation(context: OperationContext) -> ControllerResult[None]:
        return ControllerResult([(record, 0)], None)

    return operation


__all__ = ["AimedControllerFaults", "write_transaction"]
