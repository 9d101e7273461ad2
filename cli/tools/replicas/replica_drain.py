"""``ottla cluster drain BROKER --replicas``: moves all replicas off a broker that is to be removed.

Every replica on it goes to another broker, in a rack that the partition is not in yet where there is one. It may be down.
What is begun goes on by itself; given again, the command waits for that and moves what is left, topics that are new meanwhile
among it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from ....base.wording import counted
from ..client import ClusterConnection
from ..cluster_view import Key
from ..nearest import no_broker
from ..output import print_json
from ..running import ToolError, UsageError
from .carry_out import Limits, ReassignmentReport, carry_out
from .moves import ClusterLayout, named
from .replica_plan import Replicas, without_broker


def drain_replicas(
    connection: ClusterConnection, broker_id: int, limits: Limits, *, force: bool, as_json: bool
) -> None:
    """Move every replica of a broker elsewhere, and say what became of them. Raises ToolError if some stay."""
    if force:
        raise UsageError("--force and --replicas exclude each other: every partition keeps as many replicas")
    outcomes: list[ReassignmentReport] = []
    with closing(connection.admin()) as admin:
        layout = ClusterLayout(admin)
        _check_broker(layout, broker_id)
        moved: dict[Key, Replicas] = {}
        while targets := targets_of(layout, broker_id, moved):
            outcomes.append(carry_out(admin, layout, targets, limits))
            moved |= targets
            if any(row[-1] != "moved" for row in outcomes[-1].rows):
                break
            layout = ClusterLayout(admin)
    rows = [row for outcome in outcomes for row in outcome.rows]
    outcome = ReassignmentReport(rows, any(each.keeps_throttle for each in outcomes[-1:]))
    count = sum(row[-1] == "moved" for row in rows)
    if as_json:
        print_json({"broker": broker_id, "drained": count == len(rows), "partitions": outcome.as_objects})
    else:
        outcome.show()
        if count == len(rows):
            print(f"Moved {counted(count, 'replica')} of broker {broker_id}, which has none any more.")
    outcome.check()


def targets_of(layout: ClusterLayout, broker_id: int, moved: Mapping[Key, Replicas]) -> dict[Key, Replicas]:
    """What is to be done, and is being done; ``moved``: what has been done. Raises ToolError where it cannot be.

    The broker that was asked for the layout, any one, may not have heard of what has been moved.
    """
    receiving = layout.receiving
    plan = without_broker({**layout.targets, **moved}, broker_id, receiving)
    if plan.stuck:
        others = len(receiving.keys() - {broker_id})
        raise ToolError(
            f"there is no other broker for {counted(len(plan.stuck), 'replica')}, of {named(plan.stuck)}: besides broker "
            f"{broker_id} there are {counted(others, 'broker')}; add one first"
        )
    if dead := [key for key in plan.changes if layout.partitions[key].leader is None]:
        raise ToolError(f"{named(dead)} have no leader to copy from; nothing was moved")
    leaving = {key: layout.targets[key] for key, move in layout.moves.items() if broker_id in move.removing}
    return leaving | plan.changes


def _check_broker(layout: ClusterLayout, broker_id: int) -> None:
    known = layout.racks.keys() | {
        replica for partition in layout.partitions.values() for replica in partition.replicas
    }
    if broker_id not in known:
        raise no_broker([broker_id], known)
