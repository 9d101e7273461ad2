"""Principals as text, and the context that has one."""

from __future__ import annotations

import pytest

from ottla.handlers.connection_context import ConnectionContext
from ottla.security.principal import ANONYMOUS, Principal, parse_principal


def test_a_principal_is_type_and_name() -> None:
    assert parse_principal("User:CN=a:b,O=c") == Principal("User", "CN=a:b,O=c")
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert Principal("User", "a", token_authenticated=True) == Principal("User", "a")
    with pytest.raises(ValueError, match="principalType:principalName but got alice"):
        parse_principal("alice")


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("127.0.0.1:4000", "127.0.0.1"),
        ("::1:4000", "::1"),
        ("[::1]:4000", "::1"),
        ("::ffff:10.0.0.1:4000", "10.0.0.1"),
        ("client:1", "client"),
    ],
)
def test_a_host_is_the_address_without_the_port(peer: str, host: str) -> None:
    assert ConnectionContext("PLAINTEXT", peer).host == host
