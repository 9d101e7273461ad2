"""This broker's own token: it logs in at an identity provider, and again before the token ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.base.seams import SystemClock, TrioWorkers
from ottla.broker.auth.token_source import TokenSource
from ottla.security.sasl import AuthenticationError
from ottla.tests.security.helpers.oauth_tokens import NOW, claims, signed

from ..helpers.identity_provider import Provider


class SettableClock(SystemClock):
    now = 0

    def now_ms(self) -> int:
        return self.now


LOGIN = {"clientId": "broker", "clientSecret": "hunter2", "scope": " kafka "}


def answered(**token: Any) -> bytes:
    return json.dumps({"access_token": signed(claims(**token)), "token_type": "Bearer"}).encode()


async def test_a_broker_logs_in_for_its_token_and_again_before_that_ends(provider: Provider) -> None:
    clock = SettableClock()
    clock.now = NOW * 1000
    source = TokenSource(provider.url, LOGIN, None)
    provider.content = answered(iat=NOW, exp=NOW + 100)
    first = await source.token(clock, TrioWorkers())
    assert provider.posted == [("Basic YnJva2VyOmh1bnRlcjI=", "grant_type=client_credentials&scope=kafka")]
    provider.content = answered(iat=NOW, exp=NOW + 200)
    clock.now += 79_000
    assert await source.token(clock, TrioWorkers()) == first
    clock.now += 2_000
    assert await source.token(clock, TrioWorkers()) != first
    assert len(provider.posted) == 2


async def test_a_token_is_shown_as_long_as_it_lasts_while_there_is_no_other(provider: Provider) -> None:
    clock = SettableClock()
    clock.now = NOW * 1000
    source = TokenSource(provider.url, LOGIN, None)
    provider.content = answered(iat=NOW, exp=NOW + 100)
    first = await source.token(clock, TrioWorkers())
    provider.status = 401
    clock.now += 90_000
    assert await source.token(clock, TrioWorkers()) == first
    clock.now += 20_000
    with pytest.raises(AuthenticationError, match="401") as refused:
        await source.token(clock, TrioWorkers())
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"access_token": 5}', b'{"access_token": "hunter2"}', b"x" * 200_000]
)
async def test_what_is_no_token_is_not_shown(provider: Provider, content: bytes) -> None:
    provider.content = content
    with pytest.raises(AuthenticationError, match="no token for other brokers") as refused:
        await TokenSource(provider.url, LOGIN, None).token(SettableClock(), TrioWorkers())
    assert "hunter2" not in str(refused.value)


async def test_a_secret_is_not_led_to_another_place(provider: Provider) -> None:
    provider.content, provider.elsewhere = answered(), f"{provider.url}/elsewhere"
    with pytest.raises(AuthenticationError, match="302"):
        await TokenSource(provider.url, LOGIN, None).token(SettableClock(), TrioWorkers())
    assert len(provider.posted) == 1
