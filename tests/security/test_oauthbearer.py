"""OAUTHBEARER: which first messages are read, what a refusal looks like, whom a token names."""

from __future__ import annotations

import pytest

from ottla.security.jws import TokenError
from ottla.security.oauthbearer import (
    MAX_MESSAGE_BYTES,
    OAuthBearerClient,
    OAuthBearerClientInitialResponse,
    OAuthBearerServer,
    parse_client_first,
)
from ottla.security.oauthbearer_tokens import BearerToken
from ottla.security.principal import Principal
from ottla.security.sasl import Authenticated, AuthenticationError


def validate(token: str) -> BearerToken:
    if token.startswith("bad"):
        raise TokenError("it is bad", "[read, write]" if token == "bad-scope" else None)
    return BearerToken("alice", 1_700_000_000_000)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"n,,\x01auth=Bearer abc.def.\x01\x01", OAuthBearerClientInitialResponse("abc.def.", "", {})),
        (b"n,a=alice,\x01auth=bearer  t==\x01\x01", OAuthBearerClientInitialResponse("t==", "alice", {})),
        (
            b"n,,\x01team=blue\x01auth=Bearer t\x01zone=a=b c\x01\x01",
            OAuthBearerClientInitialResponse("t", "", {"team": "blue", "zone": "a=b c"}),
        ),
    ],
)
def test_a_first_message_has_a_token_a_name_and_extensions(
    message: bytes, expected: OAuthBearerClientInitialResponse
) -> None:
    assert parse_client_first(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"y,,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer t\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic dTpw\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer t!\x01\x01",
        b"n,,\x01k1=v\x01auth=Bearer t\x01\x01",
        b"n,a=al=ice,\x01auth=Bearer t\x01\x01",
        b"n,,\x01auth=Bearer t\xff\x01\x01",
        b"n,,\x01auth=Bearer " + b"t" * MAX_MESSAGE_BYTES + b"\x01\x01",
    ],
)
def test_anything_else_is_no_first_message(message: bytes) -> None:
    with pytest.raises(AuthenticationError) as refusal:
        parse_client_first(message)
    assert not refusal.value.is_shown and len(str(refusal.value)) < 200


def test_whoever_shows_an_accepted_token_is_whom_it_names_until_it_ends() -> None:
    server = OAuthBearerServer(validate)
    assert server.outcome is None
    first = OAuthBearerClient("good", {"team": "blue"}).respond(b"")
    assert first is not None
    assert server.respond(first) == b""
    assert server.outcome == Authenticated(Principal("User", "alice"), 1_700_000_000_000)


@pytest.mark.parametrize(
    ("token", "challenge"),
    [
        ("bad", '{"status":"invalid_token"}'),
        ("bad-scope", '{"status":"insufficient_scope", "scope":"[read, write]"}'),
    ],
)
@pytest.mark.parametrize("reply", [b"\x01", b"n,,\x01auth=Bearer good\x01\x01"])
def test_a_refused_token_is_a_challenge_first_and_a_failure_after_the_reply(
    token: str, challenge: str, reply: bytes
) -> None:
    server, client = OAuthBearerServer(validate), OAuthBearerClient(token)
    first = client.respond(b"")
    assert first is not None
    answer = server.respond(first)
    assert answer.decode() == challenge
    with pytest.raises(AuthenticationError) as refusal:
        server.respond(reply)
    assert str(refusal.value) == challenge and refusal.value.is_shown
    assert server.outcome is None
    with pytest.raises(AuthenticationError, match=r"invalid_token|insufficient_scope"):
        client.respond(answer)


def test_a_client_is_nobody_but_whom_its_token_names() -> None:
    with pytest.raises(AuthenticationError, match=r"authorization id \(bob\) .* principal name \(alice\)") as refusal:
        OAuthBearerServer(validate).respond(b"n,a=bob,\x01auth=Bearer good\x01\x01")
    assert refusal.value.is_shown
    server = OAuthBearerServer(validate)
    server.respond(b"n,a=alice,\x01auth=Bearer good\x01\x01")
    assert server.outcome is not None


def test_a_client_has_nothing_more_to_show_when_the_broker_is_content() -> None:
    client = OAuthBearerClient("good")
    assert client.respond(b"") == b"n,,\x01auth=Bearer good\x01\x01"
    assert client.respond(b"") is None
