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
from ..view.connect_view import ConnectError
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
    """A field of a form."""

    name: str
    label: str
    value: str = ""
    kind: str = "text"
    """text, number, lines or choice."""
    choices: Sequence[tuple[str, str]] = ()
    """Value and text of each, for a choice."""
    hint: str = ""


@dataclasses.dataclass(frozen=True)
class ActionPlan:
    """The effects of an action, shown above the button that carries it out."""

    what: str
    """A sentence about the effects."""
    verb: str
    """The text of the button."""
    command: Command | None
    warnings: Sequence[str] = ()
    """What to think of before."""
    typed: str | None = None
    """The text that the user has to type to confirm; None for nothing."""
    columns: Sequence[str] = ()
    """The heads of a table; those of numbers are aligned to the right."""
    rows: Sequence[Sequence[Any]] = ()
    hidden: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Fields that are sent with the button, beside those in the address."""


@dataclasses.dataclass(frozen=True)
class ActionResult:
    """The effects of an action that was carried out, and the page to go on to."""

    what: str
    """A sentence with the numbers."""
    address: str
    """Of the page to go on to, which is called ``name``."""
    name: str
    columns: Sequence[str] = ()
    """As in ``ActionPlan``, with ``rows``."""
    rows: Sequence[Sequence[Any]] = ()


class Action(Protocol):
    """One thing that can be done in the console."""

    title: str
    """The heading of its page."""
    here: str
    """The page in the menu that it belongs to."""
    api: ApiKey
    """The request that does it, whose handler checks the visitor's rights. An action that sends no request checks them itself."""

    def fields(self, given: Given) -> Sequence[FormField]:
        """Its form; none where everything is in the address."""
        ...

    async def facts(self, given: Given) -> Sequence[tuple[str, str]]:
        """What to know before the form is filled in, each with its name. Raises the same as ``plan``."""
        ...

    async def plan(self, given: Given) -> ActionPlan | None:
        """None while the form is not filled in. Raises WrongQuestionError, NotFoundError, KafkaError."""
        ...

    async def carry_out(self, given: Given) -> ActionResult:
        """Do it. Raises the same, and ConnectError."""
        ...


class PlainAction:
    """The common part of actions. Without ``fields``, the address of the action says everything."""

    def fields(self, given: Given) -> Sequence[FormField]:
        return ()

    async def facts(self, given: Given) -> Sequence[tuple[str, str]]:
        return ()


class KafkaAction(PlainAction):
    """The common part of actions that are made of requests."""

    def __init__(self, kafka: KafkaRequests, server: Server) -> None:
        self._kafka = kafka
        self._server = server


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
        facts: Sequence[tuple[str, str]] = ()
        plan = None
        try:
            facts = await action.facts({**sent, **path})
            plan = await action.plan({**sent, **path})
        except (WrongQuestionError, NotFoundError, KafkaError) as error:
            problem = problem or problem_of(error)
        return await self._renderer.page(
            "action.html",
            200 if problem is None else problem.status,
            title=action.title,
            here=action.here,
            fields=action.fields({**sent, **path}),
            facts=facts,
            plan=plan,
            given=sent,
            problem=problem,
        )

    async def _do(self, request: Request, action: Action) -> Response:
        sent: Given = {}
        try:
            sent = await read_form(request)
            done = await action.carry_out({**sent, **_path(request)})
        except (RefusedFormError, WrongQuestionError, NotFoundError, ConnectError, KafkaError) as error:
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
