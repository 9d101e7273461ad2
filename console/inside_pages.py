"""The pages of details known only to the broker itself: producers and consumers, group timelines, requests, logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ..view.inside_rows import ApplicationRow, ClientRow, ConsumerRow, WriterRow
from ..view.own.details import BrokerDetails
from ..view.source import ViewSource, seen_inside
from . import commands, more_commands
from .render import Renderer
from .tables import TableColumn, TableQuery, none_last

T = TypeVar("T")

_MOST_SEGMENTS = 200


def _client(row: WriterRow | ConsumerRow) -> tuple[str, str]:
    return ("", "") if row.client is None else (row.client.client_id, row.client.peer)


def _software(row: WriterRow | ConsumerRow) -> tuple[str, str]:
    return ("", "") if row.client is None else (row.client.software, row.client.software_version)


WRITER_COLUMNS = (
    TableColumn("partition", "Partition", lambda row: -row.partition, is_number=True),
    TableColumn("client", "Client", _client),
    TableColumn("software", "Software", _software),
    TableColumn("principal", "Principal", lambda row: "" if row.client is None else row.client.principal),
    TableColumn("producer", "Producer id", lambda row: none_last(row.producer_id), is_number=True),
    TableColumn("epoch", "Epoch", lambda row: none_last(row.epoch), is_number=True),
    TableColumn("id", "Transactional id", lambda row: row.transactional_id or ""),
    TableColumn("sequence", "Last sequence", lambda row: none_last(row.last_sequence), is_number=True),
    TableColumn("offset", "Last batch", lambda row: none_last(row.last_offset), is_number=True),
    TableColumn("last", "Last written", lambda row: row.last_ms, is_number=True),
)
CONSUMER_COLUMNS = (
    TableColumn("partition", "Partition", lambda row: -row.partition, is_number=True),
    TableColumn("client", "Client", _client),
    TableColumn("software", "Software", _software),
    TableColumn("principal", "Principal", lambda row: row.client.principal),
    TableColumn("position", "Reads from", lambda row: row.position, is_number=True),
    TableColumn("lag", "Behind", lambda row: none_last(row.lag), is_number=True),
    TableColumn("group", "Group", lambda row: row.group_id or ""),
    TableColumn("committed", "Committed", lambda row: none_last(row.committed), is_number=True),
)
APPLICATION_COLUMNS = (
    TableColumn("client_id", "Client id", lambda row: row.client_id),
    TableColumn("host", "Host", lambda row: row.host),
    TableColumn("software", "Software", lambda row: (row.software, row.software_version)),
    TableColumn("principal", "Principal", lambda row: row.principal),
    TableColumn("connections", "Connections", lambda row: row.connections, is_number=True),
    TableColumn("age", "Open for", lambda row: row.age_ms, is_number=True),
    TableColumn("idle", "Quiet for", lambda row: row.idle_ms, is_number=True),
)
ERROR_COLUMNS = (
    TableColumn("api", "API", lambda row: row.api),
    TableColumn("error", "Error", lambda row: row.error),
    TableColumn("client_id", "Client id", lambda row: row.client_id),
    TableColumn("count", "How often", lambda row: row.count, is_number=True),
    TableColumn("last", "Last", lambda row: row.last_ms, is_number=True),
    TableColumn("reason", "Why", lambda row: row.reason),
)
SLOW_COLUMNS = (
    TableColumn("took", "Took", lambda row: row.total_ms, is_number=True),
    TableColumn("local", "Until it waited", lambda row: row.local_ms, is_number=True),
    TableColumn("api", "API", lambda row: (row.api, row.version)),
    TableColumn("client_id", "Client id", lambda row: row.client_id),
    TableColumn("peer", "Client", lambda row: row.peer),
    TableColumn("at", "When", lambda row: row.at_ms, is_number=True),
)


def _about_client(client: ClientRow | None) -> str:
    if client is None:
        return ""
    return f"{client.peer} {client.client_id} {client.software} {client.principal}"


class InsidePages:
    """Each method is one page."""

    def __init__(self, source: ViewSource, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer

    def _details(self) -> BrokerDetails:
        return seen_inside(self._source).details

    async def _table(
        self,
        template: str,
        choice: TableQuery,
        rows: Sequence[T],
        text: Callable[[T], str],
        command: commands.Command | None = None,
        **values: Any,
    ) -> Response:
        """A page of the rows in whose ``text`` there is what is looked for."""
        wanted = choice.q.lower()
        part = await choice.part(rows, lambda row: wanted in text(row).lower(), self._source.pace())
        return await self._renderer.page(template, choice=choice, part=part, command=command, **values)

    # --- who writes, who reads ----------------------------------------------------------------------------------------

    async def producers(self, request: Request) -> Response:
        name = request.path_params["topic"]
        rows = await self._details().writers(name)

        def text(row: WriterRow) -> str:
            return f"{_about_client(row.client)} {row.transactional_id or ''} {row.producer_id}"

        command = more_commands.producers(self._source.bootstrap_servers, name)
        choice = TableQuery(request, WRITER_COLUMNS, "last")
        return await self._table("producers.html", choice, rows, text, command, topic=name)

    async def consumers(self, request: Request) -> Response:
        name = request.path_params["topic"]
        rows = await self._details().consumers(name)

        def text(row: ConsumerRow) -> str:
            return f"{_about_client(row.client)} {row.group_id or ''}"

        choice = TableQuery(request, CONSUMER_COLUMNS, "lag")
        return await self._table("consumers.html", choice, rows, text, topic=name)

    async def applications(self, request: Request) -> Response:
        def text(row: ApplicationRow) -> str:
            return f"{row.client_id} {row.host} {row.software} {row.software_version} {row.principal}"

        choice = TableQuery(request, APPLICATION_COLUMNS, "connections")
        return await self._table("applications.html", choice, await self._details().applications(), text)

    # --- groups -------------------------------------------------------------------------------------------------------

    async def timeline(self, request: Request) -> Response:
        """The id is in the query, as on the group's own page; the group may be gone."""
        group_id = request.query_params.get("id", "")
        events = self._details().timeline(group_id)
        command = commands.group(self._source.bootstrap_servers, group_id)
        return await self._renderer.page("timeline.html", group_id=group_id, events=events, command=command)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def errors(self, request: Request) -> Response:
        choice = TableQuery(request, ERROR_COLUMNS, "last")
        rows = self._details().errors()
        return await self._table(
            "errors.html", choice, rows, lambda row: f"{row.api} {row.error} {row.client_id} {row.reason}"
        )

    async def slowest(self, request: Request) -> Response:
        choice = TableQuery(request, SLOW_COLUMNS, "took")
        rows = self._details().slowest()
        return await self._table("slowest.html", choice, rows, lambda row: f"{row.api} {row.client_id} {row.peer}")

    async def request(self, request: Request) -> Response:
        """One request with its response."""
        row, asked, answered = await self._details().request(request.path_params["number"])
        return await self._renderer.page(
            "request.html", row=row, asked=_as_text(asked), answered=_as_text(answered), command=None
        )

    # --- logs ---------------------------------------------------------------------------------------------------------

    async def log(self, request: Request) -> Response:
        """A partition's log: what becomes of it, its newest segments, and batches from an offset on."""
        name, number = request.path_params["topic"], request.path_params["partition"]
        details = self._details()
        log = details.log(name, number)
        segments = await seen_inside(self._source).segments(name, number)
        given = request.query_params.get("from", "")
        offset = int(given) if given.isascii() and given.isdigit() and len(given) < 20 else None
        if offset is None:
            offset = segments[-1].base_offset if segments else log.start
        offset = max(offset, log.start)
        batches = await details.batches(name, number, offset) if log.start <= offset < log.high_watermark else []
        file = f"ottla dump-log --files {log.directory}/{segments[-1].base_offset:020}.log" if segments else ""
        return await self._renderer.page(
            "log.html",
            log=log,
            broker_id=seen_inside(self._source).broker_id,
            segments=segments[-_MOST_SEGMENTS:],
            batches=batches,
            offset=offset,
            command=commands.Command(file) if file else None,
        )


def _as_text(message: dict[str, Any] | None) -> str | None:
    return None if message is None else json.dumps(message, indent=2, ensure_ascii=False)
