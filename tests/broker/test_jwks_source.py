"""Keys of an identity provider: from a file and over HTTP, read again, and used on while the provider is away."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.seams import InlineWorkers, TrioWorkers
from ottla.broker.jwks_source import JwksSource, read_jwks
from ottla.security.jwks import MAX_JWKS_BYTES, JwksError
from ottla.tests.security.oauth_tokens import ec_jwk, jwks

HOUR_MS = 3_600_000


class Provider(ThreadingHTTPServer):
    """Answers with ``content`` and ``status``, or leads to ``elsewhere``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = jwks()
        self.status = 200
        self.elsewhere = ""
        self.url = f"http://127.0.0.1:{self.server_port}/keys"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        if self.path == "/keys" and self.server.elsewhere:
            self.send_response(302)
            self.send_header("Location", self.server.elsewhere)
            self.end_headers()
            return
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


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


def test_keys_may_be_somewhere_else_over_http(provider: Provider) -> None:
    provider.elsewhere = provider.url.replace("/keys", "/moved")
    assert [key.key_id for key in read_jwks(provider.url)] == ["first"]


@pytest.mark.parametrize("elsewhere", ["file:///etc/hostname", "ftp://127.0.0.1/keys"])
def test_a_provider_does_not_lead_to_other_kinds_of_places(provider: Provider, elsewhere: str) -> None:
    provider.elsewhere = elsewhere
    with pytest.raises(JwksError):
        read_jwks(provider.url)


def test_a_provider_does_not_fill_the_memory(provider: Provider) -> None:
    provider.content = b" " * (MAX_JWKS_BYTES + 1)
    with pytest.raises(JwksError, match="more than"):
        read_jwks(provider.url)


@pytest.mark.parametrize(
    "url", ["keys.json", "ftp://x/keys", "data:application/json,{}", "file:///nowhere/keys.json", ""]
)
def test_a_url_that_leads_nowhere_is_said_at_the_start(url: str) -> None:
    with pytest.raises(JwksError):
        JwksSource(url, HOUR_MS, 100, 10_000).begin()
