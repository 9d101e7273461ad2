"""The page of a balance plan: the output of ``ottla cluster balance --dry-run``.

It changes nothing.

A plan is made by a worker, one at a time for all who look, and shown for a while (``Cached``). Rates are not measured for it, so
it has no goals for the network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ..balance.answers import cluster_of
from ..balance.goals import CHOICE, Goal
from ..balance.plan import BrokerStats
from ..balance.proposal import Proposal, propose
from ..view.cached import Cached
from ..view.layout import ReplicaLayout
from ..view.source import ViewSource
from . import more_commands
from .render import Renderer

GOALS = tuple(goal for goal in CHOICE if goal not in (Goal.NETWORK_IN, Goal.NETWORK_OUT))
_SEARCH_SECONDS = 2.0
_MOST_MOVES = 500
MOST_PARTITIONS = 5000
"""A plan for more would hold up the loop, beside which it is made, for longer than 10 ms at a time."""


class BrokerLoad(NamedTuple):
    """The load of a broker, now and after the plan."""

    broker_id: int
    rack: str | None
    is_alive: bool
    is_told: bool
    """Whether the broker has reported the sizes of its replicas."""
    before: BrokerStats
    after: BrokerStats


class TimedProposal(NamedTuple):
    """A plan, and when it was made."""

    proposal: Proposal
    brokers: tuple[BrokerLoad, ...]
    at_ms: int


class BalancePage:
    """The ``page`` with the plan."""

    def __init__(self, source: ViewSource, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer
        self._made = Cached(self._make)

    async def page(self, request: Request) -> Response:
        (made,) = await self._made.get()
        return await self._renderer.page(
            "balance.html",
            made=made,
            most=_MOST_MOVES,
            most_partitions=MOST_PARTITIONS,
            command=more_commands.balance(self._source.bootstrap_servers),
        )

    async def _make(self) -> tuple[TimedProposal | None]:
        """None where there are too many partitions. Raises what a source raises."""
        source = self._source
        layout = await source.administration.layout(MOST_PARTITIONS)
        if layout is None:
            return (None,)
        until = source.elapsed() + _SEARCH_SECONDS
        proposal = await source.workers.run(_proposal, layout, lambda: source.elapsed() < until)
        plan = proposal.plan
        brokers = tuple(
            BrokerLoad(
                each.broker_id,
                each.rack,
                each.is_alive,
                each.broker_id in layout.disks,
                plan.before[each.broker_id],
                plan.after[each.broker_id],
            )
            for each in proposal.cluster.brokers
        )
        return (TimedProposal(proposal, brokers, self._renderer.now_ms()),)


def _proposal(layout: ReplicaLayout, may_go_on: Callable[[], bool]) -> Proposal:
    cluster = cluster_of(layout.racks, layout.partitions, layout.disks)
    return propose(cluster, GOALS, may_go_on=may_go_on)
