"""An identity provider's keys (JWKS), read from a file or over HTTP off the loop and refreshed periodically.

``keys`` is what was read last. A login reads nothing but that, so a slow provider holds no login up, and logins go
on with the keys that are known (Kafka: RefreshingHttpsJwks).
"""

from __future__ import annotations

import logging
import ssl
import urllib.parse

import trio

from ...base.seams import Workers
from ...security.jwks import MAX_JWKS_BYTES, JwksError, VerificationKey, parse_jwks
from .provider_http import ProviderError, read_provider

logger = logging.getLogger(__name__)


class JwksSource:
    """``begin`` once, then ``run`` in a task of its own. Times are milliseconds, as in the settings.

    ``context`` is the TLS configuration for an https provider, None for the system's.
    """

    def __init__(
        self, url: str, refresh_ms: int, backoff_ms: int, backoff_max_ms: int, context: ssl.SSLContext | None = None
    ) -> None:
        self.url = url
        self._context = context
        self.keys: tuple[VerificationKey, ...] = ()
        """Those read last; empty until some were."""
        self._refresh_seconds = refresh_ms / 1000
        self._backoff_seconds = backoff_ms / 1000
        self._backoff_max_seconds = backoff_max_ms / 1000
        self._wanted = trio.Event()

    def begin(self) -> None:
        """Read the keys of a file now; those of a provider are read by ``run``. Raises JwksError, also for other kinds of URL."""
        if urllib.parse.urlsplit(self.url).scheme in ("http", "https"):
            self._wanted.set()
        else:
            self.keys = read_jwks(self.url)

    def read_again(self) -> None:
        """Have ``run`` read the keys now, before the time is up."""
        self._wanted.set()

    async def run(self, workers: Workers) -> None:
        """Read the keys whenever it is time, or ``read_again`` was called."""
        while True:
            with trio.move_on_after(self._refresh_seconds):
                await self._wanted.wait()
            self._wanted = trio.Event()
            await self._read_with_retries(workers)

    async def _read_with_retries(self, workers: Workers) -> None:
        """Read the keys, trying again for a while; if that fails, the keys read before stay in use."""
        pause = self._backoff_seconds
        deadline = trio.current_time() + self._backoff_max_seconds
        while True:
            try:
                self.keys = await workers.run(read_jwks, self.url, self._context)
                return
            except JwksError as error:
                if trio.current_time() + pause > deadline:
                    known = "those known are used on" if self.keys else "no token is accepted"
                    logger.warning("The keys at %s cannot be read, and %s: %s", self.url, known, error)
                    return
            await trio.sleep(pause)
            pause *= 2


def read_jwks(url: str, context: ssl.SSLContext | None = None) -> tuple[VerificationKey, ...]:
    """The usable keys at a URL (file, http, https); blocks. Raises JwksError."""
    try:
        data = read_provider(url, MAX_JWKS_BYTES, context)
    except ProviderError as error:
        raise JwksError(str(error)) from None
    return parse_jwks(data)
