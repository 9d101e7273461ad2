"""Sessions that end (KIP-368): for how long a client is known, how it shows again who it is, and what becomes of others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.seams import SimulatedClock
from ottla.broker.listeners.monitor import Monitor
from ottla.broker.listeners.sasl_gate import SaslGate, SaslListener
from ottla.handlers.call import Call
from ottla.handlers.connection_context import ConnectionContext
from ottla.handlers.services import Services
from ottla.security.entities import USERS, Entity
from ottla.security.plain import PlainClient
from ottla.security.principal import USER, Principal
from ottla.security.sasl import Authenticated, AuthenticationError, SaslClient, SaslServer
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from ...helpers.memory_broker import frame
from ..helpers.sasl_clients import add_user, connected, running

TEN_SECONDS = {"listener.name.sasl.plain.connections.max.reauth.ms": "10000"}


def alice() -> PlainClient:
    return PlainClient("alice", "secret")


async def test_a_session_ends_and_with_it_the_connection(autojump_clock: trio.testing.MockClock) -> None:
    async with running(**TEN_SECONDS) as cluster:
        await add_user(cluster, "alice", "pencil")
        client, other = await connected(cluster), await connected(cluster)
        assert (await client.authenticate("PLAIN", alice())).session_lifetime_ms == 10_000
        scram = ScramClient(ScramMechanism.SHA_256, "alice", "pencil")
        assert (await other.authenticate("SCRAM-SHA-256", scram)).session_lifetime_ms == 0
        await trio.sleep(9.5)
        assert await client.is_let_in()
        await trio.sleep(1)
        assert not await client.is_let_in()
        assert await other.is_let_in()


@pytest.mark.parametrize("version", [0, 1])
async def test_it_ends_for_clients_that_know_nothing_of_it(
    autojump_clock: trio.testing.MockClock, version: int
) -> None:
    async with running(**TEN_SECONDS) as cluster:
        client = await connected(cluster)
        if version:
            assert (await client.authenticate("PLAIN", alice(), version=0)).session_lifetime_ms == 0
        else:
            await client.shake_hands("PLAIN", version=0)
            assert await client.ask_bare(b"\0alice\0secret") == b""
        assert await client.is_let_in()
        await trio.sleep(10.5)
        assert not await client.is_let_in()


@pytest.mark.parametrize("version", [0, 1])
async def test_a_client_shows_anew_who_it_is(autojump_clock: trio.testing.MockClock, version: int) -> None:
    async with running(**TEN_SECONDS) as cluster:
        client = await connected(cluster)
        await client.authenticate("PLAIN", alice())
        for _ in range(3):
            await trio.sleep(9)
            if version:
                assert (await client.authenticate("PLAIN", alice())).session_lifetime_ms == 10_000
            else:
                await client.shake_hands("PLAIN", version=0)
                assert await client.ask_bare(b"\0alice\0secret") == b""
            assert await client.is_let_in()
        # Even late: the connection is closed by a request, not by the clock.
        await trio.sleep(100)
        assert (await client.authenticate("PLAIN", alice())).session_lifetime_ms == 10_000
        assert await client.is_let_in()


async def test_requests_beside_it_are_answered_in_their_order(autojump_clock: trio.testing.MockClock) -> None:
    async with running(**TEN_SECONDS) as cluster:
        client = await connected(cluster)
        await client.authenticate("PLAIN", alice())
        await trio.sleep(5)
        said = [
            frame(MetadataRequest(topics=[]), 12, 101),
            frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 102),
            frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2, 103),
            frame(MetadataRequest(topics=[]), 12, 104),
        ]
        await client.connection.send([b"".join(said)])
        answers = [await client.read() for _ in said]
        assert [int.from_bytes((answer or b"")[:4]) for answer in answers] == [101, 102, 103, 104]


async def test_at_most_once_a_second(autojump_clock: trio.testing.MockClock) -> None:
    async with running(**TEN_SECONDS) as cluster:
        client = await connected(cluster)
        await client.authenticate("PLAIN", alice())
        await client.authenticate("PLAIN", alice())
        await trio.sleep(0.5)
        assert (await client.shake_hands("PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        await trio.sleep(0.6)
        await client.authenticate("PLAIN", alice())


async def test_nobody_becomes_another(autojump_clock: trio.testing.MockClock) -> None:
    async with running(**TEN_SECONDS) as cluster:
        await add_user(cluster, "alice", "pencil")
        client = await connected(cluster)
        await client.authenticate("PLAIN", alice())
        response = await client.authenticate("PLAIN", PlainClient("bob", "other"))
        assert (response.error_code, response.error_message) == (
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "Cannot change principals during re-authentication from User.alice: User.bob",
        )
        assert await client.is_closed()
        client = await connected(cluster)
        await client.authenticate("PLAIN", alice())
        assert (await client.shake_hands("SCRAM-SHA-256")).error_code == ErrorCode.NONE
        first = ScramClient(ScramMechanism.SHA_256, "alice", "pencil").respond(b"")
        assert await client.ask(SaslAuthenticateRequest(auth_bytes=first or b""), 2) is None


async def test_a_failure_ends_the_connection_though_the_session_has_not(autojump_clock: trio.testing.MockClock) -> None:
    async with running(**{"connections.max.reauth.ms": "10000"}) as cluster:
        await add_user(cluster, "alice", "pencil")
        client = await connected(cluster)
        await client.authenticate("SCRAM-SHA-256", ScramClient(ScramMechanism.SHA_256, "alice", "pencil"))
        await cluster.services(1).cluster.configs.change(Entity(USERS, "alice"), lambda before: {})
        assert await client.is_let_in()
        response = await client.authenticate("SCRAM-SHA-256", ScramClient(ScramMechanism.SHA_256, "alice", "pencil"))
        assert response.error_message == (
            "Authentication failed during re-authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        )
        assert await client.is_closed()


async def test_what_becomes_of_them_is_counted(autojump_clock: trio.testing.MockClock) -> None:
    async with running(**TEN_SECONDS) as cluster:
        for password in ("secret", "wrong", "secret"):
            client = await connected(cluster)
            await client.authenticate("PLAIN", PlainClient("alice", password))
        await trio.sleep(5)
        await client.authenticate("PLAIN", alice())
        await trio.sleep(11)
        assert not await client.is_let_in()
        client = await connected(cluster)
        await client.authenticate("PLAIN", alice())
        await trio.sleep(5)
        await client.authenticate("PLAIN", PlainClient("alice", "wrong"))
        counts = {what.value: count for (_, what), count in cluster.servers[1].monitor.authentications.items()}
        assert counts == {
            "successful_authentication": 3,
            "failed_authentication": 1,
            "successful_reauthentication": 1,
            "failed_reauthentication": 1,
            "expired_connections_killed": 1,
        }


class Ticket:
    """A mechanism whose one token is the time at which the client's ticket ends."""

    outcome: Authenticated | None = None

    def server(self, services: Services) -> SaslServer:
        return Ticket()

    def client(self) -> SaslClient:
        raise AuthenticationError("it has none")

    def respond(self, token: bytes) -> bytes:
        self.outcome = Authenticated(Principal(USER, "alice"), expires_ms=int(token) if token else None)
        return b""


