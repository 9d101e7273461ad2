"""The pages of the broker, its topics, groups, connections and requests; those of records are in ``record_pages``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from ..base.wording import counted
from ..handlers.config_entries import ConfigSource
from ..view.findings import all_made
from ..view.own.told_rows import CONNECTIONS, ERRORS, REQUESTS
from ..view.rows import BrokerRow, ConfigRow, ConnectionRow, GroupRow, RequestRow, TopicRow
from ..view.source import ONLY_INSIDE, ViewSource, seen_inside
from . import commands
from .render import Renderer
from .tables import TableColumn, TableQuery, first, none_last, of_brokers

_MOST_ERRORS = 20
_MOST_PARTITIONS = 200
TOPIC_SOURCE = ConfigSource.TOPIC_CONFIG.name

TOPIC_COLUMNS = (
    TableColumn("name", "Topic", lambda row: row.name),
    TableColumn("partitions", "Partitions", lambda row: row.partitions, is_number=True),
    TableColumn("records", "Records", lambda row: none_last(row.records), is_number=True),
    TableColumn("size", "Size", lambda row: none_last(row.size), is_number=True),
    TableColumn("in", "In", lambda row: none_last(row.rates.bytes_in), is_number=True),
    TableColumn("messages", "Records/s", lambda row: row.rates.messages_in, is_number=True),
    TableColumn("newest", "Newest record", lambda row: none_last(row.newest_ms), is_number=True),
    TableColumn("retention", "Retention", lambda row: none_last(row.retention_ms), is_number=True),
    TableColumn("lag", "Largest lag", lambda row: none_last(row.max_lag), is_number=True),
)
GROUP_COLUMNS = (
    TableColumn("group", "Group", lambda row: row.group_id),
    TableColumn("type", "Type", lambda row: row.group_type),
    TableColumn("state", "State", lambda row: row.state),
    TableColumn("members", "Members", lambda row: none_last(row.members), is_number=True),
    TableColumn("topics", "Topics", lambda row: row.topics, is_number=True),
    TableColumn("partitions", "Partitions", lambda row: row.partitions, is_number=True),
    TableColumn("lag", "Lag", lambda row: none_last(row.lag), is_number=True),
    TableColumn("max_lag", "Largest", lambda row: none_last(row.max_lag), is_number=True),
    TableColumn("epoch", "Epoch", lambda row: none_last(row.epoch), is_number=True),
    TableColumn("assignor", "Assignor", lambda row: row.protocol),
)
SETTING_COLUMNS = (
    TableColumn("name", "Setting", lambda row: row.name),
    TableColumn("value", "Value", lambda row: row.value),
    TableColumn("source", "From", lambda row: row.source),
    TableColumn("doc", "Description"),
)
CONNECTION_COLUMNS = (
    TableColumn("peer", "Client", lambda row: row.peer),
    TableColumn("client_id", "Client id", lambda row: row.client_id),
    TableColumn("software", "Software", lambda row: (row.software, row.software_version)),
    TableColumn("listener", "Listener", lambda row: row.listener),
    TableColumn("principal", "Principal", lambda row: row.principal),
    TableColumn("age", "Open for", lambda row: row.age_ms, is_number=True),
    TableColumn("idle", "Quiet for", lambda row: row.idle_ms, is_number=True),
)
REQUEST_COLUMNS = (
    TableColumn("at", "When", lambda row: row.at_ms, is_number=True),
    TableColumn("api", "API", lambda row: (row.api, row.version)),
    TableColumn("client_id", "Client id", lambda row: row.client_id),
    TableColumn("peer", "Client", lambda row: row.peer),
    TableColumn("took", "Took", lambda row: row.total_ms, is_number=True),
    TableColumn("size", "Request", lambda row: row.nbytes, is_number=True),
    TableColumn("answer", "Answer", lambda row: row.answer_nbytes, is_number=True),
    TableColumn("errors", "Errors", lambda row: len(row.errors), is_number=True),
)


class Chart(NamedTuple):
    """A chart of the overview: series of the source's history, and how their values are written."""

    label: str
    series: tuple[str, ...]
    unit: str


