"""The output of a plan, as text or JSON: brokers before and after, moves with their reasons, bytes to copy."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ...balance.model import ClusterModel
from ...balance.plan import BrokerStats
from ...balance.proposal import Proposal
from ...base.wording import counted, plural
from ..tools.output import OutputColumn, is_terminal, print_rows, size_text

BROKER_COLUMNS = (
    OutputColumn("broker", is_number=True),
    OutputColumn("rack"),
    OutputColumn("replicas"),
    OutputColumn("leaders"),
    OutputColumn("size"),
    OutputColumn("in_per_s"),
    OutputColumn("out_per_s"),
)
MOVE_COLUMNS = (
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("before"),
    OutputColumn("replicas"),
    OutputColumn("bytes", is_size=True),
    OutputColumn("why"),
)
_MOST_SHOWN = 50


def as_object(proposal: Proposal) -> dict[str, Any]:
    """As JSON has it."""
    plan = proposal.plan
    racks = {broker.broker_id: broker.rack for broker in proposal.cluster.brokers}
    return {
        "balanced": proposal.is_empty and not plan.missed,
        "bytes": proposal.bytes,
        "steps": len(proposal.steps.steps),
        "missed": [str(goal) for goal in plan.missed],
        "brokers": [
            {
                "broker": broker,
                "rack": racks[broker],
                "before": dataclasses.asdict(plan.before[broker]),
                "after": dataclasses.asdict(plan.after[broker]),
            }
            for broker in sorted(plan.before)
        ],
        "moves": [
            {
                "topic": move.key[0],
                "partition": move.key[1],
                "before": list(move.before),
                "replicas": list(move.after),
                "bytes": move.bytes,
                "why": move.why,
            }
            for move in plan.moves
        ],
        "elections": [{"topic": topic, "partition": partition} for topic, partition in plan.elections],
        "folder_moves": [
            {
                "topic": move.key[0],
                "partition": move.key[1],
                "broker": move.broker_id,
                "before": move.before,
                "log_dir": move.after,
                "bytes": move.size,
                "why": move.why,
            }
            for move in proposal.folder_moves
        ],
        "left": plan.left,
        "without_room": [f"{move.key[0]}-{move.key[1]}" for move in proposal.steps.without_room],
    }


def show(proposal: Proposal) -> None:
    """For people the brokers, the first moves, and what there is to know; into a pipe a line for each move, and the rest on the
    standard error."""
    rows = _move_rows(proposal)
    if not is_terminal():
        print_rows(MOVE_COLUMNS, rows)
        sys.stdout.flush()
        print("\n".join(_found(proposal)), file=sys.stderr)
        return
    if not proposal.is_empty:
        show_brokers(proposal.cluster, proposal.plan.before, proposal.plan.after)
        if rows:
            print_rows(MOVE_COLUMNS, rows[:_MOST_SHOWN])
        if len(rows) > _MOST_SHOWN:
            print(f"… and {len(rows) - _MOST_SHOWN} more; --json has them all.")
    print("\n".join(_found(proposal)))


def _found(proposal: Proposal) -> Iterator[str]:
    """What was found, in sentences."""
    plan = proposal.plan
    if not proposal.is_empty:
        yield _summary(proposal)
    else:
        yield "Nothing can be moved that would help." if plan.missed else "The cluster is balanced."
    if plan.missed:
        yield f"Not reached: {', '.join(plan.missed)}."
    if proposal.steps.without_room:
        yield f"Left out, because there is no room meanwhile: {counted(len(proposal.steps.without_room), 'partition')}."
    if not plan.is_whole:
        yield "The search for a plan was ended early; there may be more to do."
    for name, why in list(plan.left.items())[:3]:
        yield f"Stays as it is: {name}: {why}."
    if len(plan.left) > 3:
        more = len(plan.left) - 3
        yield f"Stay as they are: {more} more {plural(more, 'partition')}."


def _summary(proposal: Proposal) -> str:
    plan = proposal.plan
    copied = sum(1 for move in plan.moves if move.adding)
    ordered = len(plan.moves) - copied + len(plan.elections)
    parts = [f"{counted(copied, 'partition')} to move with {size_text(plan.bytes)} to copy"]
    parts.append(f"{counted(ordered, 'leader')} to change")
    if proposal.folder_moves:
        parts.append(f"{counted(len(proposal.folder_moves), 'replica')} to move to another log directory")
    return f"{', '.join(parts)}, in {counted(len(proposal.steps.steps), 'step')}."


def show_brokers(cluster: ClusterModel, before: Mapping[int, BrokerStats], after: Mapping[int, BrokerStats]) -> None:
    """A row for each broker."""
    racks = {broker.broker_id: broker.rack for broker in cluster.brokers}
    rows = [
        (
            broker,
            racks[broker],
            _change(str(before[broker].replicas), str(after[broker].replicas)),
            _change(str(before[broker].leaders), str(after[broker].leaders)),
            _change(size_text(before[broker].bytes), size_text(after[broker].bytes)),
            _change(size_text(before[broker].network_in), size_text(after[broker].network_in)),
            _change(size_text(before[broker].network_out), size_text(after[broker].network_out)),
        )
        for broker in sorted(before)
    ]
    print_rows(BROKER_COLUMNS, rows)


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _move_rows(proposal: Proposal) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        (*move.key, list(move.before), list(move.after), move.bytes, move.why) for move in proposal.plan.moves
    ]
    partitions = {partition.key: partition for partition in proposal.cluster.partitions}
    for key in proposal.plan.elections:
        if all(move.key != key for move in proposal.plan.moves):
            replicas = list(partitions[key].replicas)
            rows.append((*key, replicas, replicas, 0, f"leaders: broker {partitions[key].leader} leads instead"))
    rows += [
        (*move.key, f"{move.broker_id}:{move.before}", f"{move.broker_id}:{move.after}", move.size, move.why)
        for move in proposal.folder_moves
    ]
    return rows
