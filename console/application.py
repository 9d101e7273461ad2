"""The console's routes and error pages."""

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
from ..view.own.broker_view import NotFoundError
from ..view.source import ViewSource
from ..wire.api_keys import ApiKey
from .actions import ActionPages
from .admin_pages import AdminPages
from .all_actions import all_actions
from .balance_page import BalancePage
from .connect_pages import ConnectPages
from .copy_pages import CopyPages
from .copying import Copies
from .decoding import Decoding
from .export import Export
from .find_page import FindPage
from .inside_pages import InsidePages
from .kafka_requests import KafkaRequests, in_words
from .pages import Pages
from .permitted_source import PermittedSource
from .questions import WrongQuestionError
from .quorum_page import QuorumPage
from .record_pages import RecordPages
from .render import Renderer
from .searches import Searches
from .sending import SendPages
from .tail import Tail
from .top import Top
from .visitor_rights import ConsoleRoute, VisitorRights

_AT_ONCE = 4
"""So many pages are made at a time; the others wait their turn."""

_Piece = str | bytes | memoryview
Page = Callable[[Request], Awaitable[Response]]


class LostRightError(ClientGoneError):
    """What was begun may not be read any more: the response ends in its midst."""


def make_application(
    source: ViewSource,
    renderer: Renderer,
    kafka: KafkaRequests | None = None,
    decoding: Decoding | None = None,
    rights: VisitorRights | None = None,
    copies: Copies | None = None,
) -> Starlette:
    """``kafka``: what actions ask; None for a console that changes nothing. ``decoding``: what records are read with.
    ``rights``: those of visitors, None where whoever runs the console is the one who looks. ``copies``: run beside the pages of
    a console that may write.
    """
    inside = source.inside
    if rights is not None:
        source = PermittedSource(source, rights)
    addresses = _Addresses(renderer, rights)
    routes: list[Route] = []
    searches = Searches(source, decoding or Decoding())
    if kafka is not None and copies is not None:
        # Before the route of a record's parts, which have any name.
        copying = CopyPages(kafka, searches, renderer, rights, copies)
        routes += _writing(addresses, SendPages(kafka, source, renderer), copying)
        routes += ActionPages(renderer).routes(all_actions(kafka, source, inside, rights))
    routes += _clients_see(addresses, Pages(source, renderer), Top(source))
    routes += _records(addresses, searches, renderer)
    routes += _a_broker_knows(addresses, InsidePages(source, renderer))
    routes += _administration(addresses, AdminPages(source, renderer, rights), BalancePage(source, renderer))
    routes.append(addresses.page("/find", FindPage(source, renderer).page, ApiKey.METADATA, leaves_out=True))
    routes.append(addresses.page("/quorum", QuorumPage(source, renderer).page, ApiKey.DESCRIBE_CLUSTER))
    routes += _connect(addresses, ConnectPages(source, renderer))
    routes.append(Route("/static/{place:path}", renderer.files.serve))

    async def fails(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return await _problem(renderer, error.status_code, "There is no such page.")

    return Starlette(routes=routes, exception_handlers={404: fails, 405: fails})


class _Addresses:
    """Makes the routes: what a page needs is looked at before it is made, and what goes wrong is a page of its own."""

    def __init__(self, renderer: Renderer, rights: VisitorRights | None) -> None:
        self._renderer = renderer
        self._rights = rights
        self._turns = trio.CapacityLimiter(_AT_ONCE)

    def page(
        self, path: str, page: Page, *apis: ApiKey, leaves_out: bool = False, methods: Sequence[str] | None = None
    ) -> ConsoleRoute:
        """``apis``: what shows the same, and by whose rights a visitor may see it (``VisitorRights.check_address``).

        ``leaves_out``: of a list, in which what may not be seen is left out (``PermittedSource``), so that everyone may ask
        for it.
        """

        async def in_turn(request: Request) -> Response:
            async with self._turns:
                return await page(request)

        return self.stream(path, in_turn, *apis, leaves_out=leaves_out, methods=methods)

    def stream(
        self, path: str, page: Page, *apis: ApiKey, leaves_out: bool = False, methods: Sequence[str] | None = None
    ) -> ConsoleRoute:
        """For what may have no end, and so takes no turn; it ends when its reader has lost a right."""
        needed = () if leaves_out else apis

        async def allowed(request: Request) -> Response:
            self._check(needed, request)
            response = await page(request)
            if isinstance(response, StreamingResponse) and self._rights is not None:
                response.body_iterator = self._while_allowed(response.body_iterator, needed, request)
            return response

        async def answered(request: Request) -> Response:
            return await _answered(allowed, request, self._renderer)

        return ConsoleRoute(path, answered, apis, methods)

    def _check(self, apis: Sequence[ApiKey], request: Request) -> None:
        """Raises KafkaError."""
        if self._rights is not None:
            self._rights.check_address(apis, request)

    async def _while_allowed(
        self, pieces: AsyncIterable[_Piece], apis: Sequence[ApiKey], request: Request
    ) -> AsyncIterator[_Piece]:
        """Raises LostRightError."""
        async for piece in pieces:
            try:
                self._check(apis, request)
            except KafkaError as error:
                raise LostRightError(in_words(error)) from None
            yield piece


def _writing(addresses: _Addresses, sending: SendPages, copying: CopyPages) -> list[Route]:
    page, both = addresses.page, ("GET", "POST")
    return [
        page("/topics/{topic}/produce", sending.produce, ApiKey.METADATA, methods=both),  # Produce is asked by the page
        page("/topics/{topic}/{partition:int}/{offset:int}/edit", sending.edit, ApiKey.FETCH),
        page("/topics/{topic}/send-again", sending.send_again, ApiKey.FETCH, methods=both),
        page("/topics/{topic}/copy", copying.copy, ApiKey.FETCH, methods=both),
        page("/topics/{topic}/copies/{number:int}", copying.progress, ApiKey.FETCH, methods=both),
    ]


def _clients_see(addresses: _Addresses, pages: Pages, top: Top) -> list[Route]:
    page = addresses.page
    return [
        page("/", pages.overview, ApiKey.DESCRIBE_CLUSTER),
        page("/state", pages.state, ApiKey.DESCRIBE_CLUSTER, leaves_out=True),
        page("/history.json", pages.history, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_GROUPS, leaves_out=True),
        page("/top.json", top.page, ApiKey.DESCRIBE_CLUSTER),
        page("/topics", pages.topics, ApiKey.METADATA, leaves_out=True),
        page("/topics/{topic}", pages.topic, ApiKey.METADATA),
        page("/topics/{topic}/settings", pages.settings, ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS),
        page("/groups", pages.groups, ApiKey.LIST_GROUPS, leaves_out=True),
        page("/group", pages.group, ApiKey.DESCRIBE_GROUPS),
        page("/connections", pages.connections, ApiKey.DESCRIBE_CLUSTER),
        page("/requests", pages.requests, ApiKey.DESCRIBE_CLUSTER),
    ]


def _records(addresses: _Addresses, searches: Searches, renderer: Renderer) -> list[Route]:
    page, stream = addresses.page, addresses.stream
    records = RecordPages(searches, renderer)
    return [
        page("/topics/{topic}/records", records.records, ApiKey.FETCH),
        page("/topics/{topic}/{partition:int}/{offset:int}", records.record, ApiKey.FETCH),
        page("/topics/{topic}/{partition:int}/{offset:int}/{what}", records.download, ApiKey.FETCH),
        page("/topics/{topic}/tail", Tail(searches, renderer).page, ApiKey.FETCH),
        stream("/topics/{topic}/search", records.search, ApiKey.FETCH),
        stream("/topics/{topic}/export", Export(searches).page, ApiKey.FETCH),
    ]


def _a_broker_knows(addresses: _Addresses, inner: InsidePages) -> list[Route]:
    """No API shows these: they need the right to DescribeCluster, beside that to what they are about."""
    page, inside = addresses.page, ApiKey.DESCRIBE_CLUSTER
    return [
        page("/topics/{topic}/producers", inner.producers, ApiKey.DESCRIBE_PRODUCERS, inside),
        page("/topics/{topic}/consumers", inner.consumers, ApiKey.METADATA, inside),
        page("/topics/{topic}/{partition:int}/log", inner.log, ApiKey.METADATA, inside),
        page("/group/timeline", inner.timeline, ApiKey.DESCRIBE_GROUPS, inside),
        page("/applications", inner.applications, inside),
        page("/requests/errors", inner.errors, inside),
        page("/requests/slowest", inner.slowest, inside),
        # Records of any topic may be in it: it is for those who could give themselves the right to read them.
        page("/requests/{number:int}", inner.request, inside, ApiKey.CREATE_ACLS),
    ]


def _administration(addresses: _Addresses, admin: AdminPages, balance: BalancePage) -> list[Route]:
    page, stream, cluster = addresses.page, addresses.stream, ApiKey.DESCRIBE_CLUSTER
    return [
        page("/transactions", admin.transactions, cluster),
        page("/transaction", admin.transaction, cluster, ApiKey.DESCRIBE_TRANSACTIONS),
        page("/acls", admin.acls, ApiKey.DESCRIBE_ACLS),
        page("/users", admin.users, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS),
        page("/quotas", admin.quotas, cluster, ApiKey.DESCRIBE_CLIENT_QUOTAS),
        page("/cluster", admin.cluster, cluster),
        stream("/cluster/plan", balance.page, cluster),  # a plan takes seconds
    ]


def _connect(addresses: _Addresses, connect: ConnectPages) -> list[Route]:
    """No API shows connectors: they are a part of the cluster. A connector's name may have slashes."""
    page, cluster = addresses.page, ApiKey.DESCRIBE_CLUSTER
    return [
        page("/connect", connect.connectors, cluster),
        page("/connect/{connector:path}", connect.connector, cluster),
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
