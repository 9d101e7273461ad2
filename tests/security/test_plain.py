"""SASL/PLAIN: who is let in, and in which words the others are refused (PlainSaslServer)."""

from __future__ import annotations

import pytest

from ottla.security.jaas import LoginModule
from ottla.security.plain import PlainClient, PlainServer, plain_users
from ottla.security.principal import Principal
from ottla.security.sasl import AuthenticationError

USERS = {"alice": "secret", "ünï": "pässwörd", "empty": ""}


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret", "\0ünï\0pässwörd".encode()])
def test_a_user_with_the_password_is_let_in(token: bytes) -> None:
    server = PlainServer(USERS)
    assert server.respond(token) == b""
    assert server.outcome is not None
    assert server.outcome.principal == Principal("User", token.decode().split("\0")[1])
    assert server.outcome.expires_ms is None


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0secret\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"\0alice\0Secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secret ", "Authentication failed: Invalid username or password"),
        (b"\0bob\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0\xff\xfe", "Authentication failed: Invalid username or password"),
        (b"bob\0bob\0x", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_others_are_refused_in_kafkas_words(token: bytes, why: str) -> None:
    server = PlainServer(USERS)
    with pytest.raises(AuthenticationError) as caught:
        server.respond(token)
    assert (str(caught.value), caught.value.is_shown, server.outcome) == (why, True, None)


def test_users_are_options_of_the_login_module() -> None:
    module = LoginModule("m", {"username": "admin", "password": "p", "user_alice": "a", "user_": "b", "User_bob": "c"})
    assert plain_users(module) == {"alice": "a", "": "b"}


def test_the_two_sides_agree() -> None:
    server, client = PlainServer(USERS), PlainClient("ünï", "pässwörd")
    token = client.respond(b"")
    assert token is not None
    assert client.respond(server.respond(token)) is None
    assert server.outcome is not None


def test_a_challenge_is_none_of_plain() -> None:
    client = PlainClient("alice", "secret")
    client.respond(b"")
    with pytest.raises(AuthenticationError):
        client.respond(b"more?")
