"""The visitor of each request, set by the ASGI application between ``guard`` and the pages.

Where the broker has no users with passwords, whoever reaches the console is let in, as User:ANONYMOUS.
"""

from __future__ import annotations

import secrets

from starlette.types import ASGIApp, Receive, Scope, Send

from ..base.addresses import join_host_port
from ..handlers.connection_context import ConnectionContext
from .visitor import Visitor, form_token, visited_by

LISTENER = "CONSOLE"
"""The name that logs show as the listener's."""


def connection_of(scope: Scope) -> ConnectionContext:
    """The visitor's connection as handlers know those of clients."""
    host, port = scope["client"] or ("unknown", 0)
    return ConnectionContext(LISTENER, join_host_port(host.strip("[]"), port))


class OpenEntrance:
    """Lets everybody in."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        self._token = form_token(secrets.token_bytes(), "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with visited_by(Visitor(connection_of(scope), self._token)):
            await self._application(scope, receive, send)
