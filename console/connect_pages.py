"""The pages of Kafka Connect: all connectors with the workers that tell of them, and one connector with its tasks."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..view.connect_rows import ConnectorRow
from ..view.connect_view import EXAMPLE_URL, NO_WORKER_SET, ConnectView
from ..view.errors import NotFoundError
from ..view.source import ViewSource
from . import connect_commands
from .render import Renderer
from .tables import TableColumn, TableQuery

_MOST_TASKS = 100

CONNECTOR_COLUMNS = (
    TableColumn("name", "Connector", lambda row: row.name),
    TableColumn("kind", "Kind", lambda row: row.kind),
    TableColumn("class", "Class", lambda row: row.short_class),
    TableColumn("state", "State", lambda row: row.state),
    TableColumn("running", "Tasks running", lambda row: row.running, is_number=True),
    TableColumn("failed", "Failed", lambda row: row.failed, is_number=True),
    TableColumn("topics", "Topics"),
    TableColumn("worker", "Worker", lambda row: row.worker),
)
_ASKED = TableColumn("asked", "Told by", lambda row: row.place)


def connect_of(source: ViewSource) -> ConnectView:
    """Raises NotFoundError where no worker was set."""
    if source.connect is None:
        raise NotFoundError(NO_WORKER_SET)
    return source.connect


class ConnectPages:
    """Each method is one page."""

    def __init__(self, source: ViewSource, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer

    async def connectors(self, request: Request) -> Response:
        """``q`` is looked for in names, classes and the topics of sinks; ``failed``: only what has failed."""
        connect = self._source.connect
        if connect is None:
            return await self._renderer.page("connect_unset.html", example=EXAMPLE_URL)
        workers = await connect.workers()
        has_several = len(workers) > 1
        choice = TableQuery(request, (*CONNECTOR_COLUMNS, _ASKED) if has_several else CONNECTOR_COLUMNS, "name")
        wanted, only_failed = choice.q.lower(), choice.has("failed")

        def matches(row: ConnectorRow) -> bool:
            text = f"{row.name}\n{row.class_name}\n{' '.join(row.topics)}".lower()
            return wanted in text and (row.has_failed or not only_failed)

        part = await choice.part(await connect.connectors(), matches, self._source.pace())
        return await self._renderer.page(
            "connect.html",
            choice=choice,
            part=part,
            only_failed=only_failed,
            topics=await connect.topics(part.rows),
            workers=workers,
            has_several=has_several,
            cluster_id=(await self._source.cluster()).cluster_id,
            command=connect_commands.connectors(connect.urls),
        )

    async def connector(self, request: Request) -> Response:
        """``at`` is the worker that tells of it: connectors of two clusters may have one name."""
        connect = connect_of(self._source)
        row = await connect.connector(request.path_params["connector"], request.query_params.get("at", ""))
        tasks = sorted(row.tasks, key=lambda task: (not task.is_failed, task.number))
        return await self._renderer.page(
            "connector.html",
            row=row,
            tasks=tasks[:_MOST_TASKS],
            topics=(await connect.topics([row]))[row],
            command=connect_commands.connector(connect.request_url(row, "/status")),
        )
