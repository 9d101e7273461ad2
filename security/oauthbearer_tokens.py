"""Validation of OAUTHBEARER tokens, signed and unsecured.

Signed tokens are accepted by the rules of Kafka's ValidatorAccessTokenValidator; unsecured ones, which any client can make up,
by those of its OAuthBearerUnsecuredValidatorCallbackHandler.

A validator takes a token and returns a ``BearerToken``, or raises TokenError. It does no I/O; the time is that of ``now_ms``.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping

from .jwks import MissingKeys, UnknownKeyError, VerificationKey, verify_signature
from .jws import Jws, TokenError, parse_jws


@dataclasses.dataclass(frozen=True, slots=True)
class BearerToken:
    """The content of an accepted token: the principal, until when it is valid (milliseconds since the epoch), and its scope."""

    principal_name: str
    expires_ms: int
    scope: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class SignedTokenRules:
    """What a signed token must contain."""

    audiences: frozenset[str] = frozenset()
    """The token must be for one of these. If there are none, it must not name any, as with Kafka's library."""
    issuer: str | None = None
    """None accepts any issuer."""
    clock_skew_seconds: float = 30
    scope_claim: str = "scope"
    subject_claim: str = "sub"


class SignedTokens:
    """Accepts tokens that an identity provider has signed.

    ``keys`` gives the key set as it was last read, ``read_again`` asks for it to be read again soon; ``now_ms`` is the time.
    """

    def __init__(
        self,
        rules: SignedTokenRules,
        keys: Callable[[], Iterable[VerificationKey]],
        read_again: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._rules = rules
        self._keys = keys
        self._read_again = read_again
        self._now_ms = now_ms
        self._missing = MissingKeys()

    def validate(self, token: str) -> BearerToken:
        """Raises TokenError."""
        jws = parse_jws(token)
        try:
            verify_signature(jws, self._keys())
        except UnknownKeyError as error:
            # The provider may have changed its keys. This token is refused all the same: the client tries again.
            if self._missing.is_new(error.key_id, self._now_ms()):
                self._read_again()
            raise
        rules = self._rules
        expires = self._check_times(jws)
        self._check_origin(jws)
        subject = jws.text(rules.subject_claim)
        if not subject:
            raise TokenError(f"there is no claim {rules.subject_claim}")
        return BearerToken(subject, round(expires * 1000), _distinct(jws, rules.scope_claim))

    def _check_times(self, jws: Jws) -> float:
        now, skew = self._now_ms() / 1000, self._rules.clock_skew_seconds
        expires, issued, begins = jws.time("exp"), jws.time("iat"), jws.time("nbf")
        if expires is None or issued is None:
            raise TokenError(f"there is no claim {'exp' if expires is None else 'iat'}")
        if now - skew >= expires:
            raise TokenError("it has expired")
        if begins is not None and now + skew < begins:
            raise TokenError("it is not valid yet")
        if expires < issued or (begins is not None and expires < begins):
            raise TokenError("it ends before it begins")
        return expires

    def _check_origin(self, jws: Jws) -> None:
        rules = self._rules
        if rules.issuer is not None and jws.claims.get("iss") != rules.issuer:
            raise TokenError("it is from another issuer")
        audiences = jws.words("aud")
        if (audiences or rules.audiences) and rules.audiences.isdisjoint(audiences):
            raise TokenError("it is for another audience")


def _distinct(jws: Jws, claim: str) -> frozenset[str]:
    words = [word.strip() for word in jws.words(claim)]
    if "" in words or len(set(words)) != len(words):
        raise TokenError(f"the claim {claim} has an empty or repeated entry")
    return frozenset(words)


@dataclasses.dataclass(frozen=True, slots=True)
class UnsecuredTokenRules:
    """What an unsecured token must contain."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> UnsecuredTokenRules:
        """From the options of the JAAS text. Raises ValueError, with one line for the user."""

        def option(name: str, default: str) -> str:
            return options.get(f"unsecuredValidator{name}", "").strip() or default

        skew = option("AllowableClockSkewMs", "0")
        if not (skew.isascii() and skew.isdigit()):
            raise ValueError(f"unsecuredValidatorAllowableClockSkewMs is not a number of milliseconds: {skew}")
        scope = tuple(option("RequiredScope", "").split())
        return cls(option("PrincipalClaimName", "sub"), option("ScopeClaimName", "scope"), scope, int(skew))


class UnsecuredTokens:
    """Accepts unsigned tokens."""

    def __init__(self, rules: UnsecuredTokenRules, now_ms: Callable[[], int]) -> None:
        self._rules = rules
        self._now_ms = now_ms

    def validate(self, token: str) -> BearerToken:
        """Raises TokenError."""
        jws, rules = parse_jws(token), self._rules
        if jws.header.get("alg") != "none" or jws.signature:
            raise TokenError("it is signed, and unsecured ones are expected")
        principal = jws.text(rules.principal_claim)
        if not principal:
            raise TokenError(f"there is no claim {rules.principal_claim}")
        now, expires, issued = self._now_ms(), jws.time("exp"), jws.time("iat")
        if expires is None:
            raise TokenError("there is no claim exp")
        if issued is not None and issued * 1000 > now + rules.clock_skew_ms:
            raise TokenError("it is not valid yet")
        if now - rules.clock_skew_ms >= expires * 1000:
            raise TokenError("it has expired")
        if issued is not None and expires <= issued:
            raise TokenError("it ends before it begins")
        scope = frozenset(word.strip() for word in jws.words(rules.scope_claim) if word.strip())
        if not scope.issuperset(rules.required_scope):
            raise TokenError("it lacks a required scope", f"[{', '.join(rules.required_scope)}]")
        return BearerToken(principal, round(expires * 1000), scope)


def login_extensions(options: Mapping[str, str]) -> dict[str, str]:
    """The extensions that this broker sends with its token: from the options ``extension_NAME`` for a signed token, and
    ``unsecuredLoginExtension_NAME`` for an unsigned one.
    """
    found = {}
    for name, value in options.items():
        for prefix in ("extension_", "unsecuredLoginExtension_"):
            if name.startswith(prefix):
                found[name.removeprefix(prefix)] = value
    return found


def unsecured_token(options: Mapping[str, str], now_ms: int) -> str:
    """An unsigned token of this broker for others, by the ``unsecuredLogin…`` options of the JAAS text.

    Claims are texts, numbers or lists (``…StringClaim_``, ``…NumberClaim_``, ``…ListClaim_``, whose first character
    separates). Raises ValueError. (Kafka: OAuthBearerUnsecuredLoginCallbackHandler.)
    """
    claims: dict[str, object] = {}
    for name, value in options.items():
        kind, _, claim = name.removeprefix("unsecuredLogin").partition("Claim_")
        if not name.startswith("unsecuredLogin") or not claim:
            continue
        if kind == "String":
            claims[claim] = value
        elif kind == "Number":
            claims[claim] = float(value)
        elif kind == "List":
            claims[claim] = value[1:].split(value[0]) if len(value) > 1 else []
    principal_claim = options.get("unsecuredLoginPrincipalClaimName", "").strip() or "sub"
    if not isinstance(claims.get(principal_claim), str):
        raise ValueError(f"the JAAS text has no unsecuredLoginStringClaim_{principal_claim}")
    lifetime = int(options.get("unsecuredLoginLifetimeSeconds", "3600"))
    claims |= {"iat": now_ms / 1000, "exp": now_ms / 1000 + lifetime}
    return f"{_segment({'alg': 'none'})}.{_segment(claims)}."


def _segment(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()
