"""A proposal for a balanced cluster: all changes in steps, for review or execution.

How long the search takes is for the caller to limit: it is CPU time without a break, so a caller with a loop has it done in a
worker thread (``workers.run(propose, cluster, …)``). The loop then waits for the interpreter's switch interval each time, under
10 ms where there are 3,000 partitions; with 30,000 a sort takes 90 ms at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from .folders import FolderMove, folder_moves
from .goals import CHOICE, Goal
from .model import ClusterModel
from .plan import TOLERANCE, BalancePlan, find_plan
from .steps import Steps, steps_of

AT_ONCE = 5
"""How many partitions a broker sends or gets at a time."""


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A plan for a cluster, ready to be done."""

    cluster: ClusterModel
    plan: BalancePlan
    steps: Steps
    folder_moves: Sequence[FolderMove]
    """Moves between log directories of one broker."""

    @property
    def is_empty(self) -> bool:
        return not self.plan.moves and not self.plan.elections and not self.folder_moves

    @property
    def bytes(self) -> int:
        """What is to be copied."""
        return self.plan.bytes + sum(move.size for move in self.folder_moves)


def propose(
    cluster: ClusterModel,
    goals: Sequence[Goal] = CHOICE,
    tolerance: float = TOLERANCE,
    at_once: int = AT_ONCE,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Proposal:
    """What makes the cluster balanced by these goals; ``may_go_on`` as for ``find_plan``."""
    plan = find_plan(cluster, goals, tolerance, may_go_on)
    within = folder_moves(cluster, plan.moves) if Goal.CAPACITY in goals else []
    return Proposal(cluster, plan, steps_of(cluster, plan, at_once), within)
