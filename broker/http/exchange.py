"""One HTTP request and its response as ASGI 3 (https://asgi.readthedocs.io/en/latest/specs/www.html).

The application is told of spec version 2.3: then Starlette's streaming answers listen for the end of the client themselves,
and end also while they have nothing to send. ``send`` raises ``ClientGoneError`` nevertheless, as 2.4 has it. Lifespan and
websockets are not offered.

A body that is refused (too large, too slow, malformed) looks to the application like a client that has gone; the client gets
the refusal in place of whatever the application then answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

import h11
import trio

from ...base.seams import Clock
from .stream import ClientGoneError, HttpStream

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_WITHOUT_BODY = (204, 304)


class RefusedRequestError(Exception):
    """The request is answered with ``status`` by the server itself; ``str()`` is for the client."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Exchange:
    """Runs the application for one request. ``server``: host and port that the client has connected to."""

    def __init__(self, stream: HttpStream, request: h11.Request, server: tuple[str, int], clock: Clock) -> None:
        """Raises RefusedRequestError for a request that no application need see."""
        self._stream = stream
        self._protocol = stream.protocol
        self._request = request
        self._clock = clock
        self.scope = request_scope(request, stream.peer, server)
        self._refusal: RefusedRequestError | None = None
        self._head: h11.Response | None = None
        self._is_begun = False  # the head of the response has left
        self._is_over = False
        self._received: bytes | None = None  # of the body, not given to the application yet
        self._is_body_given = False
        self._is_told_of_end = False
        self._body_bytes = 0
        self._body_deadline: float | None = None
        self._check_length()
        self._take_body(self._protocol.next_event())

    @property
    def _is_body_open(self) -> bool:
        return self._protocol.their_state is h11.SEND_BODY

    def _check_length(self) -> None:
        for name, value in self._request.headers:
            if name == b"content-length" and int(value) > self._stream.limits.max_body_bytes:
                raise self._too_large()

    def _too_large(self) -> RefusedRequestError:
        return RefusedRequestError(413, f"the body is larger than {self._stream.limits.max_body_bytes} bytes")

    def _take_body(self, event: object) -> None:
        if isinstance(event, h11.Data):
            self._body_bytes += len(event.data)
            if self._body_bytes > self._stream.limits.max_body_bytes:
                raise self._too_large()
            self._received = bytes(event.data)

    async def run(self, application: Application) -> None:
        """Answer the request. Raises ClientGoneError, RefusedRequestError, and what the application raises."""
        try:
            await application(self.scope, self._receive, self._send)
        except Exception:
            if self._refusal is None:
                raise
        if self._refusal is not None and not self._is_begun:
            raise self._refusal
        if not self._is_over:
            if self._is_told_of_end or self._stream.is_broken:
                raise ClientGoneError("the client has gone")
            raise RuntimeError("the application has returned before its response was complete")

    async def _receive(self) -> Message:
        if self._is_over or self._refusal is not None:
            return {"type": "http.disconnect"}
        if self._is_body_given:
            await self._stream.wait_ended()
            self._is_told_of_end = True
            return {"type": "http.disconnect"}
        if self._received is None and self._is_body_open:
            try:
                await self._read_body()
            except RefusedRequestError as refused:
                self._refusal = refused
            except h11.RemoteProtocolError as error:
                self._refusal = RefusedRequestError(error.error_status_hint, str(error))
            except OSError:
                self._stream.is_broken = True
            if self._refusal is not None or self._stream.is_broken:
                return {"type": "http.disconnect"}
        self._is_body_given = not self._is_body_open
        received, self._received = self._received, None
        return {"type": "http.request", "body": received or b"", "more_body": self._is_body_open}

    async def _read_body(self) -> None:
        if self._protocol.they_are_waiting_for_100_continue:
            await self._stream.send(self._protocol.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        if self._body_deadline is None:
            self._body_deadline = trio.current_time() + self._stream.limits.body_seconds
        with trio.move_on_at(self._body_deadline) as scope:
            self._take_body(await self._stream.next_event())
            await trio.lowlevel.checkpoint()
        if scope.cancelled_caught:
            raise RefusedRequestError(408, "the body did not arrive in time")

    async def _send(self, message: Message) -> None:
        if self._stream.is_broken:
            raise ClientGoneError("the client has gone")
        if self._refusal is not None and not self._is_begun:
            return
        if message["type"] == "http.response.start":
            if self._head is not None:
                raise RuntimeError("the response has begun already")
            self._head = self._response(message)
        elif message["type"] == "http.response.body":
            await self._send_body(bytes(message.get("body", b"")), bool(message.get("more_body", False)))
        else:
            raise RuntimeError(f"messages of the type {message['type']} are not supported")

    def _response(self, message: Message) -> h11.Response:
        headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        headers.append((b"date", http_date(self._clock)))
        if self._is_body_open:
            headers.append((b"connection", b"close"))
        status = message["status"]
        return h11.Response(status_code=status, headers=headers, reason=_reason(status))

    async def _send_body(self, body: bytes, has_more: bool) -> None:
        if self._head is None or self._is_over:
            raise RuntimeError("a body was sent before the start of a response or after its end")
        data = b""
        if not self._is_begun:
            data = self._protocol.send(self._head) or b""
            self._is_begun = True
        if body and self._request.method != b"HEAD" and self._head.status_code not in _WITHOUT_BODY:
            data += self._protocol.send(h11.Data(data=body)) or b""
        if not has_more:
            data += self._protocol.send(h11.EndOfMessage()) or b""
            self._is_over = True
        await self._stream.send(data)


def request_scope(request: h11.Request, peer: str, server: tuple[str, int]) -> Message:
    """ASGI's description of a request. Raises RefusedRequestError for a target that is no path."""
    host, _, port = peer.rpartition(":")
    target = request.target
    if not target.startswith(b"/") and target != b"*":
        parts = urlsplit(target)
        if request.method == b"CONNECT" or parts.scheme not in (b"http", b"https"):
            raise RefusedRequestError(400, "the target is not a path")
        target = (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")
    path, _, query = target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": request.http_version.decode(),
        "method": request.method.decode(),
        "scheme": "http",
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
        "client": (host, int(port)) if port.isdigit() else None,
        "server": server,
    }


def refusal(protocol: h11.Connection, status: int, why: str, is_head: bool, clock: Clock) -> bytes:
    """The server's own response, after which the connection is closed; empty where a response has begun already."""
    if protocol.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
        return b""
    body = f"{status} {_reason(status).decode()}: {why}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"date", http_date(clock)),
    ]
    data = protocol.send(h11.Response(status_code=status, headers=headers, reason=_reason(status))) or b""
    if not is_head:
        data += protocol.send(h11.Data(data=body)) or b""
    return data + (protocol.send(h11.EndOfMessage()) or b"")


def _reason(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


def http_date(clock: Clock) -> bytes:
    """Now, as the Date header has it (RFC 9110, 6.6.1)."""
    return formatdate(clock.now_ms() / 1000, usegmt=True).encode()
