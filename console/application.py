"""The console's addresses, and what is said where there is nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..base.errors import KafkaError
from ..broker.view.view import NotFoundError
from .actions import ActionPages
from .admin_pages import AdminPages
from .all_actions import all_actions
from .asking import Kafka
from .decoding import Decoding
from .export import Export
from .inside_pages import InsidePages
from .pages import Pages
from .record_pages import RecordPages, WrongQuestionError
from .render import Renderer
from .searches import Searches
from .sending import SendPages
from .source import Source
from .tail import Tail
from .top import Top

_AT_ONCE = 4
"""So many pages are made at a time; the others wait their turn."""

Page = Callable[[Request], Awaitable[Response]]


def make_application(
    source: Source, renderer: Renderer, kafka: Kafka | None = None, decoding: Decoding | None = None
) -> Starlette:
    """``kafka``: what actions ask; None for a console that changes nothing. ``decoding``: what records are read with."""
    searches = Searches(source, decoding or Decoding())
    pages, records = Pages(source, renderer), RecordPages(searches, renderer)
    inner, admin = InsidePages(source, renderer), AdminPages(source, renderer)
    turns = trio.CapacityLimiter(_AT_ONCE)

    def route(path: str, page: Page, *methods: str) -> Route:
        async def in_turn(request: Request) -> Response:
            async with turns:
                return await _answered(page, request, renderer)

        return Route(path, in_turn, methods=methods or None)

    async def fails(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return await _problem(renderer, error.status_code, "There is no such page.")

    routes = [
        route("/", pages.overview),
        route("/history.json", pages.history),
        route("/top.json", Top(source).page),
        route("/topics", pages.topics),
        route("/topics/{topic}", pages.topic),
        route("/topics/{topic}/records", records.records),
        route("/topics/{topic}/{partition:int}/{offset:int}", records.record),
        route("/topics/{topic}/{partition:int}/{offset:int}/{what}", records.download),
        route("/topics/{topic}/tail", Tail(searches, renderer).page),
        Route("/topics/{topic}/search", records.search),
        Route("/topics/{topic}/export", Export(searches).page),
        route("/groups", pages.groups),
        route("/group", pages.group),
        route("/connections", pages.connections),
        route("/requests", pages.requests),
        route("/topics/{topic}/producers", inner.producers),
        route("/topics/{topic}/consumers", inner.consumers),
        route("/topics/{topic}/{partition:int}/log", inner.log),
        route("/group/timeline", inner.timeline),
        route("/applications", inner.applications),
        route("/requests/errors", inner.errors),
        route("/requests/slowest", inner.slowest),
        route("/requests/{number:int}", inner.request),
        route("/transactions", admin.transactions),
        route("/transaction", admin.transaction),
        route("/acls", admin.acls),
        route("/users", admin.users),
        route("/quotas", admin.quotas),
        route("/cluster", admin.cluster),
        Route("/static/{place:path}", renderer.files.serve),
    ]
    if kafka is not None:
        sending = SendPages(kafka, source, renderer)
        routes += [
            route("/topics/{topic}/produce", sending.produce, "GET", "POST"),
            route("/topics/{topic}/send-again", sending.send_again, "GET", "POST"),
            *ActionPages(renderer).routes(all_actions(kafka, source)),
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
        return await _problem(renderer, 503, f"The broker cannot say: {error.message or error.code.name}")
    except OSError as error:
        return await _problem(renderer, 503, f"No broker answers: {error}")


async def _problem(renderer: Renderer, status: int, why: str) -> Response:
    return await renderer.page("problem.html", status, title=str(status), why=why)
