"""Protection of the console against cross-site requests and DNS rebinding, as ASGI middleware.

* ``Host`` must be an IP address, ``localhost``, or the name that the console was bound to. A page of another site that has its
  own name point to this machine (DNS rebinding) has that name in ``Host``.
* ``Origin``, where a browser sends it, must be that of ``Host``; and where it tells of the request (``Sec-Fetch-Site``), one of
  another site is refused unless a person has followed a link.
* A POST, where one may be sent at all, must say that it comes from a page of the console: ``Origin`` is that of ``Host``, or
  ``Sec-Fetch-Site`` same-origin. Browsers send both, and no page can set them.
* Every response has a content security policy that allows the console's own files and nothing in line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..base.addresses import is_address

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, Origin would be null in the console's own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_METHODS = ("GET", "HEAD")


class Guard:
    """The middleware. ``bound_to`` is the host that the console listens on; ``takes_forms``: whether anything can be sent."""

    def __init__(self, application: ASGIApp, bound_to: str, *, takes_forms: bool = False) -> None:
        self._application = application
        self._methods = (*_METHODS, "POST") if takes_forms else _METHODS
        self._names = frozenset({"localhost", bound_to.lower()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _with_headers(message.get("headers", ()))
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._application(scope, receive, send_with_headers)
            return
        status, why = refusal
        await PlainTextResponse(f"{why}\n", status_code=status)(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(_host_name(host)):
            return 421, "The console is not served under this name. Use the address it listens on, or localhost."
        if method not in self._methods:
            return 405, "The console is read-only."
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "This comes from a page of another site."
        site = headers.get("sec-fetch-site")
        if method == "POST":
            # Browsers without Sec-Fetch-Site send Origin with each POST, and it was compared above.
            is_own = site == "same-origin" if site is not None else origin is not None
            return None if is_own else (403, "This does not come from a page of the console.")
        if site not in ("same-origin", "none", None) and headers.get("sec-fetch-mode") != "navigate":
            return 403, "This comes from a page of another site."
        return None

    def _is_ours(self, name: str) -> bool:
        return bool(name) and (name in self._names or is_address(name))


def _host_name(host: str) -> str:
    """``Host`` without its port, and without an address's brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().removesuffix(".")


def _with_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    headers: Mapping[str, str] = _HEADERS
    found = list(given)
    names = {name.lower() for name, _ in found}
    found += [(name.encode(), value.encode()) for name, value in headers.items() if name.encode() not in names]
    if b"cache-control" not in names:
        found.append((b"cache-control", b"no-store"))
    return found
