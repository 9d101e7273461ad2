"""The handshake of TLS with clients that send what no client should: it fails as an OSError, or waits for more."""

from __future__ import annotations

import functools
import ssl

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers
from ottla.base.tls import TlsConnection

from .test_tls import client_side, server_side

RECORD = b"\x16\x03\x01\x40\x00"
"""The head of a record of a handshake, of the largest size."""


@functools.cache
def server() -> ssl.SSLContext:
    return server_side()


@functools.cache
def hello(version: str) -> bytes:
    """What a client sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side(**{"ssl.enabled.protocols": version}).wrap_bio(incoming, outgoing, server_hostname="test")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def mutated(data: bytes, changes: list[tuple[int, int]], cut: int, added: bytes) -> bytes:
    changed = bytearray(data)
    for position, value in changes:
        changed[position % len(changed)] = value
    return bytes(changed[: len(changed) - cut]) + added


async def shake_hands(sent: bytes) -> int:
    """Have the server take what a client sends before it goes; how many bytes the server keeps for it at most."""
    network = MemoryNetwork()
    listener = await network.listen("test", 1, 1)
    client = await network.connect("test", 1)
    connection = TlsConnection(await listener.accept(), server(), InlineWorkers())

    async def send() -> None:
        try:
            await client.send([sent])
        except OSError:
            pass
        client.close()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            try:
                await connection.handshake()
            except OSError:
                pass
            else:
                raise AssertionError("half a conversation is no handshake")
            kept = connection._incoming.pending
            connection.close()
            nursery.cancel_scope.cancel()
    return kept


HELLOS = st.sampled_from(["TLSv1.2", "TLSv1.3"]).map(hello)


@settings(max_examples=100)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.builds(
            mutated,
            HELLOS,
            st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 255)), max_size=5),
            st.integers(0, 50),
            st.binary(max_size=300),
        ),
    )
)
def test_no_bytes_are_a_handshake(sent: bytes) -> None:
    trio.run(shake_hands, sent)


def test_an_endless_handshake_is_refused_before_it_is_kept() -> None:
    """OpenSSL takes a message of some kilobytes; more of one, record by record, is an error."""
    message = b"\x01\xff\xff\xff"  # a ClientHello of 16 MiB
    first = RECORD + message + bytes(0x4000 - len(message))
    kept = trio.run(shake_hands, first + (RECORD + bytes(0x4000)) * 200)
    assert kept < 1 << 20
