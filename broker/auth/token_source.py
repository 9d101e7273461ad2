"""This broker's OAUTHBEARER token for other brokers, from a file or from an identity provider.

The request to a provider is OAuth's client credentials grant (RFC 6749, 4.4) with ``clientId`` and ``clientSecret`` of the JAAS
text, and ``scope`` if it is given. A token is used until four fifths of its time are over; then another one is read, and while
that fails the old one is used until it expires (Kafka: OAuthBearerLoginCallbackHandler, ExpiringCredentialRefreshingLogin).
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.parse
from collections.abc import Mapping

from ...base.seams import Clock, Workers
from ...security.jws import MAX_TOKEN_CHARACTERS, TokenError, parse_jws
from ...security.sasl import AuthenticationError
from .provider_http import ProviderError, read_provider

_MOST_BYTES = 2 * MAX_TOKEN_CHARACTERS
_PART_OF_A_TOKEN = 0.8


class TokenSource:
    """The tokens for one listener. ``url`` is ``sasl.oauthbearer.token.endpoint.url``, ``options`` are those of the JAAS text."""

    def __init__(self, url: str, options: Mapping[str, str], context: ssl.SSLContext | None) -> None:
        """Raises ValueError, which says what is wrong with them."""
        scheme = urllib.parse.urlsplit(url).scheme
        if scheme not in ("file", "http", "https"):
            raise ValueError("neither a file, http nor https URL")
        self._url = url
        self._context = context
        self._authorization = self._body = None
        if scheme != "file":
            self._authorization = _authorization(options)
            scope = options.get("scope", "").strip()
            fields = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
            self._body = urllib.parse.urlencode(fields).encode()
        self._token = ""
        # By the broker's clock: from when on another token is looked for, and until when this one is used if there is none.
        self._renew_ms = self._end_ms = 0.0

    async def token(self, clock: Clock, workers: Workers) -> str:
        """A token that is valid now. Raises AuthenticationError, which contains no part of a token."""
        if clock.now_ms() < self._renew_ms:
            return self._token
        try:
            token = await workers.run(self._read)
            begin_ms, end_ms = _times(token, clock.now_ms())
        except (ProviderError, TokenError) as error:
            if clock.now_ms() < self._end_ms:
                return self._token
            raise AuthenticationError(f"no token for other brokers could be obtained at {self._url}: {error}") from None
        self._token, self._end_ms = token, end_ms
        self._renew_ms = begin_ms + (end_ms - begin_ms) * _PART_OF_A_TOKEN
        return token

    def _read(self) -> str:
        """Read a token; blocks. Raises ProviderError."""
        data = read_provider(self._url, _MOST_BYTES, self._context, self._body, self._authorization)
        if self._body is None:
            return data.decode(errors="replace").strip()
        try:
            token = json.loads(data)["access_token"]
        except (ValueError, RecursionError, KeyError, TypeError):
            raise ProviderError("the response has no access_token") from None
        if not isinstance(token, str):
            raise ProviderError("the access_token in the response is not a string")
        return token.strip()


def _authorization(options: Mapping[str, str]) -> str:
    """The Authorization header. Raises ValueError where the options lack one of the two."""
    values = [options.get(name, "").strip() for name in ("clientId", "clientSecret")]
    if not all(values):
        raise ValueError("sasl.jaas.config needs clientId and clientSecret for it")
    return f"Basic {base64.b64encode(':'.join(values).encode()).decode()}"


def _times(token: str, now_ms: int) -> tuple[float, float]:
    """When a token was issued (now, if it does not say), and when it expires. Raises TokenError."""
    jws = parse_jws(token)
    begins, ends = jws.time("iat"), jws.time("exp")
    if ends is None:
        raise TokenError("there is no claim exp")
    return (now_ms if begins is None else begins * 1000), ends * 1000
