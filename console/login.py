"""The login: the ASGI application between ``guard`` and the pages of a broker whose users have passwords.

A visitor without a session gets the page to log in, and nothing else but the files that it loads. After that every page and
action has the user's principal, and so the user's rights. The cookie has a random token, which a script cannot read and other
sites' pages do not send (HttpOnly, SameSite=Strict); each log-in makes a new one, whatever came with it.

A link on another site's page comes without the cookie for that reason. It is answered with a page that asks once more, and then
comes from here. What pages do by themselves every few seconds does not keep a session.
"""

from __future__ import annotations

import logging
import secrets
from urllib.parse import quote

import trio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..base.wording import shortened
from ..broker.http.stream import ClientGoneError
from ..broker.settings import BrokerSettings
from ..handlers.services import Services
from ..security.sasl import AuthenticationError
from ..view.own.broker_view import ViewedBroker
from .entrance import connection_of
from .forms import RefusedFormError, read_form
from .passwords import Passwords
from .render import Renderer
from .sessions import Guesses, Session, Sessions
from .visitor import Visitor, form_token, visited_by

logger = logging.getLogger(__name__)

_MOST_NAME, _MOST_PASSWORD = 256, 4096
_AT_ONCE = 2


class LogIn:
    """Lets in who has logged in."""

    def __init__(self, application: ASGIApp, renderer: Renderer, broker: ViewedBroker, passwords: Passwords) -> None:
        self._application = application
        self._renderer = renderer
        self._broker = broker
        self._passwords = passwords
        self._secret = secrets.token_bytes()
        self._sessions = Sessions()
        self._guesses = Guesses()
        self._turns = trio.CapacityLimiter(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        session = self._session(request)
        if session is None:
            with visited_by(Visitor(connection_of(scope), form_token(self._secret, ""))):
                if scope["path"].startswith("/static/"):
                    await self._application(scope, receive, send)
                else:
                    await (await self._stranger(request))(scope, receive, send)
            return
        if _is_by_a_person(request.headers):
            self._sessions.use(session)
        connection = connection_of(scope)
        connection.principal = session.principal
        token = form_token(self._secret, session.token)
        with visited_by(Visitor(connection, token, session.principal.name, session.scopes, session.ends)):
            if scope["path"] in ("/login", "/logout"):
                await (await self._log_out(request, session))(scope, receive, send)
            else:
                await self._serve(session, scope, receive, send)

    def _session(self, request: Request) -> Session | None:
        session = self._sessions.find(request.cookies.get(_cookie(request), ""))
        if session is None or self._services() is None:
            return None
        if not self._is_known(session):
            self._sessions.end(session)
            return None
        return session

    def _is_known(self, session: Session) -> bool:
        """Whether the user's passwords are those that the session began with."""
        services = self._services()
        return services is None or self._passwords.known_of(services, session.principal.name) == session.known

    def _services(self) -> Services | None:
        assembly = self._broker.assembly
        return assembly.services if assembly is not None and assembly.is_started else None

    async def _serve(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        """The page, for as long as the session lasts."""
        has_begun = is_whole = False

        async def send_on(message: Message) -> None:
            nonlocal has_begun, is_whole
            # A tail or an export may run for hours: a password that is changed meanwhile ends it.
            if not self._is_known(session):
                self._sessions.end(session)
                await trio.lowlevel.checkpoint_if_cancelled()
            has_begun = True
            is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        with trio.CancelScope(deadline=session.ends) as lasting:
            session.scopes.add(lasting)
            try:
                await self._application(scope, receive, send_on)
            finally:
                session.scopes.discard(lasting)
        if lasting.cancelled_caught and not is_whole:
            if has_begun:
                raise ClientGoneError("the session has ended")  # in the midst of a file, which is not to look whole
            await _ask_again(401, "The session has ended.")(scope, receive, send)

    # --- in and out ---------------------------------------------------------------------------------------------------

    async def _stranger(self, request: Request) -> Response:
        path = request.url.path
        if path == "/login":
            return await (self._log_in(request) if request.method == "POST" else self._page(request, 200))
        headers = request.headers
        if headers.get("sec-fetch-mode", "navigate") != "navigate" or "hx-request" in headers or path.endswith(".json"):
            return _ask_again(401, "Log in first.")
        if request.method == "POST":
            return await self._page(request, 403, "The session has ended: nothing was done. Log in, and do it again.")
        raw = request.scope["raw_path"] + (b"?" + request.scope["query_string"] if request.url.query else b"")
        target = raw.decode("latin-1")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            # Browsers send no SameSite=Strict cookie when a link of another site is followed. This page loads the address
            # again, from the console's own site: then somebody who has logged in is known.
            return await self._renderer.page("again.html", title="One moment", address=target)
        return RedirectResponse(f"/login?next={quote(target, safe='')}", 303)

    async def _page(self, request: Request, status: int, problem: str | None = None, user: str = "") -> Response:
        following = _following(request.query_params.get("next", ""))
        return await self._renderer.page("login.html", status, problem=problem, user=user, following=following)

    async def _log_in(self, request: Request) -> Response:
        try:
            form = await read_form(request)
        except RefusedFormError as error:
            return await self._page(request, 403, str(error))
        user, password = form.get("user", ""), form.get("password", "")
        following = _following(form.get("next", ""))
        services = self._services()
        if services is None:
            return await self._page(request, 503, "The broker has not started yet.", user)
        host = connection_of(request.scope).host
        keys = f"address {host}", f"user {user[:_MOST_NAME]}"
        if not self._guesses.begin(*keys):
            return await self._page(request, 429, "There were too many wrong passwords. Wait a minute.", user)
        async with self._turns:
            session = await self._check(services, host, user, password)
        if session is None:
            return await self._page(request, 403, "The user name or the password is wrong.", user)
        self._guesses.was_right(*keys)
        # The token changes at each login, so that nobody can plant one beforehand (session fixation).
        earlier = self._sessions.find(request.cookies.get(_cookie(request), ""))
        if earlier is not None:
            self._sessions.end(earlier)
        response = RedirectResponse(following, 303)
        response.set_cookie(
            _cookie(request),
            session.token,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def _check(self, services: Services, host: str, user: str, password: str) -> Session | None:
        """None where that is not the user's password; how long it takes does not tell why."""
        delay_ms = services.config.settings(BrokerSettings).connection_failed_authentication_delay_ms
        answer_at = trio.current_time() + delay_ms / 1000
        try:
            if len(user) > _MOST_NAME or len(password) > _MOST_PASSWORD:
                raise AuthenticationError("a name or a password that is too long")
            outcome, limit_ms = await self._passwords.authenticate(services, user, password)
        except AuthenticationError as error:
            why = shortened(f"failed log-in at the console: {error}")
            if self._broker.monitor.closings.is_first(host, why, logging.INFO):
                logger.info("%s, from %s", why, host)
            await trio.sleep_until(answer_at)
            return None
        known = self._passwords.known_of(services, outcome.principal.name)
        return self._sessions.begin(outcome.principal, known, limit_ms / 1000 if limit_ms > 0 else float("inf"))

    async def _log_out(self, request: Request, session: Session) -> Response:
        """To somebody who is in already, /login is the way on."""
        if request.url.path == "/login":
            return RedirectResponse(_following(request.query_params.get("next", "")), 303)
        if request.method != "POST":
            return PlainTextResponse("Press Log out.\n", 405)
        try:
            await read_form(request)
        except RefusedFormError as error:
            return PlainTextResponse(f"{error}\n", 403)
        self._sessions.end(session)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(_cookie(request), httponly=True, samesite="strict")
        return response


def _cookie(request: Request) -> str:
    """Of consoles at several ports of a host each has its own: cookies do not tell ports apart."""
    return f"ottla-session-{request.url.port or 80}"


def _is_by_a_person(headers: Headers) -> bool:
    """And not what a page does by itself."""
    return headers.get("sec-fetch-mode", "navigate") == "navigate" and "hx-request" not in headers


def _following(target: str) -> str:
    """Where to go on after the log-in: a path of the console, whatever a link says."""
    is_path = target.startswith("/") and not target.startswith(("//", "/\\", "/login", "/logout"))
    return target if is_path and target.isprintable() and "\\" not in target else "/"


def _ask_again(status: int, why: str) -> Response:
    """To what a page does by itself: htmx loads the page anew then, and is sent to the log-in."""
    return PlainTextResponse(f"{why}\n", status, {"hx-refresh": "true"})
