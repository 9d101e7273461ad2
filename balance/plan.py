"""A plan: the changes, their reasons, and the load of each broker before and after."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from .exact import perfect
from .goals import CHOICE, MARGIN, Goal
from .model import ClusterModel, Key, Replicas, why_fixed
from .polish import polish
from .search import search
from .state import State

TOLERANCE = 0.1


@dataclasses.dataclass(frozen=True)
class PlannedMove:
    """A partition that gets other replicas, or the same in another order."""

    key: Key
    before: Replicas
    after: Replicas
    size: int
    """Bytes that each new replica copies."""
    why: str

    @property
    def adding(self) -> Replicas:
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> Replicas:
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def bytes(self) -> int:
        return self.size * len(self.adding)


@dataclasses.dataclass(frozen=True)
class BrokerStats:
    """The load of one broker."""

    replicas: int
    bytes: int
    """Bytes of its replicas."""
    leaders: int
    """Partitions that it leads."""
    network_in: int
    """Bytes per second from producers and leaders."""
    network_out: int
    """Bytes per second to consumers and followers."""


@dataclasses.dataclass(frozen=True)
class BalancePlan:
    """The changes that make a cluster balanced."""

    moves: tuple[PlannedMove, ...]
    elections: tuple[Key, ...]
    """Partitions led by another replica than the preferred one, which is in sync: it is to lead again."""
    before: dict[int, BrokerStats]
    """The load of each broker now."""
    after: dict[int, BrokerStats]
    """The load of each broker when all is done."""
    missed: tuple[Goal, ...]
    """The goals that are not reached when all is done."""
    left: dict[str, str]
    """The partitions that stay as they are, by name, and why."""
    is_whole: bool
    """Whether the search was not ended early."""

    @property
    def bytes(self) -> int:
        """What is to be copied between brokers."""
        return sum(move.bytes for move in self.moves)


def find_plan(
    cluster: ClusterModel,
    goals: Sequence[Goal] = CHOICE,
    tolerance: float = TOLERANCE,
    may_go_on: Callable[[], bool] = lambda: True,
) -> BalancePlan:
    """What makes the cluster balanced by these goals; nothing to do where it is.

    ``tolerance`` is how far a broker may be from the mean. ``may_go_on`` is asked before each change; when it says no, the plan
    is what was found until then, which is right as far as it goes.
    """
    is_whole = True

    def goes_on() -> bool:
        nonlocal is_whole
        is_whole = is_whole and may_go_on()
        return is_whole

    state = State(cluster, goals, tolerance * MARGIN)
    whys: dict[int, str] = {}
    if state.receivers:
        search(state, goes_on, whys.__setitem__)
        polish(state, goes_on, whys.__setitem__)
        perfect(state, goes_on, whys.__setitem__)
    moves = [
        PlannedMove(
            cluster.partitions[number].key,
            state.before[number],
            state.replicas[number],
            state.sizes[number],
            whys[number],
        )
        for number in whys  # what hard goals asked for is first
        if number in state.changed
    ]
    left = {p.name: why for p in cluster.partitions if (why := why_fixed(p, state.brokers)) is not None}
    return BalancePlan(
        tuple(moves),
        _elections(cluster) if Goal.LEADERS in state.goals else (),
        loads(cluster, state.before, [p.leader for p in cluster.partitions]),
        loads(cluster, state.replicas, [replicas[0] for replicas in state.replicas]),
        tuple(_missed(state)),
        left,
        is_whole,
    )


def _elections(cluster: ClusterModel) -> tuple[Key, ...]:
    return tuple(
        p.key
        for p in cluster.partitions
        if p.leader is not None and p.leader != p.replicas[0] and p.replicas[0] in p.isr
    )


def loads(cluster: ClusterModel, replicas: Sequence[Replicas], leaders: Sequence[int | None]) -> dict[int, BrokerStats]:
    """What each broker has when partitions, in their order, have these replicas and leaders."""
    found = {broker.broker_id: [0] * 5 for broker in cluster.brokers}
    for partition, now, leader in zip(cluster.partitions, replicas, leaders, strict=True):
        for broker in now:
            load = found[broker]
            load[0] += 1
            load[1] += partition.size
            load[3] += partition.written
        if leader is not None:
            load = found[leader]
            load[2] += 1
            load[4] += partition.read + partition.written * (len(now) - 1)
    return {broker: BrokerStats(*load) for broker, load in found.items()}


def _missed(state: State) -> list[Goal]:
    missed = [measure.goal for measure in state.measures if measure.cost and measure.goal in state.goals]
    if Goal.RACKS in state.goals and any(state.rack_lack(replicas) > 0 for replicas in state.replicas):
        missed.append(Goal.RACKS)
    return [goal for goal in state.goals if goal in missed]
