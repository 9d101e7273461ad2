"""A parser of JSON Web Tokens in compact form (RFC 7515, RFC 7519).

Signatures are verified by ``jwks``.

Any client may send one, so their size is bounded by ``MAX_TOKEN_CHARACTERS``, and nothing but ``TokenError`` is raised. No
message contains any part of a token.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import math
from typing import Any

MAX_TOKEN_CHARACTERS = 65_536
"""A token of an identity provider has a few thousand, one with very many groups some ten thousand."""


class TokenError(Exception):
    """A token that is not accepted. ``str()`` says why, for the broker's log."""

    def __init__(self, why: str, scope: str | None = None) -> None:
        super().__init__(why)
        self.scope = scope
        """The required scope that the token lacks; None for other reasons."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Jws:
    """The parts of a token, unchecked."""

    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    """The bytes that ``signature`` is the signature of."""
    signature: bytes

    def text(self, name: str) -> str | None:
        """A claim that is a text, without blanks around it; None if there is none. Raises TokenError."""
        value = self.claims.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise TokenError(f"the claim {name} is not a text")
        return _unicode(name, value.strip())

    def time(self, name: str) -> float | None:
        """A claim that is a time, in seconds since the epoch; None if there is none. Raises TokenError."""
        value = self.claims.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TokenError(f"the claim {name} is not a number")
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
        if not 0 <= seconds < 1e12:
            raise TokenError(f"the claim {name} is not a time")
        return seconds

    def words(self, name: str) -> list[str]:
        """A claim that is a text or a list of them, as a list; empty if there is none. Raises TokenError."""
        value = self.claims.get(name)
        if value is None:
            return []
        if isinstance(value, str):
            return [_unicode(name, value)]
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise TokenError(f"the claim {name} is neither a text nor a list of texts")
        return [_unicode(name, word) for word in value]


def _unicode(name: str, text: str) -> str:
    """The text, if it has no lone surrogates (``\\ud800``), which JSON can have but UTF-8 cannot. Raises TokenError."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise TokenError(f"the claim {name} is not Unicode")
    return text


def parse_jws(token: str) -> Jws:
    """Parse a token. Raises TokenError."""
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise TokenError(f"a token of {len(token)} characters, more than {MAX_TOKEN_CHARACTERS}")
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenError("not three parts with dots between them")
    header, claims, signature = parts
    return Jws(
        _json_object(_bytes(header), "header"),
        _json_object(_bytes(claims), "claims"),
        f"{header}.{claims}".encode(),
        _bytes(signature),
    )


def _bytes(part: str) -> bytes:
    """base64url, with or without its padding (the unsecured tokens of some clients have it)."""
    bare = part.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenError("a part is not base64url") from None


def _json_object(data: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):  # RecursionError: thousands of open brackets
        raise TokenError(f"the {what} are not JSON") from None
    if not isinstance(value, dict):
        raise TokenError(f"the {what} are not a JSON object")
    return value
