"""SASL listeners: what a client may say before it has shown who it is, how it does, and what it is told if it cannot.

Whole brokers on a network in memory, by a clock that jumps; the rules are those of Kafka's SaslServerAuthenticator.
"""

from __future__ import annotations

import struct

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.security.entities import USERS, Entity
from ottla.security.plain import PlainClient
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.schema import Message

from ...helpers.memory_broker import frame
from ..helpers.sasl_clients import add_user, connected, running


async def test_a_client_shows_who_it_is_and_is_let_in(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        client = await connected(cluster)
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE
        handshake = await client.shake_hands("PLAIN")
        assert handshake.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
        response = await client.ask(token, 2)
        assert (response.error_code, response.auth_bytes, response.session_lifetime_ms) == (0, b"", 0)
        assert await client.is_let_in()
        # Out of their place the two requests are refused; the connection goes on.
        assert (await client.shake_hands("PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert (await client.ask(token, 2)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await client.is_let_in()


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("mechanism", ScramMechanism)
async def test_by_scram(autojump_clock: trio.testing.MockClock, mechanism: ScramMechanism, version: int) -> None:
    async with running() as cluster:
        await add_user(cluster, "dav id", "pencil")
        client = await connected(cluster)
        scram = ScramClient(mechanism, "dav id", "pencil")
        assert (await client.authenticate(mechanism.sasl_name, scram, version)).error_code == ErrorCode.NONE
        assert await client.is_let_in()


async def test_tokens_are_bare_after_the_first_version_of_the_handshake(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        client = await connected(cluster)
        await client.shake_hands("PLAIN", version=0)
        assert await client.ask_bare(b"\0alice\0secret") == b""
        assert await client.is_let_in()
        client = await connected(cluster)
        await client.shake_hands("PLAIN", version=0)
        assert await client.ask_bare(b"\0alice\0wrong") is None


@pytest.mark.parametrize(
    "request_", [MetadataRequest(topics=[]), SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")]
)
async def test_nothing_else_is_answered_before(autojump_clock: trio.testing.MockClock, request_: Message) -> None:
    async with running() as cluster:
        for first in ([], [ApiVersionsRequest()]):
            client = await connected(cluster)
            for each in first:
                await client.ask(each, 3)
            assert await client.ask(request_, 1) is None
        client = await connected(cluster)
        await client.shake_hands("PLAIN")
        assert await client.ask(MetadataRequest(topics=[]), 1) is None


async def test_versions_are_asked_for_once(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        client = await connected(cluster)
        unknown = frame(ApiVersionsRequest(), 3, 7)
        await client.connection.send([unknown[:6] + struct.pack(">h", 99) + unknown[8:]])
        answer = await client.read()
        assert answer is not None
        assert struct.unpack_from(">ih", answer) == (7, ErrorCode.UNSUPPORTED_VERSION)
        assert (await client.ask(ApiVersionsRequest(), 3)).error_code == ErrorCode.INVALID_REQUEST  # without a name
        named = ApiVersionsRequest(client_software_name="n", client_software_version="1")
        assert (await client.ask(named, 3)).error_code == ErrorCode.NONE
        assert await client.ask(named, 3) is None


@pytest.mark.parametrize("token", [b"", b"\x60\x82", b"GET / HTTP/1.1\r\n", bytes(40), b"\xff" * 100])
async def test_what_is_no_request_ends_the_connection(autojump_clock: trio.testing.MockClock, token: bytes) -> None:
    async with running() as cluster:
        client = await connected(cluster)
        assert await client.ask_bare(token) is None
        client = await connected(cluster)
        await client.shake_hands("PLAIN")
        assert await client.ask_bare(token) is None


async def test_a_mechanism_that_is_not_enabled(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        client = await connected(cluster)
        response = await client.shake_hands("GSSAPI")
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        assert await client.is_closed()


async def test_a_failure_is_told_late_and_ends_the_connection(autojump_clock: trio.testing.MockClock) -> None:
    async with running(connection_failed_authentication_delay_ms="2500") as cluster:
        for name, password in [("alice", "wrong"), ("nobody", "secret")]:
            client = await connected(cluster)
            began = trio.current_time()
            response = await client.authenticate("PLAIN", PlainClient(name, password))
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert response.error_message == "Authentication failed: Invalid username or password"
            assert client.when == pytest.approx(began + 2.5)
            # The client has a moment for the answer before the connection ends, for some lose one that comes with the end.
            assert await client.is_closed()
            assert client.when == pytest.approx(began + 3.0)


@pytest.mark.parametrize("name", ["alice", "nobody"])
async def test_what_is_wrong_with_scram_is_not_told(autojump_clock: trio.testing.MockClock, name: str) -> None:
    async with running() as cluster:
        await add_user(cluster, "alice", "pencil")
        client = await connected(cluster)
        scram = ScramClient(ScramMechanism.SHA_512, name, "pen")
        response = await client.authenticate("SCRAM-SHA-512", scram)
        assert (response.error_code, response.error_message) == (
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512",
        )
        assert await client.is_closed()


async def test_frames_are_small_until_the_client_is_known(autojump_clock: trio.testing.MockClock) -> None:
    async with running(sasl_server_max_receive_size="300") as cluster:
        client = await connected(cluster)
        await client.connection.send([struct.pack(">i", 301)])
        assert await client.is_closed()
        client = await connected(cluster)
        await client.authenticate("PLAIN", PlainClient("alice", "secret"))
        request = frame(MetadataRequest(topics=[]), 12, 77, client_id="c" * 400)
        await client.connection.send([request])
        assert not await client.is_closed()


async def test_a_removed_user_is_not_let_in_again(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        await add_user(cluster, "alice", "pencil")
        scram = ScramClient(ScramMechanism.SHA_256, "alice", "pencil")
        assert not (await (await connected(cluster)).authenticate("SCRAM-SHA-256", scram)).error_code
        await cluster.services(1).cluster.configs.change(Entity(USERS, "alice"), lambda before: {})
        scram = ScramClient(ScramMechanism.SHA_256, "alice", "pencil")
        assert (await (await connected(cluster)).authenticate("SCRAM-SHA-256", scram)).error_code


async def test_no_password_gets_into_the_log(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    async with running() as cluster:
        client = await connected(cluster)
        await client.authenticate("PLAIN", PlainClient("alice", "hunter2"))
        for end in (b"\0", b"\0\xff\xff\xff\xff"):
            client = await connected(cluster)
            await client.shake_hands("PLAIN", version=0)
            assert await client.ask_bare(b"\0alice\0hunter2" + end) is None
        client = await connected(cluster)
        await client.shake_hands("PLAIN")
        await client.connection.send([struct.pack(">i", 1 << 30) + b"\0alice\0hunter2"])
        assert await client.is_closed()
        client = await connected(cluster)
        await client.authenticate("PLAIN", PlainClient("alice", "secret"))
        await client.connection.send([b"\xff\xff\xff\xff"])
        assert await client.is_closed()
        recorded = [name for name in cluster.disk(1).names("/data") if name.startswith("protocol-error")]
        assert len(recorded) == 1
        assert b"secret" not in cluster.disk(1).read_file(f"/data/{recorded[0]}")
    assert "hunter2" not in caplog.text
    assert "secret" not in caplog.text
