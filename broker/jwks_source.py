"""An identity provider's keys, read from a file or over HTTP off the loop, and again from time to time.

``keys`` is what was read last. A login reads nothing but that, so a provider that is slow or away holds up nobody, and logins go
on with the keys that are known (Kafka: RefreshingHttpsJwks).
"""

from __future__ import annotations

import http.client
import logging
import ssl
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message

import trio

from ..base.seams import Workers
from ..security.jwks import MAX_JWKS_BYTES, JwksError, VerificationKey, parse_jwks

logger = logging.getLogger(__name__)

_HTTP_SECONDS = 10.0
"""How long a provider may be silent."""


class JwksSource:
    """``begin`` once, then ``run`` in a task of its own. Times are milliseconds, as in the settings."""

    def __init__(self, url: str, refresh_ms: int, backoff_ms: int, backoff_max_ms: int) -> None:
        self.url = url
        self.keys: tuple[VerificationKey, ...] = ()
        self._refresh_seconds = refresh_ms / 1000
        self._backoff_seconds = backoff_ms / 1000
        self._backoff_max_seconds = backoff_max_ms / 1000
        self._wanted = trio.Event()

    def begin(self) -> None:
        """Read the keys of a file, those of a provider later. Raises JwksError, also for a URL that is of another kind."""
        if urllib.parse.urlsplit(self.url).scheme in ("http", "https"):
            self._wanted.set()
        else:
            self.keys = read_jwks(self.url)

    def read_again(self) -> None:
        """Read the keys soon, and not only when it is time."""
        self._wanted.set()

    async def run(self, workers: Workers) -> None:
        """Read the keys whenever it is time, or was asked for."""
        while True:
            with trio.move_on_after(self._refresh_seconds):
                await self._wanted.wait()
            self._wanted = trio.Event()
            await self._read_with_patience(workers)

    async def _read_with_patience(self, workers: Workers) -> None:
        """Try again for a while; then go on with the keys that are known."""
        pause = self._backoff_seconds
        deadline = trio.current_time() + self._backoff_max_seconds
        while True:
            try:
                self.keys = await workers.run(read_jwks, self.url)
                return
            except JwksError as error:
                if trio.current_time() + pause > deadline:
                    known = "those known are used on" if self.keys else "no token is accepted"
                    logger.warning("The keys at %s cannot be read, and %s: %s", self.url, known, error)
                    return
            await trio.sleep(pause)
            pause *= 2


def read_jwks(url: str) -> tuple[VerificationKey, ...]:
    """The usable keys at a URL (file, http, https); blocks. Raises JwksError."""
    parts = urllib.parse.urlsplit(url)
    try:
        if parts.scheme == "file":
            with open(urllib.request.url2pathname(parts.path), "rb") as file:
                data = file.read(MAX_JWKS_BYTES + 1)
        elif parts.scheme in ("http", "https"):
            data = _read_http(url)
        else:
            raise JwksError("neither a file, http nor https URL")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise JwksError(str(error) or type(error).__name__) from None
    if len(data) > MAX_JWKS_BYTES:
        raise JwksError(f"more than {MAX_JWKS_BYTES} bytes")
    return parse_jwks(data)


def _read_http(url: str) -> bytes:
    opener = urllib.request.OpenerDirector()  # no proxies, and no other kind of URL to be led to
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=ssl.create_default_context()),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SafeRedirects(),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    with opener.open(request, timeout=_HTTP_SECONDS) as response:
        data: bytes = response.read(MAX_JWKS_BYTES + 1)
        return data


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Not from https to http: the keys would come from whoever is on the way."""

    def redirect_request(
        self, req: urllib.request.Request, fp: object, code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if req.type == "https" and urllib.parse.urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError("led from https to something else")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
