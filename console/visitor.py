"""The visitor of the current request.

There is one for each request, in a context variable: trio gives a task's context to the tasks that it starts, so what a page
begins has the same visitor. Where there is none, nothing is shown: ``current`` raises LookupError.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import trio

from ..handlers.connection_context import ConnectionContext


@dataclasses.dataclass(frozen=True, slots=True)
class Visitor:
    """The person or program that sends the current request."""

    connection: ConnectionContext
    """Has the principal and the address, as a client's connection has, so that handlers treat it as one."""
    form_token: str
    """The token that this visitor's forms send back."""
    name: str | None = None
    """Of the user who has logged in; None if the console asks nobody."""
    scopes: set[trio.CancelScope] = dataclasses.field(default_factory=set)
    """Cancelled when the session ends: for what goes on after the response."""
    ends: float = math.inf
    """trio's time at which the session is over, however much it is used."""


_VISITOR: ContextVar[Visitor] = ContextVar("visitor")


def current() -> Visitor:
    """Raises LookupError outside of a request."""
    return _VISITOR.get()


@contextmanager
def visited_by(visitor: Visitor) -> Iterator[None]:
    """What runs inside is for this visitor."""
    before = _VISITOR.set(visitor)
    try:
        yield
    finally:
        _VISITOR.reset(before)


def form_token(secret: bytes, session: str) -> str:
    """What a form of a session has to have. Another site's page cannot read it, and so cannot make the form."""
    return hmac.new(secret, session.encode(), hashlib.sha256).hexdigest()
