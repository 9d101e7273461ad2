"""JSON Web Key Sets (RFC 7517): an identity provider's token signing keys, and when to reload them.

Keys that cannot be used for checking signatures are ignored: those for encryption, of other kinds, or malformed. Only
algorithms with a public key are accepted. The algorithm that a token names has to fit the key: its type, its curve, and the
algorithm that the set names for it, if any. So a token cannot choose how it is checked.

A token that names an unknown key is refused at once, and the set is read again in the background, because the provider may
have changed its keys since (Kafka: RefreshingHttpsJwks). Clients choose the names, so that is limited: ``MissingKeys``.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterable
from typing import Any

from .jws import Jws, TokenError

logger = logging.getLogger(__name__)

MAX_JWKS_BYTES = 1 << 20
MAX_KEY_ID_CHARACTERS = 1000
"""For an unknown key with a longer name the set is not read again (Kafka: ``MISSING_KEY_ID_MAX_KEY_LENGTH``)."""
_MISSING_KEYS = 16
_MISSING_KEY_MS = 60_000

_ALGORITHMS = {
    **{f"{family}{bits}": ("RSA", None) for family in ("RS", "PS") for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""Algorithm of a signature -> type and curve of the key."""


class JwksError(Exception):
    """A key set that cannot be fetched or read. ``str()`` is one line for the user."""


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class VerificationKey:
    """A public key of a key set."""

    key_id: str | None
    """None if the set does not name it."""
    algorithm: str | None
    """None if the set does not name it: then the key is good for every algorithm of its type."""
    key_type: str
    curve: str | None
    public_key: Any

    def fits(self, key_id: str | None, algorithm: str) -> bool:
        """Whether a token with this key id and algorithm in its header may have been signed with it."""
        key_type, curve = _ALGORITHMS[algorithm]
        return (
            (key_id is None or self.key_id == key_id)
            and self.algorithm in (None, algorithm)
            and self.key_type == key_type
            and self.curve == curve
        )


class UnknownKeyError(TokenError):
    """No key of the set fits."""

    def __init__(self, key_id: str | None) -> None:
        super().__init__("it is signed with a key that the key set does not have")
        self.key_id = key_id
        """The key that the token names; None if it names none."""


def parse_jwks(data: bytes) -> tuple[VerificationKey, ...]:
    """The usable keys of a key set. Raises JwksError, also when there are none."""
    try:
        entries = json.loads(data)["keys"]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise JwksError("not a JSON Web Key Set") from None
    if not isinstance(entries, list):
        raise JwksError("not a JSON Web Key Set")
    keys = tuple(key for entry in entries if isinstance(entry, dict) and (key := _parse_key(entry)) is not None)
    if not keys:
        raise JwksError("no key in it that signatures can be checked with")
    return keys


def _parse_key(entry: dict[str, Any]) -> VerificationKey | None:
    import jwt

    key_type, curve, algorithm, key_id = (entry.get(name) for name in ("kty", "crv", "alg", "kid"))
    if not isinstance(key_type, str):
        return None
    usable = next((name for name, kind in _ALGORITHMS.items() if kind == (key_type, curve)), None)
    if usable is None or entry.get("use", "sig") != "sig" or algorithm not in (None, *_ALGORITHMS):
        return None
    public = {name: value for name, value in entry.items() if name in ("kty", "crv", "n", "e", "x", "y")}
    try:
        key = jwt.get_algorithm_by_name(usable).from_jwk(public)
    except Exception as error:  # the two libraries raise many kinds of exceptions for a malformed key
        logger.warning("A key of the JSON Web Key Set is ignored, because it is malformed: %s", type(error).__name__)
        return None
    return VerificationKey(key_id if isinstance(key_id, str) else None, algorithm, key_type, curve, key)


def verify_signature(token: Jws, keys: Iterable[VerificationKey]) -> None:
    """Raises TokenError unless one of the keys has signed the token; UnknownKeyError if none fits its header."""
    import jwt

    algorithm, key_id = token.header.get("alg"), token.header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        raise TokenError("it is not signed with an algorithm that has a public key")
    if key_id is not None and not isinstance(key_id, str):
        raise TokenError("the name of its key is not a text")
    if "crit" in token.header:
        raise TokenError("its header has critical parameters")
    fitting = [key for key in keys if key.fits(key_id, algorithm)]
    if not fitting:
        raise UnknownKeyError(key_id)
    verify = jwt.get_algorithm_by_name(algorithm).verify
    if not any(verify(token.signed, key.public_key, token.signature) for key in fitting):
        raise TokenError("its signature is wrong")


class MissingKeys:
    """The unknown keys for which the set was read again in the last minute: once for each, and for ``_MISSING_KEYS`` at most.

    Kafka remembers as many, but reads the set again for any number of others.
    """

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}

    def is_new(self, key_id: str | None, now_ms: int) -> bool:
        """Whether the set is to be read again because a token named this key; if so, the key is remembered."""
        self._asked = {name: asked for name, asked in self._asked.items() if now_ms - asked < _MISSING_KEY_MS}
        if key_id is None or len(key_id) > MAX_KEY_ID_CHARACTERS:
            return False
        if key_id in self._asked or len(self._asked) >= _MISSING_KEYS:
            return False
        self._asked[key_id] = now_ms
        return True