CHARTS = (
    Chart("Bytes in and out", ("bytes_in", "bytes_out"), "bytes"),
    Chart("Records in", ("messages_in",), "number"),
    Chart("Requests and errors", ("requests", "errors"), "number"),
    Chart("Connections", ("connections",), "count"),
    Chart("Lag of all groups", ("lag",), "count"),
    Chart("Lateness of the event loop", ("loop_lag_ms",), "ms"),
)


GROUP_SERIES = ("lag",)
TOPIC_SERIES = ("messages_in", "bytes_in", "bytes_out")


class Pages:
    """Each method is one page."""

    def __init__(self, source: ViewSource, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer

    async def overview(self, request: Request) -> Response:
        inside, cluster = self._source.inside, await self._source.cluster()
        return await self._renderer.page(
            "overview.html",
            cluster=cluster,
            broker=cluster if isinstance(cluster, BrokerRow) else None,
            charts=[chart for chart in CHARTS if all(name in self._source.history.names for name in chart.series)],
            errors=[] if inside is None else inside.errors()[:_MOST_ERRORS],
            only_inside=ONLY_INSIDE,
            command=commands.cluster(self._source.bootstrap_servers),
        )

    async def state(self, request: Request) -> Response:
        """A part of other pages: how many problems there are; empty for who may not see the overview."""
        if not self._source.sees_cluster():
            return HTMLResponse("")
        cluster = await self._source.cluster()
        problems = sum(each.is_problem for each in cluster.findings)
        warnings = len(cluster.findings) - problems
        found = [counted(number, noun) for number, noun in ((problems, "problem"), (warnings, "warning")) if number]
        variant = "danger" if problems else "warning" if warnings else "success" if all_made(cluster.checks) else ""
        missing = sum(not each.is_made for each in cluster.checks)
        text = ", ".join(found) or "Nothing found"
        return await self._renderer.page("state.html", text=text, variant=variant, missing=missing)

    async def history(self, request: Request) -> Response:
        """The points of some series, for the charts; ``span`` is minute or hour. Of a topic or a group it is the hour.

        A group's lag needs the right to the group, all else that to the cluster (``PermittedSource``).
        """
        asked = request.query_params.get("series", "").split(",")
        if (group_id := request.query_params.get("group")) is not None:
            return _by_minute(await self._source.group_lags(group_id), GROUP_SERIES, asked)
        history = self._source.history
        if (topic := request.query_params.get("topic")) is not None:
            return _by_minute(seen_inside(self._source).topic_hour(topic), TOPIC_SERIES, asked)
        names = [name for name in asked if name in history.names]
        is_hour = request.query_params.get("span") == "hour"
        points = history.minutes.points(names, 60) if is_hour else history.seconds.points(names, 120)
        times = [point[0] / 1000 for point in points]
        values = [[_number(point[place + 1]) for point in points] for place in range(len(names))]
        return JSONResponse({"times": times, "series": names, "values": values})

    async def topics(self, request: Request) -> Response:
        choice = TableQuery(request, TOPIC_COLUMNS, "name")
        shows_internal, wanted = choice.has("internal"), choice.q.lower()

        def matches(row: TopicRow) -> bool:
            return wanted in row.name.lower() and (shows_internal or not row.is_internal)

        part = await choice.part(await self._source.topics(), matches, self._source.pace())
        return await self._table("topics.html", choice, part, commands.topics, shows_internal=shows_internal)

    async def topic(self, request: Request) -> Response:
        name = request.path_params["topic"]
        detail = await self._source.topic(name)
        server = self._server()
        return await self._renderer.page(
            "topic.html",
            detail=detail,
            partitions=detail.partitions[:_MOST_PARTITIONS],
            largest=max(
                (each for each in detail.partitions if each.size), key=lambda each: each.size or 0, default=None
            ),
            command=commands.topic(server, name),
        )

    async def settings(self, request: Request) -> Response:
        """A topic's settings, each with its source and what it does."""
        name = request.path_params["topic"]
        choice = TableQuery(request, SETTING_COLUMNS, "name")
        only_set, wanted = choice.has("set"), choice.q.lower()

        def matches(row: ConfigRow) -> bool:
            is_asked = wanted in f"{row.name} {row.value} {row.doc}".lower()
            return is_asked and (not only_set or row.source == TOPIC_SOURCE)

        detail = await self._source.topic(name)
        part = await choice.part(detail.configs, matches, self._source.pace())
        command = commands.topic(self._server(), name)
        return await self._renderer.page(
            "settings.html", choice=choice, part=part, topic=name, only_set=only_set, own=TOPIC_SOURCE, command=command
        )

    async def groups(self, request: Request) -> Response:
        choice = TableQuery(request, GROUP_COLUMNS, "group")
        wanted = choice.q.lower()

        def matches(row: GroupRow) -> bool:
            return wanted in row.group_id.lower()

        part = await choice.part(await self._source.groups(), matches, self._source.pace())
        return await self._table("groups.html", choice, part, commands.groups)

    async def group(self, request: Request) -> Response:
        """The id is in the query: it may have any characters."""
        group_id = request.query_params.get("id", "")
        detail = await self._source.group(group_id)
        inside = self._source.inside
        holders = [] if inside is None else await inside.details.holders()
        return await self._renderer.page(
            "group.html",
            detail=detail,
            partitions=detail.partitions[:_MOST_PARTITIONS],
            positions={} if inside is None else await inside.details.positions(detail.members),
            holders={(each.topic, each.partition): each for each in holders if each.is_first},
            shared=[] if inside is None else (await inside.details.share_partitions(group_id))[:_MOST_PARTITIONS],
            command=commands.group(self._server(), group_id),
        )

    async def connections(self, request: Request) -> Response:
        told = await seen_inside(self._source).all_brokers.rows(CONNECTIONS)
        choice = TableQuery(request, of_brokers(CONNECTION_COLUMNS, told), "age")
        wanted = choice.q.lower()

        def matches(row: ConnectionRow) -> bool:
            return wanted in f"{row.peer} {row.client_id} {row.software} {row.principal}".lower()

        part = await choice.part(told.rows, matches, self._source.pace())
        return await self._table("connections.html", choice, part, None, told=told, own=told.own)

    async def requests(self, request: Request) -> Response:
        brokers = seen_inside(self._source).all_brokers
        told, errors = await brokers.rows(REQUESTS), await brokers.rows(ERRORS)
        choice = TableQuery(request, of_brokers(REQUEST_COLUMNS, told), "at")
        wanted = choice.q.lower()

        def matches(row: RequestRow) -> bool:
            return wanted in f"{row.api} {row.client_id} {row.peer} {' '.join((*row.errors, *row.steps))}".lower()

        part = await choice.part(told.rows, matches, self._source.pace())
        newest = await first(errors.rows, lambda row: row.last_ms, _MOST_ERRORS, self._source.pace())
        return await self._table("requests.html", choice, part, None, told=told, errors=newest)

    async def _table(
        self,
        template: str,
        choice: TableQuery,
        part: Any,
        command: Callable[[str], commands.Command] | None,
        **values: Any,
    ) -> Response:
        shown = None if command is None else command(self._server())
        return await self._renderer.page(template, choice=choice, part=part, command=shown, **values)

    def _server(self) -> str:
        return self._source.bootstrap_servers


def _number(value: float) -> float | None:
    """As JSON has it; None for what is not known."""
    return None if math.isnan(value) else round(value, 3)


def _by_minute(points: Sequence[tuple[float, ...]], known: Sequence[str], asked: Sequence[str]) -> Response:
    """Points that have a time (ms) and a value for each of the ``known`` series."""
    places = [known.index(name) + 1 for name in asked if name in known]
    times = [point[0] / 1000 for point in points]
    values = [[_number(point[place]) for point in points] for place in places]
    return JSONResponse({"times": times, "series": [known[place - 1] for place in places], "values": values})
