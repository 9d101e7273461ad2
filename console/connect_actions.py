"""Actions on a connector of Kafka Connect: restart it or what has failed of it, restart a task, pause, resume, stop.

Each is a request to Connect's REST interface (KIP-745, KIP-875), which a worker carries out by itself after it has answered. No
request of Kafka does that, so the right is that of those who could give themselves any: ALTER on the cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..view.connect_rows import FAILED, ConnectorRow, ConnectTaskRow
from ..view.connect_view import ConnectView
from ..view.source import ViewSource
from ..wire.api_keys import ApiKey
from . import connect_commands
from .actions import Action, ActionPlan, ActionResult, Given, PlainAction, number
from .connect_pages import connect_of
from .finding_addresses import connector_address
from .questions import WrongQuestionError
from .visitor_rights import VisitorRights

_COLUMNS = ("Part", "State", "Worker")
_MOST_ROWS = 100


@dataclasses.dataclass(frozen=True)
class ConnectorChange:
    """A request about a connector, and what it means."""

    title: str
    verb: str
    method: str
    target: str
    """What follows the connector's name in the request's path."""
    effect: str
    """A sentence, in which ``{}`` is the connector's name."""
    done: str
    """The same of a worker that has taken the request."""
    warnings: Sequence[str] = ()
    only_failed: bool = False
    """Whether it is about that which has failed, and nothing else."""


CHANGES = {
    "/restart-connector": ConnectorChange(
        "Restart a connector",
        "Restart",
        "POST",
        "/restart",
        "The connector {} is restarted, and its tasks are not.",
        "The connector {} is being restarted.",
    ),
    "/restart-failed": ConnectorChange(
        "Restart failed parts",
        "Restart",
        "POST",
        "/restart?includeTasks=true&onlyFailed=true",
        "The failed parts of the connector {} are restarted, and the others continue.",
        "The failed parts of the connector {} are being restarted.",
        ("The cause of the failure may still exist. Then it fails again.",),
        only_failed=True,
    ),
    "/pause-connector": ConnectorChange(
        "Pause a connector",
        "Pause",
        "PUT",
        "/pause",
        "The connector {} and its tasks stand still until it is resumed. They stay where they are, with what they hold.",
        "The connector {} is being paused.",
    ),
    "/resume-connector": ConnectorChange(
        "Resume a connector",
        "Resume",
        "PUT",
        "/resume",
        "The connector {} and its tasks continue from where they were.",
        "The connector {} is being resumed.",
    ),
    "/stop-connector": ConnectorChange(
        "Stop a connector",
        "Stop",
        "PUT",
        "/stop",
        "The tasks of the connector {} end, and free what they hold. It keeps its settings and offsets, and can be resumed.",
        "The connector {} is being stopped.",
        ("Workers before Kafka 3.5 don't know this request, and refuse it.",),
    ),
}
"""By address."""


class ConnectAction(PlainAction):
    """The common part: a connector is named by ``name``, and by ``at`` the worker that tells of it."""

    here = "Connect"
    api = ApiKey.CREATE_ACLS

    def __init__(self, source: ViewSource, rights: VisitorRights | None) -> None:
        self._source = source
        self._rights = rights

    async def _find(self, given: Given) -> tuple[ConnectView, ConnectorRow]:
        """The connector as it is now. Raises KafkaError, NotFoundError."""
        if self._rights is not None:
            self._rights.check(self.api)
        connect, place = connect_of(self._source), given.get("at", "")
        await connect.renew(place or None)
        return connect, await connect.connector(given.get("name", ""), place)

    def _result(self, row: ConnectorRow, what: str, tasks: Sequence[ConnectTaskRow]) -> ActionResult:
        shown = f"{what} The worker {row.place} has taken the request. The connector's page shows the outcome."
        rows = [(f"task {task.number}", task.state, task.worker) for task in tasks[:_MOST_ROWS]]
        return ActionResult(
            shown, connector_address(row.name, row.place), row.name, _COLUMNS if rows else (), rows=rows
        )


class ChangeConnector(ConnectAction):
    """One ``ConnectorChange``."""

    def __init__(self, change: ConnectorChange, source: ViewSource, rights: VisitorRights | None) -> None:
        super().__init__(source, rights)
        self.title = change.title
        self._change = change

    async def plan(self, given: Given) -> ActionPlan | None:
        change = self._change
        connect, row = await self._find(given)
        return ActionPlan(
            change.effect.format(row.name),
            change.verb,
            connect_commands.change(change.method, connect.request_url(row, change.target)),
            warnings=change.warnings,
            columns=_COLUMNS,
            rows=self._parts(row),
        )

    def _parts(self, row: ConnectorRow) -> Sequence[tuple[str, str, str]]:
        """What it is about. Raises WrongQuestionError where that is nothing."""
        parts = [("connector", row.state, row.worker)]
        parts += [(f"task {task.number}", task.state, task.worker) for task in row.tasks]
        if self._change.only_failed:
            parts = [part for part in parts if part[1] == FAILED]
            if not parts:
                raise WrongQuestionError(f"Nothing of the connector {row.name} has failed.")
        return parts[:_MOST_ROWS]

    async def carry_out(self, given: Given) -> ActionResult:
        change = self._change
        connect, row = await self._find(given)
        self._parts(row)
        tasks = await connect.change(row, change.method, change.target)
        restarting = [task for task in tasks if task.state == "RESTARTING"]
        return self._result(row, change.done.format(row.name), restarting)


class RestartTask(ConnectAction):
    """One task of a connector, named by ``task``."""

    title = "Restart a task"

    async def plan(self, given: Given) -> ActionPlan | None:
        connect, row = await self._find(given)
        task = _task(row, given)
        return ActionPlan(
            f"Task {task.number} of the connector {row.name} is restarted, and the others continue.",
            "Restart",
            connect_commands.change("POST", connect.request_url(row, _restart_target(task))),
            columns=_COLUMNS,
            rows=((f"task {task.number}", task.state, task.worker),),
        )

    async def carry_out(self, given: Given) -> ActionResult:
        connect, row = await self._find(given)
        task = _task(row, given)
        await connect.change(row, "POST", _restart_target(task))
        return self._result(row, f"Task {task.number} of the connector {row.name} is being restarted.", ())


def _task(row: ConnectorRow, given: Given) -> ConnectTaskRow:
    """Raises WrongQuestionError."""
    asked = number(given, "task", "a task")
    for task in row.tasks:
        if task.number == asked:
            return task
    raise WrongQuestionError(f"The connector {row.name} has no task {given.get('task', '')}.", "task")


def _restart_target(task: ConnectTaskRow) -> str:
    return f"/tasks/{task.number}/restart"


def connect_actions(source: ViewSource, rights: VisitorRights | None) -> dict[str, Action]:
    """Those of connectors, by address."""
    actions: dict[str, Action] = {
        address: ChangeConnector(change, source, rights) for address, change in CHANGES.items()
    }
    return actions | {"/restart-task": RestartTask(source, rights)}
