"""Delegation tokens: lifetimes, who may do what, and what stands in the store."""

from __future__ import annotations

import base64
import json

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.security.delegation import (
    DelegationToken,
    Lifetimes,
    check_may_ask,
    check_renewers,
    decode_token,
    encode_token,
    expired,
    new_token,
    renewed,
    token_hmac,
    token_password,
)
from ottla.security.principal import ANONYMOUS, Principal

NOW = 1_700_000_000_000
DAY = 24 * 3600 * 1000
LIFETIMES = Lifetimes(7 * DAY, DAY)
ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))


def token(wanted_ms: int = -1) -> DelegationToken:
    return new_token("token", ALICE, BOB, [CAROL], wanted_ms, LIFETIMES, NOW)


@pytest.mark.parametrize(
    ("wanted_ms", "max_ms", "expiry_ms"),
    [(-1, 7 * DAY, DAY), (0, 7 * DAY, DAY), (1000, 1000, 1000), (2 * DAY, 2 * DAY, DAY), (9 * DAY, 7 * DAY, DAY)],
)
def test_a_token_lives_as_long_as_was_asked_for_within_the_limits(wanted_ms: int, max_ms: int, expiry_ms: int) -> None:
    made = token(wanted_ms)
    assert (made.issued_ms, made.max_ms, made.expiry_ms) == (NOW, NOW + max_ms, NOW + expiry_ms)


@pytest.mark.parametrize("who", [ALICE, CAROL])
def test_owner_and_renewers_move_the_end_but_not_beyond_the_maximum(who: Principal) -> None:
    later = NOW + 1000
    assert renewed(token(), who, -1, LIFETIMES, later).expiry_ms == later + DAY
    assert renewed(token(), who, 5000, LIFETIMES, later).expiry_ms == later + 5000
    assert renewed(token(), who, 99 * DAY, LIFETIMES, later).expiry_ms == NOW + 7 * DAY
    moved = expired(token(), who, 99 * DAY, later)
    assert moved is not None and moved.expiry_ms == NOW + 7 * DAY
    assert expired(token(), who, -1, later) is None


def test_who_asked_for_a_token_sees_it_and_does_not_renew_it() -> None:
    assert token().concerns(BOB) and not token().concerns(Principal("User", "dave"))
    for act in (lambda: renewed(token(), BOB, -1, LIFETIMES, NOW), lambda: expired(token(), BOB, -1, NOW)):
        with pytest.raises(KafkaError) as refusal:
            act()
        assert refusal.value.code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_a_token_that_is_over_is_not_renewed_but_can_be_ended() -> None:
    after = NOW + DAY + 1
    assert token().is_over(after) and not token().is_over(after - 1)
    for act in (lambda: renewed(token(), ALICE, -1, LIFETIMES, after), lambda: expired(token(), ALICE, 5, after)):
        with pytest.raises(KafkaError) as refusal:
            act()
        assert refusal.value.code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expired(token(), ALICE, -1, after) is None


@pytest.mark.parametrize(
    ("protocol", "principal", "may"),
    [
        ("PLAINTEXT", ALICE, False),
        ("SSL", ANONYMOUS, False),
        ("SSL", Principal("User", "CN=alice"), True),
        ("SASL_PLAINTEXT", ALICE, True),
        ("SASL_SSL", ALICE, True),
        ("SASL_SSL", Principal("User", "alice", token_authenticated=True), False),
    ],
)
def test_who_may_ask_about_tokens(protocol: str, principal: Principal, may: bool) -> None:
    if may:
        check_may_ask(protocol, principal)
        return
    with pytest.raises(KafkaError) as refusal:
        check_may_ask(protocol, principal)
    assert refusal.value.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_only_users_renew() -> None:
    check_renewers([ALICE, BOB])
    with pytest.raises(KafkaError) as refusal:
        check_renewers([ALICE, Principal("Group", "g")])
    assert refusal.value.code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_the_password_is_the_hmac_of_the_id_in_base_64() -> None:
    hmac = token_hmac("secret", "id")
    assert len(hmac) == 64 and base64.b64decode(token_password("secret", "id")) == hmac
    assert token_hmac("other", "id") != hmac


def test_a_token_in_the_store_is_as_kafka_writes_it() -> None:
    written = DelegationToken("abc", Principal("User", "CN=a, *"), BOB, (CAROL, ALICE), NOW, NOW + 2, NOW + 1)
    assert json.loads(encode_token(written)) == {
        "version": 3,
        "owner": "User%3ACN%3Da%2C%20%2A",
        "tokenRequester": "User%3Abob",
        "renewers": ["User%3Acarol", "User%3Aalice"],
        "issueTimestamp": NOW,
        "maxTimestamp": NOW + 2,
        "expiryTimestamp": NOW + 1,
        "tokenId": "abc",
    }
    assert decode_token(encode_token(written)) == written


def test_before_kafka_3_3_the_owner_asked_for_a_token() -> None:
    fields = json.loads(encode_token(token()))
    del fields["tokenRequester"]
    assert decode_token(json.dumps({**fields, "version": 1}).encode()).requester == ALICE
    with pytest.raises(ValueError, match="layout 4"):
        decode_token(json.dumps({**fields, "version": 4}).encode())
