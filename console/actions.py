"""The pages of actions: a form, a plan of the effects with the equivalent command, and a button.

An ``Action`` has one address for both: GET shows its form, and, once that is filled in, its plan; POST, with a form of
``read_form``, does it. They are there where the console may write only: ``routes`` is not called otherwise, so that there is no
address to send anything to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import trio
from starlette.requests import Request
from starlette.responses import Response

from ..base.errors import KafkaError
from ..view.own.broker_view import NotFoundError
from ..wire.api_keys import ApiKey
from .commands import Command
from .forms import RefusedFormError, read_form
from .kafka_requests import KafkaRequests
from .problems import Problem, problem_of
from .questions import WrongQuestionError
from .render import Renderer
from .visitor_rights import ConsoleRoute

_AT_ONCE = 4
Given = Mapping[str, str]
"""What is known: the parts of the address, its query, and the fields of a form."""
Server = Callable[[], str]
"""The address that clients connect to first, as commands have it."""


@dataclasses.dataclass(frozen=True)
class FormField:
    """A field of a form. ``kind``: text, number, lines, or choice, of ``choices`` as (value, text)."""

    name: str
    label: str
    value: str = ""
    kind: str = "text"
    choices: Sequence[tuple[str, str]] = ()
    hint: str = ""


@dataclasses.dataclass(frozen=True)
class ActionPlan:
    """What the button ``verb`` does.

    ``what`` is a sentence of it; ``warnings`` are what to think of before. ``typed`` is what has to be typed, None for
    nothing. ``columns`` and ``rows`` are a table, of which numbers are to be right. ``hidden`` goes with the button, beside
    what is given in the address.
    """

    what: str
    verb: str
    command: Command | None
    warnings: Sequence[str] = ()
    typed: str | None = None
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    hidden: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class ActionResult:
    """What was done, as a sentence with its numbers, and the page to go on to; ``columns`` and ``rows`` as in a
    ``ActionPlan``.
    """

    what: str
    address: str
    name: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


class Action(Protocol):
    """One thing that can be done. ``title`` is its heading, ``here`` the page in the menu that it belongs to.

    ``api`` is the request that does it, whose handler looks at the visitor's rights; an action that asks nothing looks itself.
    """

    title: str
    here: str
    api: ApiKey

    def fields(self, given: Given) -> Sequence[FormField]:
        """Its form; none where everything is in the address."""
        ...

    async def plan(self, given: Given) -> ActionPlan | None:
        """None while the form is not filled in. Raises WrongQuestionError, NotFoundError, KafkaError."""
        ...

    async def carry_out(self, given: Given) -> ActionResult:
        """Do it. Raises the same."""
        ...


class KafkaAction:
    """What actions made of requests have in common. ``fields``: an action whose address says everything has none."""

    def __init__(self, kafka: KafkaRequests, server: Server) -> None:
        self._kafka = kafka
        self._server = server

    def fields(self, given: Given) -> Sequence[FormField]:
        return ()


class ActionPages:
    """The addresses of actions."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._turns = trio.CapacityLimiter(_AT_ONCE)

    def routes(self, actions: Mapping[str, Action]) -> list[ConsoleRoute]:
        """``actions`` by address, as Starlette writes it."""
        return [self._route(address, action) for address, action in actions.items()]

    def _route(self, address: str, action: Action) -> ConsoleRoute:
        async def answer(request: Request) -> Response:
            async with self._turns:
                return await (self._do if request.method == "POST" else self._show)(request, action)

        return ConsoleRoute(address, answer, [action.api], ["GET", "POST"])

    async def _show(self, request: Request, action: Action) -> Response:
        return await self._plan(action, dict(request.query_params), _path(request))

    async def _plan(self, action: Action, sent: Given, path: Given, problem: Problem | None = None) -> Response:
        """The action's page; where it is there after something has gone wrong already, with that."""
        plan = None
        try:
            plan = await action.plan({**sent, **path})
        except (WrongQuestionError, NotFoundError, KafkaError) as error:
            problem = problem or problem_of(error)
        return await self._renderer.page(
            "action.html",
            200 if problem is None else problem.status,
            title=action.title,
            here=action.here,
            fields=action.fields({**sent, **path}),
            plan=plan,
            given=sent,
            problem=problem,
        )

    async def _do(self, request: Request, action: Action) -> Response:
        sent: Given = {}
        try:
            sent = await read_form(request)
            done = await action.carry_out({**sent, **_path(request)})
        except (RefusedFormError, WrongQuestionError, NotFoundError, KafkaError) as error:
            return await self._plan(action, sent, _path(request), problem_of(error))
        return await self._renderer.page("done.html", title=action.title, here=action.here, done=done)


def _path(request: Request) -> dict[str, str]:
    return {name: str(value) for name, value in request.path_params.items()}


def number(given: Given, name: str, what: str, least: int = 0, most: int = (1 << 63) - 1) -> int | None:
    """A whole number of a form; None where nothing is given. Raises WrongQuestionError."""
    text = given.get(name, "").strip()
    if not text:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19 and least <= int(text) <= most):
        raise WrongQuestionError(f"{text} is not {what}.", name)
    return int(text)


def check_typed(given: Given, name: str) -> None:
    """Raises WrongQuestionError unless the name was typed."""
    if given.get("typed", "") != name:
        raise WrongQuestionError("Nothing was done: what was typed is not the name.", "typed")
