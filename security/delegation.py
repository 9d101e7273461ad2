"""Delegation tokens: their contents, lifetimes, owners and renewers (KIP-48, KIP-373).

A token is an id and, as its password, an HMAC of that id under ``delegation.token.secret.key``, which all brokers of a cluster
share; so the password need not be stored. A client that has both authenticates by SCRAM as the token's owner.

Times are milliseconds since the epoch. A token ends at its expiry, which can be moved (it is *renewed*), but never beyond its
maximum. The rules are those of Kafka's DelegationTokenManager and KafkaApis.
"""

from __future__ import annotations

import base64
import dataclasses
import hmac
import json
import urllib.parse
from collections.abc import Iterable

from ..base.errors import ErrorCode, KafkaError
from .principal import ANONYMOUS, USER, Principal, parse_principal

_LAYOUT = 3
"""The version of the JSON; in version 3, since Kafka 3.3, owner and requester may differ (KIP-373)."""


@dataclasses.dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token without its password."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    max_ms: int
    expiry_ms: int

    def is_over(self, now_ms: int) -> bool:
        return self.max_ms < now_ms or self.expiry_ms < now_ms

    def concerns(self, principal: Principal) -> bool:
        """Whether the principal owns it, asked for it, or may renew it: then it may see the token with its password."""
        return principal in (self.owner, self.requester, *self.renewers)


@dataclasses.dataclass(frozen=True, slots=True)
class Lifetimes:
    """The limits of a delegation token's life."""

    max_ms: int
    """``delegation.token.max.lifetime.ms``."""
    expiry_ms: int
    """``delegation.token.expiry.time.ms``."""


def new_token(
    token_id: str,
    owner: Principal,
    requester: Principal,
    renewers: Iterable[Principal],
    wanted_lifetime_ms: int,
    lifetimes: Lifetimes,
    now_ms: int,
) -> DelegationToken:
    """A token with an id that is new. ``wanted_lifetime_ms``: 0 or less for the longest possible."""
    longest = lifetimes.max_ms
    lifetime = min(wanted_lifetime_ms, longest) if wanted_lifetime_ms > 0 else longest
    return DelegationToken(
        token_id,
        owner,
        requester,
        tuple(renewers),
        now_ms,
        now_ms + lifetime,
        now_ms + min(lifetime, lifetimes.expiry_ms),
    )


def renewed(
    token: DelegationToken, principal: Principal, period_ms: int, lifetimes: Lifetimes, now_ms: int
) -> DelegationToken:
    """The token with another expiry, ``period_ms`` from now, the default if that is negative. Raises KafkaError."""
    _check_may_renew(token, principal)
    _check_is_alive(token, now_ms)
    return _ending_after(token, period_ms if period_ms >= 0 else lifetimes.expiry_ms, now_ms)


def expired(token: DelegationToken, principal: Principal, period_ms: int, now_ms: int) -> DelegationToken | None:
    """The token with another expiry; None if it ends now, which a negative ``period_ms`` asks for. Raises KafkaError."""
    _check_may_renew(token, principal)
    if period_ms < 0:
        return None
    _check_is_alive(token, now_ms)
    return _ending_after(token, period_ms, now_ms)


def _ending_after(token: DelegationToken, period_ms: int, now_ms: int) -> DelegationToken:
    return dataclasses.replace(token, expiry_ms=min(token.max_ms, now_ms + period_ms))


def _check_may_renew(token: DelegationToken, principal: Principal) -> None:
    if principal not in (token.owner, *token.renewers):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _check_is_alive(token: DelegationToken, now_ms: int) -> None:
    if token.is_over(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def check_renewers(renewers: Iterable[Principal]) -> None:
    """Raises KafkaError INVALID_PRINCIPAL_TYPE: only users can renew."""
    if any(renewer.type != USER for renewer in renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)


def check_may_ask(security_protocol: str, principal: Principal) -> None:
    """Raise KafkaError unless a client may send requests about tokens: it is authenticated, and not by a token."""
    is_unknown = security_protocol == "SSL" and principal == ANONYMOUS
    if security_protocol == "PLAINTEXT" or is_unknown or principal.token_authenticated:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def token_hmac(secret: str, token_id: str) -> bytes:
    """The token's password, as bytes; clients use their base 64."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def token_password(secret: str, token_id: str) -> str:
    """The token's password, as SCRAM uses it."""
    return base64.b64encode(token_hmac(secret, token_id)).decode()


def encode_token(token: DelegationToken) -> bytes:
    """The JSON that Kafka 3.9 writes into the cluster's store (DelegationTokenManagerZk), with the fields in the same order."""
    fields = {
        "issueTimestamp": token.issued_ms,
        "renewers": [_sanitized(renewer) for renewer in token.renewers],
        "tokenRequester": _sanitized(token.requester),
        "tokenId": token.token_id,
        "owner": _sanitized(token.owner),
        "expiryTimestamp": token.expiry_ms,
        "maxTimestamp": token.max_ms,
        "version": _LAYOUT,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_token(data: bytes) -> DelegationToken:
    """Read what ``encode_token`` wrote, or Kafka from 1.1 on. Raises ValueError, KeyError, TypeError."""
    fields = json.loads(data)
    if not 0 < fields["version"] <= _LAYOUT:
        raise ValueError(f"layout {fields['version']} of a delegation token")
    owner = _desanitized(fields["owner"])
    return DelegationToken(
        str(fields["tokenId"]),
        owner,
        _desanitized(fields["tokenRequester"]) if fields["version"] >= 3 else owner,
        tuple(map(_desanitized, fields["renewers"])),
        int(fields["issueTimestamp"]),
        int(fields["maxTimestamp"]),
        int(fields["expiryTimestamp"]),
    )


def _sanitized(principal: Principal) -> str:
    """As Kafka's Sanitizer writes a name: URL-encoded, the asterisk too."""
    return urllib.parse.quote(str(principal), safe="").replace("~", "%7E")


def _desanitized(text: str) -> Principal:
    return parse_principal(urllib.parse.unquote_plus(text))
