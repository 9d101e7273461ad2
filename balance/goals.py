"""The goals of a plan: their names, order and hardness, and the bounds of a broker's load.

A hard goal is one that no move may make worse, whether it was chosen or not; soft goals give way to those before them. The order
is Cruise Control's where it has them: racks, capacity, replicas, then the bytes, leaders and network that are to be even.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from .model import DISK_LIMIT, BrokerModel, ClusterModel

ANY = 1 << 80
"""An upper bound that nothing reaches."""

MARGIN = 0.9
"""How much of the tolerance a plan uses, so that its outcome stays within it while the load changes (Cruise Control's)."""


class Goal(enum.StrEnum):
    """What is to be reached, in the order in which it is tried."""

    LEAVING = "leaving"
    RACKS = "racks"
    CAPACITY = "capacity"
    REPLICAS = "replicas"
    BYTES = "bytes"
    LEADERS = "leaders"
    NETWORK_IN = "network-in"
    NETWORK_OUT = "network-out"

    @property
    def is_hard(self) -> bool:
        return self in (Goal.LEAVING, Goal.RACKS, Goal.CAPACITY)


CHOICE = tuple(goal for goal in Goal if goal is not Goal.LEAVING)
"""What can be chosen; a broker that leaves is always emptied first."""


def in_order(chosen: Sequence[Goal]) -> list[Goal]:
    """The hard ones first, in their own order; the soft ones as chosen, each once."""
    unique = list(dict.fromkeys(chosen))
    hard = [goal for goal in Goal if goal.is_hard and (goal in unique or goal is Goal.LEAVING)]
    return hard + [goal for goal in unique if not goal.is_hard]


def even(total: int, brokers: int, tolerance: float) -> tuple[int, int]:
    """The bounds of a load that is to be even; at least as wide as whole numbers ask for."""
    mean = total / brokers
    lower, upper = math.ceil(mean * (1 - tolerance)), math.floor(mean * (1 + tolerance))
    return min(lower, math.floor(mean)), max(upper, math.ceil(mean))


def capacity_of(broker: BrokerModel, own_bytes: int, disk_limit: float = DISK_LIMIT) -> int:
    """How many bytes of replicas a broker may have; other files on its volumes count as taken."""
    if not broker.folders or any(folder.total is None or folder.usable is None for folder in broker.folders):
        return ANY
    volumes = {(folder.total, folder.usable) for folder in broker.folders}  # folders on one volume tell the same of it
    total = sum(total or 0 for total, _ in volumes)
    usable = sum(usable or 0 for _, usable in volumes)
    return max(own_bytes + usable - round(total * (1 - disk_limit)), 0)


def racks_of(cluster: ClusterModel) -> dict[int, str | None]:
    """Racks by broker, which count where every broker that gets replicas names one."""
    receivers = [broker for broker in cluster.brokers if broker.receives]
    counted = all(broker.rack is not None for broker in receivers)
    return {broker.broker_id: broker.rack if counted else None for broker in cluster.brokers}
