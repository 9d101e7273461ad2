"""The console's addresses, and what is said where there is nothing."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ..base.errors import KafkaError
from ..broker.http.stream import ClientGoneError
from ..broker.view.view import NotFoundError
from .actions import ActionPages
from .admin_pages import AdminPages
from .all_actions import all_actions
from .asking import Kafka, in_words
from .balance_page import BalancePage
from .decoding import Decoding
from .export import Export
from .inside_pages import InsidePages
from .pages import Pages
from .questions import WrongQuestionError
from .record_pages import RecordPages
from .render import Renderer
from .rights import (
    ALTER_CLUSTER,
    CLUSTER_CONFIGS,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTION,
    LEFT_OUT,
    READ_TOPIC,
    Need,
    Rights,
    SeenSource,
)
from .searches import Searches
from .sending import SendPages
from .source import Source
from .tail import Tail
from .top import Top

_AT_ONCE = 4
"""So many pages are made at a time; the others wait their turn."""

_Piece = str | bytes | memoryview
Page = Callable[[Request], Awaitable[Response]]


class LostRightError(ClientGoneError):
    """What was begun may not be read any more: the answer ends in its midst."""


def make_application(
    source: Source,
    renderer: Renderer,
    kafka: Kafka | None = None,
    decoding: Decoding | None = None,
    rights: Rights | None = None,
) -> Starlette:
    """``kafka``: what actions ask; None for a console that changes nothing. ``decoding``: what records are read with.
    ``rights``: those of visitors, None where whoever runs the console is the one who looks.
    """
    inside = source.inside
    if rights is not None:
        source = SeenSource(source, rights)
    addresses = _Addresses(renderer, rights)
    routes: list[Route] = []
    if kafka is not None:
        routes += _writing(
            addresses, SendPages(kafka, source, renderer)
        )  # before a record's parts, which have any name
        routes += ActionPages(renderer).routes(all_actions(kafka, source, inside, rights))
    routes += _clients_see(addresses, Pages(source, renderer), Top(source))
    routes += _records(addresses, Searches(source, decoding or Decoding()), renderer)
    routes += _a_broker_knows(addresses, InsidePages(source, renderer))
    routes += _administration(addresses, AdminPages(source, renderer, rights), BalancePage(source, renderer))
    routes.append(Route("/static/{place:path}", renderer.files.serve))

    async def fails(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return await _problem(renderer, error.status_code, "There is no such page.")

    return Starlette(routes=routes, exception_handlers={404: fails, 405: fails})


class _Addresses:
    """Makes the routes: what a page needs is looked at before it is made, and what goes wrong is a page of its own."""

    def __init__(self, renderer: Renderer, rights: Rights | None) -> None:
        self._renderer = renderer
        self._rights = rights
        self._turns = trio.CapacityLimiter(_AT_ONCE)

    def page(self, path: str, page: Page, needs: Sequence[Need], *methods: str) -> Route:
        """``needs``: see ``rights``."""

        async def in_turn(request: Request) -> Response:
            async with self._turns:
                return await page(request)

        return self.stream(path, in_turn, needs, *methods)

    def stream(self, path: str, page: Page, needs: Sequence[Need], *methods: str) -> Route:
        """For what may have no end, and so takes no turn; it ends when its reader has lost a right."""

        async def allowed(request: Request) -> Response:
            self._check(needs, request)
            response = await page(request)
            if isinstance(response, StreamingResponse) and self._rights is not None:
                response.body_iterator = self._while_allowed(response.body_iterator, needs, request)
            return response

        async def answered(request: Request) -> Response:
            return await _answered(allowed, request, self._renderer)

        return Route(path, answered, methods=methods or None)

    def _check(self, needs: Sequence[Need], request: Request) -> None:
        """Raises KafkaError."""
        if self._rights is not None:
            for need in needs:
                need.check(self._rights, request)

    async def _while_allowed(
        self, pieces: AsyncIterable[_Piece], needs: Sequence[Need], request: Request
    ) -> AsyncIterator[_Piece]:
        """Raises LostRightError."""
        async for piece in pieces:
            try:
                self._check(needs, request)
            except KafkaError as error:
                raise LostRightError(in_words(error)) from None
            yield piece


def _writing(addresses: _Addresses, sending: SendPages) -> list[Route]:
    page = addresses.page
    return [
        page("/topics/{topic}/produce", sending.produce, [DESCRIBE_TOPIC], "GET", "POST"),
        page("/topics/{topic}/{partition:int}/{offset:int}/edit", sending.edit, [READ_TOPIC]),
        page("/topics/{topic}/send-again", sending.send_again, [READ_TOPIC], "GET", "POST"),
    ]


def _clients_see(addresses: _Addresses, pages: Pages, top: Top) -> list[Route]:
    page = addresses.page
    return [
        page("/", pages.overview, [DESCRIBE_CLUSTER]),
        page("/history.json", pages.history, [DESCRIBE_CLUSTER]),
        page("/top.json", top.page, [DESCRIBE_CLUSTER]),
        page("/topics", pages.topics, LEFT_OUT),
        page("/topics/{topic}", pages.topic, [DESCRIBE_TOPIC]),
        page("/groups", pages.groups, LEFT_OUT),
        page("/group", pages.group, [DESCRIBE_GROUP]),
        page("/connections", pages.connections, [DESCRIBE_CLUSTER]),
        page("/requests", pages.requests, [DESCRIBE_CLUSTER]),
    ]


def _records(addresses: _Addresses, searches: Searches, renderer: Renderer) -> list[Route]:
    page, stream = addresses.page, addresses.stream
    records = RecordPages(searches, renderer)
    return [
        page("/topics/{topic}/records", records.records, [READ_TOPIC]),
        page("/topics/{topic}/{partition:int}/{offset:int}", records.record, [READ_TOPIC]),
        page("/topics/{topic}/{partition:int}/{offset:int}/{what}", records.download, [READ_TOPIC]),
        page("/topics/{topic}/tail", Tail(searches, renderer).page, [READ_TOPIC]),
        stream("/topics/{topic}/search", records.search, [READ_TOPIC]),
        stream("/topics/{topic}/export", Export(searches).page, [READ_TOPIC]),
    ]


def _a_broker_knows(addresses: _Addresses, inner: InsidePages) -> list[Route]:
    page = addresses.page
    return [
        page("/topics/{topic}/producers", inner.producers, [READ_TOPIC, DESCRIBE_CLUSTER]),
        page("/topics/{topic}/consumers", inner.consumers, [DESCRIBE_TOPIC, DESCRIBE_CLUSTER]),
        page("/topics/{topic}/{partition:int}/log", inner.log, [DESCRIBE_TOPIC, DESCRIBE_CLUSTER]),
        page("/group/timeline", inner.timeline, [DESCRIBE_GROUP, DESCRIBE_CLUSTER]),
        page("/applications", inner.applications, [DESCRIBE_CLUSTER]),
        page("/requests/errors", inner.errors, [DESCRIBE_CLUSTER]),
        page("/requests/slowest", inner.slowest, [DESCRIBE_CLUSTER]),
        page("/requests/{number:int}", inner.request, [DESCRIBE_CLUSTER, ALTER_CLUSTER]),
    ]


def _administration(addresses: _Addresses, admin: AdminPages, balance: BalancePage) -> list[Route]:
    page, stream = addresses.page, addresses.stream  # a plan takes seconds
    return [
        page("/transactions", admin.transactions, [DESCRIBE_CLUSTER]),
        page("/transaction", admin.transaction, [DESCRIBE_CLUSTER, DESCRIBE_TRANSACTION]),
        page("/acls", admin.acls, [DESCRIBE_CLUSTER]),
        page("/users", admin.users, [DESCRIBE_CLUSTER]),
        page("/quotas", admin.quotas, [DESCRIBE_CLUSTER, CLUSTER_CONFIGS]),
        page("/cluster", admin.cluster, [DESCRIBE_CLUSTER]),
        stream("/cluster/plan", balance.page, [DESCRIBE_CLUSTER]),
    ]


async def _answered(page: Page, request: Request, renderer: Renderer) -> Response:
    try:
        return await page(request)
    except NotFoundError as error:
        return await _problem(renderer, 404, str(error))
    except WrongQuestionError as error:
        return await _problem(renderer, 400, str(error))
    except KafkaError as error:
        if error.code.name.endswith("_AUTHORIZATION_FAILED"):
            if request.url.path == "/":  # which is where a visitor begins
                return RedirectResponse("/topics", 303)
            return await _problem(renderer, 403, in_words(error))
        return await _problem(renderer, 503, f"The broker cannot say: {error.message or error.code.name}")
    except OSError as error:
        return await _problem(renderer, 503, f"No broker answers: {error}")


async def _problem(renderer: Renderer, status: int, why: str) -> Response:
    return await renderer.page("problem.html", status, title=str(status), why=why)
