"""What clients can do that have not shown who they are: nothing but to be turned away, whatever they send, however slowly."""

from __future__ import annotations

import base64
import functools
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.config import Config
from ottla.base.errors import ProtocolError
from ottla.base.loop_turns import LoopTurns
from ottla.base.memory_network import MemoryConnection
from ottla.base.network import total_size
from ottla.base.seams import SystemClock
from ottla.broker.listener_config import ListenerConfig
from ottla.broker.listeners.gate import AuthenticationFailedError
from ottla.broker.listeners.monitor import Monitor
from ottla.broker.listeners.sasl_gate import SaslGate, sasl_listener
from ottla.handlers.call import Call, CloseConnection
from ottla.handlers.connection_context import ConnectionContext
from ottla.handlers.services import Services
from ottla.handlers.table import SERVED
from ottla.metadata.delta import ClusterDelta
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.entities import DEFAULT, USERS, Entity
from ottla.security.plain import PlainClient
from ottla.security.principal import ANONYMOUS
from ottla.security.quota_precedence import QuotaEntity
from ottla.security.scram import ScramMechanism, new_credential
from ottla.security.scram_exchange import ScramClient
from ottla.tests.security.helpers.oauth_tokens import claims, jwks, signed, unsigned
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest

from ...helpers.memory_broker import frame
from ..helpers.sasl_clients import LISTENER, connected, running

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LIMIT = 524_288
"""sasl.server.max.receive.size."""

MOST_ANSWERED = 10_000
"""Bytes of an answer."""

TOKENS = (
    b"",
    b"\x01",
    b"\0alice\0wrong",
    b"alice\0alice\0wrong",
    b"\0\0\0",
    "\0ålice\0pässword".encode(),
    b"n,,n=alice,r=nonce",
    b"n,,n=alice,r=nonce,tokenauth=true",
    b"n,a=alice,n=alice,r=nonce",
    b"y,,n=alice,r=nonce",
    b"n,,n==2C=3D,r=nonce",
    b"c=biws,r=nonce,p=" + base64.b64encode(bytes(32)),
    b"n,,\x01auth=Bearer " + unsigned().encode() + b"\x01\x01",
    b"n,,\x01auth=Bearer " + signed(claims(exp=1)).encode() + b"\x01zone=blue\x01\x01",
    b"n,,\x01auth=Bearer e30.e30.e30\x01\x01",
    b"\xff" * 64,
    b"[" * 5000,
)
"""What clients send that are let in or nearly so, and what others have sent that broke servers."""


def bodies() -> list[bytes]:
    """The frames of conversations, without their sizes."""
    frames = [frame(ApiVersionsRequest(), version, 7) for version in range(5)]
    frames += [frame(SaslHandshakeRequest(mechanism=name), version, 7) for name in MECHANISMS for version in (0, 1)]
    frames += [frame(SaslHandshakeRequest(mechanism=name), 1, 7) for name in ("GSSAPI", "", "x" * 1000)]
    frames += [
        frame(SaslAuthenticateRequest(auth_bytes=token), version, 7) for token in TOKENS for version in (0, 1, 2)
    ]
    frames.append(frame(MetadataRequest(topics=[]), 12, 7))
    return [whole[4:] for whole in frames] + list(TOKENS)


@functools.cache
def services() -> Services:
    """As much of a broker as a client meets before it is let in: a user, and no delegation tokens."""
    metadata = MetadataCache("cluster")
    metadata.publish(ClusterDelta(scram={"alice": {each: new_credential(each, "secret") for each in ScramMechanism}}))
    parts = SimpleNamespace(
        config=Config(),
        clock=SystemClock(),
        served=SERVED,
        metadata=metadata,
        token_passwords=None,
        client_quotas=SimpleNamespace(is_on=False),
        early_responses=[],
        group_turns=LoopTurns(SystemClock.elapsed),
        authorizer=None,
    )
    return cast(Services, parts)


@functools.cache
def listener() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys.json"
        keys.write_bytes(jwks())
        properties = {
            **LISTENER,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        }
        return sasl_listener(ListenerConfig(Config(properties), "SASL", "SASL_PLAINTEXT"))


