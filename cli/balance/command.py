"""``ottla cluster balance``: makes and shows a plan, and unless it is a dry run executes it and shows the outcome."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence
from contextlib import closing

from ...balance.folders import log_dirs_for_new
from ...balance.goals import CHOICE, Goal
from ...balance.model import ClusterModel
from ...balance.plan import loads
from ...balance.proposal import Proposal, propose
from ...base.wording import counted
from ..tools.client import Admin, ClusterConnection
from ..tools.nearest import no_choice
from ..tools.output import is_terminal, print_json
from ..tools.replicas.moves import named
from ..tools.running import INTERRUPTED, ToolError
from .execution import carry_out, elect, finish_earlier_run, move_folders
from .facts import look
from .rates import MeasurementWindow
from .shown import as_object, show, show_brokers
from .stopping import Stop

_SEARCH_S = 120.0
_NETWORK = (Goal.NETWORK_IN, Goal.NETWORK_OUT)


@dataclasses.dataclass(frozen=True)
class BalanceOptions:
    """The options of the command."""

    goals: str | None
    """Names with commas; None for all."""
    leaving: Sequence[int]
    tolerance: float
    disk_limit: float
    throttle: int | None
    """In bytes per second; None for none."""
    at_once: int
    """The number of partitions that a broker sends or gets at a time."""
    window: MeasurementWindow


def goals_of(text: str | None) -> Sequence[Goal]:
    """Goals by their names, in this order; all for None. Raises UsageError."""
    if text is None:
        return CHOICE
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in CHOICE]:
        raise no_choice("goal", unknown[0], CHOICE)
    return [Goal(name) for name in names]


def balance(connection: ClusterConnection, options: BalanceOptions, *, is_dry: bool, as_json: bool) -> int | None:
    """The whole command; an exit code. Raises ToolError where something stays undone."""
    goals = goals_of(options.goals)
    with closing(connection.admin()) as admin:
        if not is_dry:
            finish_earlier_run(admin, options.throttle)
        proposal = _proposed(admin, options, goals)
        if is_dry or proposal.is_empty:
            print_json(as_object(proposal)) if as_json else show(proposal)
            return None
        if not as_json:
            show(proposal)
        return _execute(admin, options, proposal, as_json=as_json)


def _proposed(admin: Admin, options: BalanceOptions, chosen: Sequence[Goal]) -> Proposal:
    """What is to be done, by what the cluster is like now. Raises ToolError."""
    cluster = look(admin, options.leaving, options.disk_limit, options.window)
    goals = [goal for goal in chosen if options.window.seconds > 0 or goal not in _NETWORK]
    until = time.monotonic() + _SEARCH_S
    return propose(cluster, goals, options.tolerance, options.at_once, lambda: time.monotonic() < until)


def _execute(admin: Admin, options: BalanceOptions, proposal: Proposal, *, as_json: bool) -> int | None:
    steps = proposal.steps.steps
    folders = log_dirs_for_new(proposal.cluster, [move for step in steps for move in step])
    with Stop() as stop:
        run = carry_out(admin, steps, folders, options.throttle, stop)
        within = move_folders(admin, proposal.folder_moves, stop)
        if not stop:
            elect(admin, proposal.plan.elections)
    now = look(admin, options.leaving, options.disk_limit, MeasurementWindow(0))
    after = _with_rates(now, proposal.cluster)
    reached = loads(after, [p.replicas for p in after.partitions], [p.leader for p in after.partitions])
    if as_json:
        found = as_object(proposal)
        for broker in found["brokers"]:
            broker["after"] = dataclasses.asdict(reached[broker["broker"]])
        moved = [{"topic": topic, "partition": partition} for topic, partition in run.done]
        left_out = {f"{topic}-{partition}": why for (topic, partition), why in run.left_out.items()}
        print_json(found | {"moved": moved, "left_out": left_out, "stopped": bool(stop)})
    elif is_terminal():
        print("Now:")
        show_brokers(after, proposal.plan.before, reached)
    if stop and (run.is_stopped or len(within) < len(proposal.folder_moves)):
        done = counted(len(run.done), "partition")
        print(f"ottla: stopped after {done} of {len(proposal.plan.moves)}; the same command goes on", file=sys.stderr)
        return INTERRUPTED
    if run.left_out:
        key, why = next(iter(run.left_out.items()))
        raise ToolError(
            f"left out {counted(len(run.left_out), 'partition')}: {named([key])}: {why}; the same command tries again"
        )
    return None


def _with_rates(now: ClusterModel, measured: ClusterModel) -> ClusterModel:
    """What was measured before holds for afterwards, too."""
    rates = {p.key: (p.written, p.read) for p in measured.partitions}
    return dataclasses.replace(
        now,
        partitions=tuple(
            dataclasses.replace(p, written=rates.get(p.key, (0, 0))[0], read=rates.get(p.key, (0, 0))[1])
            for p in now.partitions
        ),
    )
