"""Moves replicas while brokers and controllers die (KIP-455), and checks the results.

``Mover`` begins moves, cancels and replaces them, and knows the expected results: once everything is healed
each partition has the replicas that were requested last, in their order. ``Inspector`` says whether a move is still in progress,
and finds what a removed replica has left on a disk.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ottla.base.errors import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

from ..clients import Actor
from ..history import History, TopicPartition
from ..machine import Machine
from ..network import Lost
from .machines import SimulatedCluster

_LEAST_REPLICAS = 2
"""With a single replica, unsynced records are lost when its machine loses power."""
_MOST_REPLICAS = 4
_CANCELLED: tuple[int, ...] = ()


class Mover(Actor):
    """See the module."""

    world: SimulatedCluster

    def __init__(self, world: SimulatedCluster, history: History, name: str) -> None:
        super().__init__(world, history, name)
        self._promised: dict[TopicPartition, tuple[int, ...]] = {}
        self._unanswered: dict[TopicPartition, list[tuple[int, ...]]] = {}
        """Requests whose outcome is unknown, or which may be executed later, maybe again."""

    async def run(self, until: trio.Event) -> None:
        while not until.is_set():
            await trio.sleep(self.rng.choice((0.1, 0.5, 2.0)) * self.rng.uniform(0.5, 1.5))
            if self.world.must_spare:
                continue
            moving = self.world.moving()
            if moving and self.rng.random() < 0.6:  # cancelled, or replaced
                key = self.rng.choice(sorted(moving))
                is_cancelled = self.rng.random() < 0.5
            else:
                key, is_cancelled = self.rng.choice(sorted(self.world.states()) or [("plain", 0)]), False
            await self.move(key, None if is_cancelled else self._any_brokers())

    def _any_brokers(self) -> list[int]:
        brokers = list(self.world.machines)
        most = min(_MOST_REPLICAS, len(brokers))
        count = self.rng.choice([*range(_LEAST_REPLICAS, most + 1), self.world.replication_factor])
        return self.rng.sample(brokers, count)

    async def move(self, key: TopicPartition, replicas: Sequence[int] | None) -> ErrorCode | None:
        """Request a move once. Returns the response, None if there is none."""
        partition = ReassignablePartition(partition_index=key[1], replicas=None if replicas is None else list(replicas))
        topic = ReassignableTopic(name=key[0], partitions=[partition])
        asked = f"{key} to {'what it was' if replicas is None else replicas}"
        target = _CANCELLED if replicas is None else tuple(replicas)
        try:
            answer = await self.client.call(AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=5000), 0)
        except Lost as error:
            self.log(f"{asked}: lost: {error}")
            self._unanswered.setdefault(key, []).append(target)
            return None
        code = ErrorCode(answer.error_code or answer.responses[0].partitions[0].error_code)
        self.log(f"{asked}: {code.name}")
        if code is ErrorCode.NONE:
            if self.world.forwards_again and key in self._promised:
                self._unanswered.setdefault(key, []).append(self._promised[key])
            self._promised[key] = target
        elif code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_CONTROLLER):
            # The store was not reached, or another controller was elected meanwhile: the outcome is unknown.
            self._unanswered.setdefault(key, []).append(target)
        elif code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS and self.world.forwards_again:
            self._unanswered.setdefault(key, []).append(target)  # or it is the same request that has ended the move
        return code

    def check(self) -> None:
        """Check at the end that every partition has the replicas of the last successful request."""
        for key, promised in self._promised.items():
            possible = [promised, *self._unanswered.get(key, ())]
            if key in self.world.states() and _CANCELLED not in possible:
                found = self.world.assignment(key[0])[key[1]]
                if found not in possible:
                    self.world.violate(f"{key} has the replicas {found}, and {possible} were asked for")


async def interrupt(world: SimulatedCluster, mover: Mover) -> None:
    """Crash a broker while replicas are moved: the controller, the leader, or one that is added or removed."""
    moving = world.moving()
    controller = world.controller()
    if not moving or controller is None:
        return
    rng = mover.rng
    key = rng.choice(sorted(moving))
    controllers = [controller, controller] if controller in world.machines else []
    victims = [*controllers, *moving[key].adding, *moving[key].removing]
    if key in world.states() and world.states()[key].leader in world.machines:
        victims.append(world.states()[key].leader)
    machine: Machine = world.machines[rng.choice(victims)]
    await trio.sleep(rng.choice((0.0, 0.003, 0.01, 0.05)))
    world.log(machine.name, f"dies while {key} is moved")
    machine.crash(power_lost=False)


__all__ = ["Mover", "interrupt"]