async def _nothing_to_flush() -> None:
    pass


async def converse(frames: list[bytes]) -> tuple[SaslGate, ConnectionContext]:
    """Have a gate take the frames until it ends the connection."""
    context = ConnectionContext("SASL", "test:1", "SASL_PLAINTEXT")
    gate = SaslGate(context, services(), Monitor(), listener())
    call = Call(services(), context, _nothing_to_flush)
    for data in frames:
        try:
            parts = await gate.take(call, memoryview(bytearray(data)))
        except AuthenticationFailedError as refusal:
            assert total_size(refusal.answer) < MOST_ANSWERED
            break
        except (ProtocolError, CloseConnection):
            break
        assert parts is None or total_size(parts) < MOST_ANSWERED
    return gate, context


def mutated(data: bytes, changes: list[tuple[int, int]], cut: int, added: bytes) -> bytes:
    """``data`` with bytes changed, some of its end cut off and something behind it."""
    changed = bytearray(data)
    for position, value in changes:
        if changed:
            changed[position % len(changed)] = value
    return bytes(changed[: max(len(changed) - cut, 0)]) + added


FRAMES = st.one_of(
    st.sampled_from(bodies()),
    st.builds(
        mutated,
        st.sampled_from(bodies()),
        st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
        st.integers(0, 40),
        st.binary(max_size=8),
    ),
    st.binary(max_size=64),
)


@settings(max_examples=150)
@given(st.lists(FRAMES, min_size=1, max_size=6))
def test_no_frames_are_a_way_in(frames: list[bytes]) -> None:
    gate, context = trio.run(converse, frames)
    assert not gate.is_open and gate.frame_limit == LIMIT
    assert context.principal == ANONYMOUS and context.session_expires is None


