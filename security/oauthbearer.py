"""SASL/OAUTHBEARER (RFC 7628), server and client side: authentication as the principal that a token names.

The first response to a token that is not accepted is a challenge that says why, in JSON; the client sends one byte in return, and
then the authentication fails (Kafka: OAuthBearerSaslServer). Extensions, names with values that a client sends beside the token,
are all accepted, as in Kafka unless a plugin checks them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .jws import MAX_TOKEN_CHARACTERS, TokenError
from .oauthbearer_tokens import BearerToken
from .principal import USER, Principal
from .sasl import Authenticated, AuthenticationError

OAUTHBEARER = "OAUTHBEARER"

MAX_MESSAGE_BYTES = 2 * MAX_TOKEN_CHARACTERS
"""The largest first message of a client: a token, and extensions."""

# Possessive repeats (++, *+) never backtrack: any client may send 128 KiB that almost match.
_KEY_VALUE = "[A-Za-z]++=[\\x21-\\x7e \\t\\r\\n]++\\x01"
_NAME = "(?:[\\x01-\\x2b\\x2d-\\x3c\\x3e-\\x7f]++|=2C|=3D)++"
_CLIENT_FIRST = re.compile(f"n,(?:a=({_NAME}))?,\\x01((?:{_KEY_VALUE})*+)\\x01")
_AUTH = re.compile(r"(\w++) ++([-_~+/.a-zA-Z0-9]++=*+)", re.ASCII)


class OAuthBearerClientInitialResponse(NamedTuple):
    """What a client sends first."""

    token: str
    authorization_id: str
    extensions: Mapping[str, str]


def parse_client_first(response: bytes) -> OAuthBearerClientInitialResponse:
    """Raises AuthenticationError. (Kafka: OAuthBearerClientInitialResponse.)"""
    if len(response) > MAX_MESSAGE_BYTES:
        raise AuthenticationError(f"a first message of {len(response)} bytes, more than {MAX_MESSAGE_BYTES}")
    match = _CLIENT_FIRST.fullmatch(response.decode("latin-1"))
    if match is None:
        raise AuthenticationError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match[2].split("\x01")[:-1])
    auth = _AUTH.fullmatch(pairs.pop("auth", ""))
    if auth is None or auth[1].lower() != "bearer":
        raise AuthenticationError("Invalid OAUTHBEARER client first message: it has no bearer token in 'auth'")
    return OAuthBearerClientInitialResponse(auth[2], match[1] or "", pairs)


class OAuthBearerServer:
    """Authenticates a client by its token. ``validate`` returns the content of an accepted token, or raises TokenError."""

    def __init__(self, validate: Callable[[str], BearerToken]) -> None:
        self.outcome: Authenticated | None = None
        self._validate = validate
        self._refusal: tuple[str, str] | None = None

    def respond(self, token: bytes) -> bytes:
        if self._refusal is not None:
            why, challenge = self._refusal
            raise AuthenticationError(challenge, is_shown=True) from AuthenticationError(why)
        first = parse_client_first(token)
        try:
            bearer = self._validate(first.token)
        except TokenError as error:
            # RFC 7628: an error is sent as a challenge first, and the exchange fails after the client's next message.
            challenge = _challenge(error)
            self._refusal = str(error), challenge
            return challenge.encode()
        if first.authorization_id not in ("", bearer.principal_name):
            raise AuthenticationError(
                f"Authentication failed: Client requested an authorization id ({first.authorization_id}) that is different "
                f"from the token's principal name ({bearer.principal_name})",
                is_shown=True,
            )
        self.outcome = Authenticated(Principal(USER, bearer.principal_name), bearer.expires_ms)
        return b""


def _challenge(error: TokenError) -> str:
    if error.scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{error.scope}"}}'


class OAuthBearerClient:
    """Sends a token; a challenge in return means that it was refused."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        pairs = {"auth": f"Bearer {token}", **(extensions or {})}
        text = "".join(f"{name}={value}\x01" for name, value in pairs.items())
        self._first: bytes | None = f"n,,\x01{text}\x01".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise AuthenticationError(f"the broker refuses the token: {challenge[:1000].decode(errors='replace')}")
        first, self._first = self._first, None
        return first
