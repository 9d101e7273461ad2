"""Keys of an identity provider: from a file and over HTTP, read again, and used on while the provider is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.seams import InlineWorkers, TrioWorkers
from ottla.broker.auth.jwks_source import JwksSource
from ottla.security.jwks import JwksError
from ottla.tests.security.helpers.oauth_tokens import ec_jwk, jwks

from ..helpers.identity_provider import Provider

HOUR_MS = 3_600_000


def key_ids(source: JwksSource) -> list[str | None]:
    return [key.key_id for key in source.keys]


@asynccontextmanager
async def running(source: JwksSource) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(source.run, InlineWorkers())
        yield
        nursery.cancel_scope.cancel()


async def test_a_file_is_read_at_the_start_and_again_from_time_to_time(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(jwks())
    source = JwksSource(file.as_uri(), HOUR_MS, 100, 10_000)
    source.begin()
    assert key_ids(source) == ["first"]
    async with running(source):
        file.write_bytes(jwks(ec_jwk("second")))
        await trio.sleep(3599)
        assert key_ids(source) == ["first"]
        await trio.sleep(2)
        assert key_ids(source) == ["second"]
        file.write_bytes(jwks(ec_jwk("third")))
        source.read_again()
        await trio.testing.wait_all_tasks_blocked()
        assert key_ids(source) == ["third"]


async def test_known_keys_are_used_on_while_there_are_no_others(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(jwks())
    source = JwksSource(file.as_uri(), HOUR_MS, 100, 10_000)
    source.begin()
    async with running(source):
        file.unlink()
        await trio.sleep(3700)
        assert key_ids(source) == ["first"]
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        file.write_bytes(jwks(ec_jwk("second")))
        source.read_again()
        await trio.testing.wait_all_tasks_blocked()
        assert key_ids(source) == ["second"]


async def test_a_provider_may_come_later_than_the_broker(provider: Provider) -> None:
    provider.status = 503
    source = JwksSource(provider.url, HOUR_MS, 10, 60_000)
    source.begin()
    assert source.keys == ()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(source.run, TrioWorkers())
        provider.status = 200
        with trio.fail_after(20):
            while not source.keys:
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert key_ids(source) == ["first"]


@pytest.mark.parametrize(
    "url", ["keys.json", "ftp://x/keys", "data:application/json,{}", "file:///nowhere/keys.json", ""]
)
def test_a_url_that_leads_nowhere_is_said_at_the_start(url: str) -> None:
    with pytest.raises(JwksError):
        JwksSource(url, HOUR_MS, 100, 10_000).begin()