@settings(max_examples=100)
@given(
    st.sampled_from(MECHANISMS),
    st.lists(
        st.one_of(
            st.sampled_from(TOKENS),
            st.binary(max_size=200),
            st.builds(
                mutated,
                st.sampled_from(TOKENS),
                st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), max_size=4),
                st.integers(0, 10),
                st.binary(max_size=8),
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_no_tokens_are_a_way_in(mechanism: str, tokens: list[bytes]) -> None:
    handshake = frame(SaslHandshakeRequest(mechanism=mechanism), 1, 7)[4:]
    shown = [frame(SaslAuthenticateRequest(auth_bytes=token), 2, 7)[4:] for token in tokens]
    gate, context = trio.run(converse, [handshake, *shown])
    assert not gate.is_open and context.principal == ANONYMOUS


def _of_size(begin: bytes, unit: bytes, end: bytes = b"") -> bytes:
    room = LIMIT - 1000 - len(begin) - len(end)
    return begin + unit * (room // len(unit)) + end


LARGE: list[tuple[str, Callable[[], bytes]]] = [
    ("PLAIN", lambda: _of_size(b"", b"\0")),
    ("PLAIN", lambda: _of_size(b"\0", b"a", b"\0b")),
    ("SCRAM-SHA-256", lambda: _of_size(b"n,,n=", b"=2C", b",r=x")),
    ("SCRAM-SHA-256", lambda: _of_size(b"n,,n=alice,r=", b"x")),
    ("SCRAM-SHA-512", lambda: _of_size(b"n,,n=alice,r=x", b",a=b")),
    ("OAUTHBEARER", lambda: _of_size(b"n,a=", b"=2C", b",\x01\x01")),
    ("OAUTHBEARER", lambda: _of_size(b"n,,\x01", b"a=b\x01", b"auth=Bearer x\x01\x01")),
    ("OAUTHBEARER", lambda: _of_size(b"n,,\x01auth=Bearer ", b"A", b"\x01\x01")),
    ("OAUTHBEARER", lambda: b"n,,\x01auth=Bearer " + b"W1tb" * 16_000 + b".e30.\x01\x01"),
]
"""Tokens as large as a frame may be, made to be dear to whom reads them."""


@pytest.mark.cpython
@pytest.mark.parametrize(
    ("mechanism", "token"), LARGE, ids=[f"{index}-{name}" for index, (name, _) in enumerate(LARGE)]
)
def test_the_largest_token_takes_no_more_than_a_few_times_its_size(mechanism: str, token: Callable[[], bytes]) -> None:
    import tracemalloc

    handshake = frame(SaslHandshakeRequest(mechanism=mechanism), 1, 7)[4:]
    shown = frame(SaslAuthenticateRequest(auth_bytes=token()), 2, 7)[4:]
    listener(), services()
    tracemalloc.start()
    try:
        gate, context = trio.run(converse, [handshake, shown])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not gate.is_open and context.principal == ANONYMOUS
    assert peak < 16 * LIMIT


async def _is_closed(connection: MemoryConnection) -> bool:
    with trio.move_on_after(0.001):
        return not await connection.receive()
    return False


async def test_whoever_speaks_slowly_is_cut_off(autojump_clock: trio.testing.MockClock) -> None:
    """A byte now and then keeps no connection open."""
    async with running() as cluster:
        connection = await cluster.network.connect("broker1", 9092)
        handshake = frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 7)
        began = trio.current_time()
        for position in range(len(handshake)):
            if await _is_closed(connection):
                break
            await connection.send([handshake[position : position + 1]])
            await trio.sleep(5)
        assert 30 < trio.current_time() - began < 50


async def test_half_a_conversation_is_cut_off(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        client = await connected(cluster)
        await client.shake_hands("SCRAM-SHA-256")
        await trio.sleep(25)
        assert await client.is_closed()


async def test_another_authentication_has_its_time_too(autojump_clock: trio.testing.MockClock) -> None:
    """However old the connection is."""
    async with running(connections_max_reauth_ms="300000") as cluster:
        client = await connected(cluster)
        assert (await client.authenticate("PLAIN", PlainClient("alice", "secret"))).error_code == 0
        await trio.sleep(100)
        await client.shake_hands("PLAIN")
        await trio.sleep(25)
        response = await client.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
        assert response.error_code == 0
        assert await client.is_let_in()


def test_the_corpus_has_every_request_that_is_read() -> None:
    keys = {int.from_bytes(body[:2]) for body in bodies()}
    assert keys >= {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


async def test_a_client_that_is_not_known_yet_is_counted_by_no_quota(autojump_clock: trio.testing.MockClock) -> None:
    """What it says of itself may be as new and as long each time as it likes."""
    async with running() as cluster:
        quotas = cluster.services(1).client_quotas
        quotas.update(QuotaEntity("", DEFAULT), {"request_percentage": 0.001})
        client = await connected(cluster)
        for number in range(5):
            unserved = bytearray(frame(ApiVersionsRequest(), 4, 1, client_id=f"made-up-{number}"))
            unserved[6:8] = (99).to_bytes(2)
            await client.connection.send([bytes(unserved)])
            assert await client.read() is not None
        assert (await client.ask(ApiVersionsRequest(), 0)).throttle_time_ms == 0
        assert (await client.authenticate("PLAIN", PlainClient("alice", "secret"))).error_code == 0
        assert list(quotas.request.in_use()) == []
        assert await client.is_let_in()
        assert len(list(quotas.request.in_use())) == 1


async def test_of_a_long_text_of_a_client_the_log_has_the_beginning(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running() as cluster:
        client = await connected(cluster)
        assert (await client.shake_hands("x" * 30_000)).error_code
        assert await client.is_closed()
    (line,) = [line for line in caplog.messages if "SASL mechanism 'xxx" in line]
    assert len(line) < 500 and line.endswith("more characters)")
    assert all(len(line) < 2_000 for line in caplog.messages)


async def test_a_credential_that_cannot_be_used_is_said_once(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """However often clients name its user."""
    async with running() as cluster:
        await cluster.services(1).cluster.configs.change(Entity(USERS, "carol"), lambda _: {"SCRAM-SHA-256": "broken"})
        for _ in range(3):
            client = await connected(cluster)
            scram = ScramClient(ScramMechanism.SHA_256, "carol", "secret")
            assert (await client.authenticate("SCRAM-SHA-256", scram)).error_code
    assert len([line for line in caplog.messages if "credential of user 'carol' cannot be used" in line]) == 1
