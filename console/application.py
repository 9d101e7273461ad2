"""The console's addresses, and what is said where there is nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..base.errors import KafkaError
from ..broker.view.view import NotFoundError
from .actions import ActionPages
from .admin_pages import AdminPages
from .all_actions import all_actions
from .asking import Kafka, in_words
from .decoding import Decoding
from .export import Export
from .inside_pages import InsidePages
from .pages import Pages
from .record_pages import RecordPages, WrongQuestionError
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

Page = Callable[[Request], Awaitable[Response]]


def make_application(
    source: Source,
    renderer: Renderer,
    kafka: Kafka | None = None,
    decoding: Decoding | None = None,
    rights: Rights | None = None,
) -> Starlette:
    """``kafka``: what actions ask; None for a console that changes nothing. ``decoding``: what records are read with.
    ``rights``: those of visitors, None where whoever runs the console is the one who looks.

    A line says what its address needs (``rights``); ``stream`` is for what may have no end, and so takes no turn.
    """
    inside = source.inside
    if rights is not None:
        source = SeenSource(source, rights)
    searches = Searches(source, decoding or Decoding())
    pages, records = Pages(source, renderer), RecordPages(searches, renderer)
    inner, admin = InsidePages(source, renderer), AdminPages(source, renderer, rights)
    turns = trio.CapacityLimiter(_AT_ONCE)

    def stream(path: str, page: Page, needs: Sequence[Need], *methods: str) -> Route:
        async def allowed(request: Request) -> Response:
            if rights is not None:
                for need in needs:
                    need.check(rights, request)
            return await page(request)

        async def answered(request: Request) -> Response:
            return await _answered(allowed, request, renderer)

        return Route(path, answered, methods=methods or None)

    def route(path: str, page: Page, needs: Sequence[Need], *methods: str) -> Route:
        async def in_turn(request: Request) -> Response:
            async with turns:
                return await page(request)

        return stream(path, in_turn, needs, *methods)

    async def fails(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return await _problem(renderer, error.status_code, "There is no such page.")

    routes = [
        route("/", pages.overview, [DESCRIBE_CLUSTER]),
        route("/history.json", pages.history, [DESCRIBE_CLUSTER]),
        route("/top.json", Top(source).page, [DESCRIBE_CLUSTER]),
        route("/topics", pages.topics, LEFT_OUT),
        route("/topics/{topic}", pages.topic, [DESCRIBE_TOPIC]),
        route("/topics/{topic}/records", records.records, [READ_TOPIC]),
        route("/topics/{topic}/{partition:int}/{offset:int}", records.record, [READ_TOPIC]),
        route("/topics/{topic}/{partition:int}/{offset:int}/{what}", records.download, [READ_TOPIC]),
        route("/topics/{topic}/tail", Tail(searches, renderer).page, [READ_TOPIC]),
        stream("/topics/{topic}/search", records.search, [READ_TOPIC]),
        stream("/topics/{topic}/export", Export(searches).page, [READ_TOPIC]),
        route("/groups", pages.groups, LEFT_OUT),
        route("/group", pages.group, [DESCRIBE_GROUP]),
        route("/connections", pages.connections, [DESCRIBE_CLUSTER]),
        route("/requests", pages.requests, [DESCRIBE_CLUSTER]),
        route("/topics/{topic}/producers", inner.producers, [READ_TOPIC, DESCRIBE_CLUSTER]),
        route("/topics/{topic}/consumers", inner.consumers, [DESCRIBE_TOPIC, DESCRIBE_CLUSTER]),
        route("/topics/{topic}/{partition:int}/log", inner.log, [DESCRIBE_TOPIC, DESCRIBE_CLUSTER]),
        route("/group/timeline", inner.timeline, [DESCRIBE_GROUP, DESCRIBE_CLUSTER]),
        route("/applications", inner.applications, [DESCRIBE_CLUSTER]),
        route("/requests/errors", inner.errors, [DESCRIBE_CLUSTER]),
        route("/requests/slowest", inner.slowest, [DESCRIBE_CLUSTER]),
        route("/requests/{number:int}", inner.request, [DESCRIBE_CLUSTER, ALTER_CLUSTER]),
        route("/transactions", admin.transactions, [DESCRIBE_CLUSTER]),
        route("/transaction", admin.transaction, [DESCRIBE_CLUSTER, DESCRIBE_TRANSACTION]),
        route("/acls", admin.acls, [DESCRIBE_CLUSTER]),
        route("/users", admin.users, [DESCRIBE_CLUSTER]),
        route("/quotas", admin.quotas, [DESCRIBE_CLUSTER, CLUSTER_CONFIGS]),
        route("/cluster", admin.cluster, [DESCRIBE_CLUSTER]),
        Route("/static/{place:path}", renderer.files.serve),
    ]
    if kafka is not None:
        sending = SendPages(kafka, source, renderer)
        routes[:0] = [  # before the download of a record's parts, which has any name
            route("/topics/{topic}/produce", sending.produce, [DESCRIBE_TOPIC], "GET", "POST"),
            route("/topics/{topic}/{partition:int}/{offset:int}/edit", sending.edit, [READ_TOPIC]),
            route("/topics/{topic}/send-again", sending.send_again, [READ_TOPIC], "GET", "POST"),
            *ActionPages(renderer).routes(all_actions(kafka, source, inside, rights)),
        ]
    return Starlette(routes=routes, exception_handlers={404: fails, 405: fails})


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
