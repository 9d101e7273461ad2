"""Replica placement for new partitions in a KRaft cluster, striped over racks and brokers (pure functions).

Racks are in the order of their names, brokers without a rack form one of their own. Within a rack brokers that are alive come
first, each list from a random start. The leader of a partition is alive and in the next rack with such a broker; the other
replicas come from the racks from there on, of which the leader's is passed over once. Each partition begins one rack and one
broker further. After as many partitions as there are living brokers, everything is shuffled, because the same assignments would
follow. A fenced broker may get replicas, and never a leader. Source: Kafka's StripedReplicaPlacer.

Where a rack has several machines, and one of them several brokers, its list is a rule of Ottla's own: each time round it gives
one broker of every machine, so that two replicas are on one machine only when every machine has one. A list of the rack's
machines, and one of the brokers of each, begin one further with each partition.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

from ...base.errors import ErrorCode, KafkaError


class UsableBroker(NamedTuple):
    """A broker that may get replicas: registered, not shutting down, with a directory that takes new ones."""

    broker_id: int
    rack: str | None
    is_fenced: bool
    machine: str | None = None
    """The host that it is reached at; None where that is not known."""


def place_replicas(
    brokers: Iterable[UsableBroker], partition_count: int, replication_factor: int, randomness: random.Random
) -> list[tuple[int, ...]]:
    """The replicas of each partition, leader first. Raises KafkaError INVALID_REPLICATION_FACTOR."""
    usable = list(brokers)
    racks = StripedRacks(usable, randomness)
    alive = sum(not broker.is_fenced for broker in usable)
    if replication_factor <= 0:
        raise _refused(f"Invalid replication factor {replication_factor}: the replication factor must be positive.")
    if not alive:
        raise _refused("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(usable):
        raise _refused(
            f"The target replication factor of {replication_factor} cannot be reached because only {len(usable)} broker(s) "
            "are registered or some brokers have all their log directories cordoned."
        )
    return [racks.place(replication_factor) for _ in range(partition_count)]


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, why)


class _Stripe:
    """Brokers of one rack, all alive or all fenced; ``next`` gives each once for a partition."""

    def __init__(self, brokers: Iterable[int], randomness: random.Random) -> None:
        self._brokers = sorted(brokers)
        self._offset = randomness.randrange(len(self._brokers)) if self._brokers else 0
        self._index = 0
        self._turn = 0

    def next(self, turn: int) -> int | None:
        if not self._brokers:
            return None
        if self._turn != turn:
            self._turn, self._index = turn, 0
            self._offset = (self._offset + 1) % len(self._brokers)
        if self._index >= len(self._brokers):
            return None
        broker = self._brokers[(self._index + self._offset) % len(self._brokers)]
        self._index += 1
        return broker

    def shuffle(self, randomness: random.Random) -> None:
        randomness.shuffle(self._brokers)


class _MachineStripe:
    """As ``_Stripe``, over machines of which some have several brokers."""

    def __init__(self, machines: Iterable[Iterable[int]], randomness: random.Random) -> None:
        self._machines = [sorted(brokers) for brokers in machines]
        self._offset = randomness.randrange(len(self._machines))
        self._steps = 0
        self._turn = 0

    def next(self, turn: int) -> int | None:
        machines = self._machines
        if self._turn != turn:
            self._turn, self._steps = turn, 0
            self._offset += 1
        for step in range(self._steps, len(machines) * max(map(len, machines))):
            times_round, place = divmod(step, len(machines))
            brokers = machines[(self._offset + place) % len(machines)]
            self._steps = step + 1
            if times_round < len(brokers):
                return brokers[(times_round + self._offset // len(machines)) % len(brokers)]
        return None

    def shuffle(self, randomness: random.Random) -> None:
        randomness.shuffle(self._machines)
        for brokers in self._machines:
            randomness.shuffle(brokers)


def _stripe(brokers: Iterable[UsableBroker], randomness: random.Random) -> _Stripe | _MachineStripe:
    by_machine: dict[str | None, list[int]] = {}
    for broker in brokers:
        by_machine.setdefault(broker.machine, []).append(broker.broker_id)
    if len(by_machine) > 1 and any(len(found) > 1 for found in by_machine.values()):
        return _MachineStripe((by_machine[name] for name in sorted(by_machine, key=_rack_order)), randomness)
    return _Stripe((each for found in by_machine.values() for each in found), randomness)


class _Rack:
    def __init__(self, brokers: Iterable[UsableBroker], randomness: random.Random) -> None:
        members = list(brokers)
        self._fenced = _stripe((each for each in members if each.is_fenced), randomness)
        self._alive = _stripe((each for each in members if not each.is_fenced), randomness)

    def next_leader(self, turn: int) -> int | None:
        return self._alive.next(turn)

    def next(self, turn: int) -> int | None:
        broker = self._alive.next(turn)
        return self._fenced.next(turn) if broker is None else broker

    def shuffle(self, randomness: random.Random) -> None:
        self._fenced.shuffle(randomness)
        self._alive.shuffle(randomness)


class StripedRacks:
    """The racks while the partitions of one topic are placed, one after the other. The number of replicas must be possible."""

    def __init__(self, brokers: Iterable[UsableBroker], randomness: random.Random) -> None:
        self._randomness = randomness
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        self._racks = [_Rack(by_rack[name], randomness) for name in sorted(by_rack, key=_rack_order)]
        self._alive = sum(not broker.is_fenced for members in by_rack.values() for broker in members)
        self._offset = randomness.randrange(len(self._racks)) if self._racks else 0
        self._turn = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """The replicas of the next partition."""
        if self._turn == self._alive > 1:  # with one, the turn would begin anew for ever
            self._shuffle()
            self._turn = 0
        racks = self._racks
        self._offset %= len(racks)
        leader_rack, leader = self._next_leader()
        replicas = [leader]
        # ``_next_leader`` has taken a broker of its rack for this turn, and the next replica belongs in another rack.
        index, passed_over = self._offset, False
        while len(replicas) < replication_factor:
            if index == leader_rack and not passed_over:
                passed_over = True
            elif (broker := racks[index].next(self._turn)) is not None:
                replicas.append(broker)
            index = (index + 1) % len(racks)
        self._turn += 1
        self._offset += 1
        return tuple(replicas)

    def _next_leader(self) -> tuple[int, int]:
        for step in range(len(self._racks)):
            index = (self._offset + step) % len(self._racks)
            if (leader := self._racks[index].next_leader(self._turn)) is not None:
                return index, leader
        raise AssertionError("no broker is alive")

    def _shuffle(self) -> None:
        self._randomness.shuffle(self._racks)
        for rack in self._racks:
            rack.shuffle(self._randomness)


def _rack_order(name: str | None) -> tuple[bool, str]:
    """Brokers without a rack come first."""
    return name is not None, name or ""
