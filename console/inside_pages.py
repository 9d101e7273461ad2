"""The pages of details known only to the broker itself: producers and consumers, group timelines, requests, logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from ..view.inside_rows import ApplicationRow, ClientRow, ConsumerRow, WriterRow
from ..view.own.all_brokers import BrokersRows
from ..view.own.broker_view import NotFoundError
from ..view.own.told_rows import APPLICATIONS, BATCHES, ERRORS, LOG, REQUEST, SEGMENTS, SLOWEST, TIMELINE
from ..view.own.topic_clients import consumers_of, producers_of
from ..view.rows import ErrorRow, RequestRow
from ..view.source import ViewSource, seen_inside
from ..wire.messages.describe_inside import DescribeInsideRequest
from . import commands, more_commands
from .render import Renderer
from .tables import TableColumn, TableQuery, none_last, of_brokers

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

    async def _told(self, kind: str) -> BrokersRows:
        return await seen_inside(self._source).all_brokers.rows(kind)

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
        told = await producers_of(seen_inside(self._source), name)

        def text(row: WriterRow) -> str:
            return f"{_about_client(row.client)} {row.transactional_id or ''} {row.producer_id}"

        command = more_commands.producers(self._source.bootstrap_servers, name)
        choice = TableQuery(request, of_brokers(WRITER_COLUMNS, told), "last")
        return await self._table("producers.html", choice, told.rows, text, command, told=told, topic=name)

    async def consumers(self, request: Request) -> Response:
        name = request.path_params["topic"]
        told = await consumers_of(seen_inside(self._source), name)

        def text(row: ConsumerRow) -> str:
            return f"{_about_client(row.client)} {row.group_id or ''}"

        choice = TableQuery(request, of_brokers(CONSUMER_COLUMNS, told), "lag")
        return await self._table("consumers.html", choice, told.rows, text, told=told, topic=name)

    async def applications(self, request: Request) -> Response:
        def text(row: ApplicationRow) -> str:
            return f"{row.client_id} {row.host} {row.software} {row.software_version} {row.principal}"

        told = await self._told(APPLICATIONS)
        choice = TableQuery(request, of_brokers(APPLICATION_COLUMNS, told), "connections")
        return await self._table("applications.html", choice, told.rows, text, told=told)

    # --- groups -------------------------------------------------------------------------------------------------------

    async def timeline(self, request: Request) -> Response:
        """The id is in the query, as on the group's own page; the group may be gone, or another broker's by now."""
        group_id = request.query_params.get("id", "")
        told = await seen_inside(self._source).all_brokers.rows(TIMELINE, group_id)
        events = sorted(told.rows, key=lambda each: each.at_ms, reverse=True) if told.several else told.rows
        command = commands.group(self._source.bootstrap_servers, group_id)
        return await self._renderer.page("timeline.html", group_id=group_id, told=told, events=events, command=command)

    # --- requests -----------------------------------------------------------------------------------------------------

    async def errors(self, request: Request) -> Response:
        def text(row: ErrorRow) -> str:
            return f"{row.api} {row.error} {row.client_id} {row.reason}"

        told = await self._told(ERRORS)
        choice = TableQuery(request, of_brokers(ERROR_COLUMNS, told), "last")
        return await self._table("errors.html", choice, told.rows, text, told=told)

    async def slowest(self, request: Request) -> Response:
        def text(row: RequestRow) -> str:
            return f"{row.api} {row.client_id} {row.peer}"

        told = await self._told(SLOWEST)
        choice = TableQuery(request, of_brokers(SLOW_COLUMNS, told), "took")
        return await self._table("slowest.html", choice, told.rows, text, told=told)

    async def request(self, request: Request) -> Response:
        """One request with its response."""
        broker, number = _broker(request), request.path_params["number"]
        asked = DescribeInsideRequest(kind=REQUEST, number=number)
        found = await seen_inside(self._source).all_brokers.of_broker(broker, asked)
        if not found:
            raise NotFoundError("That broker does not keep that request any more.")
        (whole,) = found
        return await self._renderer.page("request.html", whole=whole, broker=broker, command=None)

    # --- logs ---------------------------------------------------------------------------------------------------------

    async def log(self, request: Request) -> Response:
        """A replica's log: what becomes of it, its newest segments, and batches from an offset on."""
        name, number = request.path_params["topic"], request.path_params["partition"]
        view = seen_inside(self._source)
        replicas = view.replicas(name, number)
        broker = _broker(request)
        if broker is None:
            leader = view.leaders(name)[number]
            broker = view.node_id if view.node_id in replicas or leader < 0 else leader

        async def of(kind: str, offset: int = -1) -> Sequence[Any]:
            asked = DescribeInsideRequest(kind=kind, name=name, number=number, offset=offset)
            return await view.all_brokers.of_broker(broker, asked)

        logs, segments = await of(LOG), await of(SEGMENTS)
        if not logs:
            raise NotFoundError(f"Broker {broker} has no replica of {name}-{number}.")
        (log,) = logs
        given = request.query_params.get("from", "")
        offset = int(given) if given.isascii() and given.isdigit() and len(given) < 19 else None
        if offset is None:
            offset = segments[0].base_offset if segments else log.start
        offset = max(offset, log.start)
        batches = await of(BATCHES, offset) if log.start <= offset < log.high_watermark else ()
        file = f"ottla dump-log --files {log.directory}/{segments[0].base_offset:020}.log" if segments else ""
        return await self._renderer.page(
            "log.html",
            log=log,
            broker=broker,
            own=view.node_id,
            replicas=replicas,
            segments=segments[:_MOST_SEGMENTS],
            batches=batches,
            offset=offset,
            command=commands.Command(file) if file else None,
        )


def _broker(request: Request) -> int | None:
    """The broker in the query; None where there is none."""
    given = request.query_params.get("broker", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None
