"""Keys of an identity provider: from a file and over HTTP, read again, and used on while the provider is away."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.seams import InlineWorkers, SystemClock, TrioWorkers
from ottla.broker.auth.jwks_source import JwksSource, read_jwks
from ottla.broker.auth.provider_http import provider_context
from ottla.broker.auth.token_source import TokenSource
from ottla.security.jwks import MAX_JWKS_BYTES, JwksError
from ottla.security.sasl import AuthenticationError
from ottla.security.tls_context import server_context
from ottla.tests.security.oauth_tokens import NOW, claims, ec_jwk, jwks, signed

from ...security.certificates import authority, broker, parsed, settings_of


class SettableClock(SystemClock):
    now = 0

    def now_ms(self) -> int:
        return self.now


HOUR_MS = 3_600_000


class Provider(ThreadingHTTPServer):
    """Answers with ``content`` and ``status``, or leads to ``elsewhere``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = jwks()
        self.status = 200
        self.elsewhere = ""
        self.posted: list[tuple[str, str]] = []
        """Authorization and body of each."""
        self.url = f"http://127.0.0.1:{self.server_port}/keys"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.posted.append((self.headers["Authorization"], body))
        self.do_GET()

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


@contextmanager
def serving(server: Provider) -> Iterator[Provider]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider()) as server:
        yield server


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


def test_an_https_provider_is_trusted_by_the_options_of_the_jaas_text(tmp_path: Path) -> None:
    server = Provider()
    context = server_context(*parsed(settings_of(broker())))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    trusted = tmp_path / "ca.pem"
    trusted.write_text(authority().certificate)
    url = f"https://localhost:{server.server_port}/keys"
    options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted), "clientId": "x"}
    with serving(server):
        (key,) = read_jwks(url, provider_context(options))
        assert key.key_id == "first"
        with pytest.raises(JwksError, match="certificate verify failed"):
            read_jwks(url, provider_context({}))
