"""Delegation tokens: creation, renewal, expiry and removal (KIP-48, KIP-900).

Source: Kafka's DelegationTokenControlManager. What the listener of a request decides is not checked here: whether the client may
ask for tokens at all, and for a token of another owner.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

from ....base.errors import ErrorCode, KafkaError
from ....metadata.image import ClusterImage
from ....security.delegation import (
    DelegationToken,
    Lifetimes,
    check_renewers,
    expired,
    new_token,
    renewed,
    token_hmac,
)
from ....security.principal import Principal
from ....wire.messages.access_records import RemoveDelegationTokenRecord
from ....wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ....wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ....wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from ....wire.metadata_records import VersionedRecord
from .. import metadata_version
from ..snapshot_records import token_record
from .result import ControllerResult

MAX_REMOVED = 1000
"""Tokens that are removed in one go (Kafka's MAX_RECORDS_PER_EXPIRATION)."""


class TokenRules(NamedTuple):
    """What delegation tokens are made by."""

    secret: str | None
    """The secret behind the passwords of tokens; None where there are to be no tokens."""
    lifetimes: Lifetimes


def create_token(
    image: ClusterImage,
    request: CreateDelegationTokenRequest,
    requester: Principal,
    rules: TokenRules,
    token_id: str,
    now_ms: int,
) -> ControllerResult[CreateDelegationTokenResponse]:
    """A token for the owner whom the request names, or for ``requester``. ``token_id`` is one that no token has."""
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    response = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
    )
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    try:
        secret = _enabled_secret(image, rules)
        check_renewers(renewers)
    except KafkaError as error:
        response.error_code = error.code
        return ControllerResult([], response)
    token = new_token(token_id, owner, requester, renewers, request.max_lifetime_ms, rules.lifetimes, now_ms)
    response.issue_timestamp_ms = token.issued_ms
    response.expiry_timestamp_ms = token.expiry_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token_id
    response.hmac = token_hmac(secret, token_id)
    return ControllerResult([(token_record(token), 0)], response)


def renew_token(
    image: ClusterImage, request: RenewDelegationTokenRequest, principal: Principal, rules: TokenRules, now_ms: int
) -> ControllerResult[RenewDelegationTokenResponse]:
    """A later end, as far away as a new token's at the most. A period of 0 or less is the longest one."""
    longest = rules.lifetimes.expiry_ms
    period_ms = min(longest, request.renew_period_ms) if request.renew_period_ms > 0 else longest
    try:
        token = _token_of(image, request.hmac, rules)
        if token.is_over(now_ms):  # before the question of whose it is
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        token = renewed(token, principal, period_ms, rules.lifetimes, now_ms)
    except KafkaError as error:
        return ControllerResult([], RenewDelegationTokenResponse(error_code=error.code))
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=token.expiry_ms)
    return ControllerResult([(token_record(token), 0)], response)


def expire_token(
    image: ClusterImage, request: ExpireDelegationTokenRequest, principal: Principal, rules: TokenRules, now_ms: int
) -> ControllerResult[ExpireDelegationTokenResponse]:
    """Another end, or with a negative period the end now, which removes the token."""
    try:
        token = _token_of(image, request.hmac, rules)
        left = expired(token, principal, request.expiry_time_period_ms, now_ms)
    except KafkaError as error:
        return ControllerResult([], ExpireDelegationTokenResponse(error_code=error.code))
    if left is None:
        return ControllerResult([_removal(token)], ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms))
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=left.expiry_ms)
    return ControllerResult([(token_record(left), 0)], response)


def remove_expired_tokens(image: ClusterImage, now_ms: int) -> ControllerResult[bool]:
    """Remove those that are over, ``MAX_REMOVED`` at the most. The response: whether there may be more of them."""
    records: list[VersionedRecord] = []
    for token in image.tokens.values():
        if token.is_over(now_ms):
            records.append(_removal(token))
            if len(records) >= MAX_REMOVED:
                return ControllerResult(records, True, is_atomic=False)
    return ControllerResult(records, False, is_atomic=False)


def _enabled_secret(image: ClusterImage, rules: TokenRules) -> str:
    """Raises KafkaError where there are no tokens."""
    if rules.secret is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if not metadata_version.has_tokens(metadata_version.finalized_level(image.features)):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return rules.secret


def _token_of(image: ClusterImage, password: bytes, rules: TokenRules) -> DelegationToken:
    """The token with this password. Raises KafkaError."""
    secret = _enabled_secret(image, rules)
    for token in image.tokens.values():
        if hmac.compare_digest(token_hmac(secret, token.token_id), password):
            return token
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def _removal(token: DelegationToken) -> VersionedRecord:
    return RemoveDelegationTokenRecord(token_id=token.token_id), 0