@pytest.mark.parametrize(
    ("seconds_left", "session_ms", "lifetime_ms"),
    [(None, 0, 0), (7, 0, 7000), (7, 5000, 5000), (7, 9000, 7000), (None, 5000, 5000), (-7, 0, 0), (-7, 5000, 0)],
)
async def test_the_sooner_of_two_ends_counts(
    autojump_clock: trio.testing.MockClock, seconds_left: int | None, session_ms: int, lifetime_ms: int
) -> None:
    """What has ended already lets the client say nothing: no end would be the opposite (KAFKA-13848)."""
    clock = SimulatedClock()
    services = cast(Services, SimpleNamespace(clock=clock))
    context = ConnectionContext("SASL", "1.2.3.4:5", "SASL_PLAINTEXT")
    gate = SaslGate(context, services, Monitor(), SaslListener({"TICKET": Ticket()}, {"TICKET": session_ms}, 1000))
    call = Call(services, context, trio.lowlevel.checkpoint)

    async def take(request: SaslHandshakeRequest | SaslAuthenticateRequest) -> bytes:
        parts = await gate.take(call, memoryview(bytearray(frame(request, 1, 1)[4:])))
        assert parts is not None
        return b"".join(map(bytes, parts))

    await take(SaslHandshakeRequest(mechanism="TICKET"))
    end = b"" if seconds_left is None else b"%d" % (clock.now_ms() + seconds_left * 1000)
    answer = await take(SaslAuthenticateRequest(auth_bytes=end))
    assert int.from_bytes(answer[-8:]) == lifetime_ms
    assert context.principal == Principal(USER, "alice")
    has_end = seconds_left is not None or session_ms > 0
    assert context.session_expires == (clock.elapsed() + lifetime_ms / 1000 if has_end else None)
    assert gate.is_open is not has_end
    assert gate.frame_limit is None
