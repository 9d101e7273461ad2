"""Connections with TLS: both ends over a network in memory, where a test sees each step, and over TCP with Python's client."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.errors import KafkaError
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.base.network import WOULD_BLOCK, Connection, Part
from ottla.base.seams import InlineWorkers, TrioWorkers
from ottla.base.tcp import TcpNetwork
from ottla.base.tls import TlsConnection
from ottla.security.tls_context import client_context, server_context

from ..security.helpers.certificates import broker, client, parsed, settings_of

PATTERN = bytes(range(251))


def server_side(**more: str) -> ssl.SSLContext:
    return server_context(*parsed(settings_of(broker(), **more)))


def client_side(**more: str) -> ssl.SSLContext:
    return client_context(*parsed(settings_of(client(), **more)))


def pattern(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


class Slice:
    """Part of an open file; counts its releases."""

    def __init__(self, file, position: int, nbytes: int) -> None:  # type: ignore[no-untyped-def]
        self._file = file
        self.position = position
        self.nbytes = nbytes
        self.released = 0

    def fileno(self) -> int:
        return self._file.fileno()  # type: ignore[no-any-return]

    def read(self) -> bytes:
        raise AssertionError("its bytes are in a file")

    def release(self) -> None:
        self.released += 1


class InMemory(Slice):
    """A slice that is in no file of the system."""

    def __init__(self, data: bytes) -> None:
        super().__init__(None, 0, len(data))
        self._data = data

    def fileno(self) -> int:
        return -1

    def read(self) -> bytes:
        return self._data


@asynccontextmanager
async def pair(
    server: ssl.SSLContext | None = None, opening: ssl.SSLContext | None = None, limit: int = 1 << 16
) -> AsyncIterator[tuple[TlsConnection, TlsConnection, MemoryConnection, MemoryConnection]]:
    """(accepted, opened, what is below the one, what is below the other), when both have shaken hands."""
    network = MemoryNetwork(limit)
    listener = await network.listen("test", 1, 1)
    below_opened = await network.connect("test", 1)
    below_accepted = await listener.accept()
    accepted = TlsConnection(below_accepted, server or server_side(), InlineWorkers())
    opened = TlsConnection(below_opened, opening or client_side(), InlineWorkers(), server_name="test")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accepted.handshake)
            nursery.start_soon(opened.handshake)
        yield accepted, opened, below_accepted, below_opened
    accepted.close()
    opened.close()


async def receive(connection: Connection, size: int, at_once: int = 1 << 20) -> bytes:
    """So many bytes, or what there is up to the end of the stream."""
    received = bytearray()
    buffer = memoryview(bytearray(at_once))
    while len(received) < size:
        count = connection.receive_into(buffer[: min(at_once, size - len(received))])
        if count == WOULD_BLOCK:
            await connection.wait_readable()
        elif count == 0:
            break
        else:
            received += buffer[:count]
    return bytes(received)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_both_ends_hear_one_another(version: str) -> None:
    async with pair(server_side(ssl_enabled_protocols=version)) as (accepted, opened, _, _):
        await opened.send([b"question"])
        assert await receive(accepted, 8) == b"question"
        await accepted.send([b"ans", memoryview(b"wer"), bytearray(b"!")])
        assert await receive(opened, 7) == b"answer!"
        assert accepted.peer_certificate is None  # it did not ask for one
        assert opened.peer_certificate == ssl.PEM_cert_to_DER_cert(broker().certificate)


@pytest.mark.parametrize("at_once", [1, 1000, 16 << 10, 1 << 20])
@pytest.mark.parametrize("size", [1, 16 << 10, 300_000])
async def test_any_amount_arrives_whole_whatever_is_read_at_once(size: int, at_once: int) -> None:
    if size > 10_000 and at_once == 1:
        size = 20_000
    async with pair() as (accepted, opened, _, _), trio.open_nursery() as nursery:
        nursery.start_soon(accepted.send, [pattern(size)])
        assert await receive(opened, size, at_once) == pattern(size)
        assert opened.receive_into(memoryview(bytearray(1))) == WOULD_BLOCK


async def test_a_read_with_room_left_has_taken_all_there_was() -> None:
    async with pair(limit=1 << 20) as (accepted, opened, _, _):
        await opened.send([pattern(200_000)])
        buffer = memoryview(bytearray(300_000))
        assert accepted.receive_into(buffer) == 200_000
        assert accepted.receive_into(buffer) == WOULD_BLOCK
        await opened.send([pattern(20_000)])
        assert accepted.receive_into(buffer[:15_000]) == 15_000
        await accepted.wait_readable()  # for what is here, but was not read
        assert accepted.receive_into(buffer) == 5_000


async def test_parts_of_all_kinds_are_sent_in_order_and_released(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pattern(2_000_000))
    with path.open("rb") as file:
        slices = [Slice(file, 100, 700_000), InMemory(pattern(50_000)), Slice(file, 0, 0), Slice(file, 5, 1)]
        parts: list[Part] = [
            b"head",
            slices[0],
            slices[1],
            pattern(600_000),
            slices[2],
            b"",
            slices[3],
            bytearray(b"tail"),
        ]
        expected = b"".join(
            [b"head", pattern(700_100)[100:], pattern(50_000), pattern(600_000), pattern(6)[5:], b"tail"]
        )
        async with pair() as (accepted, opened, _, _), trio.open_nursery() as nursery:
            nursery.start_soon(accepted.send, parts)
            assert await receive(opened, len(expected)) == expected
        assert [each.released for each in slices] == [1, 1, 1, 1]


async def test_what_is_not_in_the_page_cache_is_read_by_a_worker_and_arrives(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pattern(3_000_000))
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        async with pair() as (accepted, opened, _, _), trio.open_nursery() as nursery:
            nursery.start_soon(accepted.send, [b"head", Slice(file, 0, 3_000_000), b"tail"])
            assert await receive(opened, 3_000_008) == b"head" + pattern(3_000_000) + b"tail"


async def test_a_file_that_has_become_shorter_is_a_storage_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pattern(1000))
    with path.open("rb") as file:
        lost, after = Slice(file, 900, 200), Slice(file, 0, 10)
        async with pair() as (accepted, _, _, _):
            with pytest.raises(KafkaError, match="file ended 100 bytes before the slice did"):
                await accepted.send([b"head", lost, after])
        assert lost.released == after.released == 1


async def test_slices_are_released_when_the_other_side_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pattern(1_000_000))
    with path.open("rb") as file:
        slices = [Slice(file, 0, 1_000_000), Slice(file, 0, 10)]
        async with pair() as (accepted, _, _, below_opened):
            below_opened.cut()
            with pytest.raises(OSError, match=r"has closed|reset"):
                await accepted.send([b"head", *slices])
        assert [each.released for each in slices] == [1, 1]


async def test_the_end_is_announced_and_read_as_the_end() -> None:
    async with pair() as (accepted, opened, _, _):
        await accepted.send([b"last"])
        accepted.close()
        assert await receive(opened, 100) == b"last"
        assert opened.receive_into(memoryview(bytearray(1))) == 0
        await opened.wait_readable()
        accepted.close()  # twice does no harm


async def test_an_end_without_announcement_is_the_end_too() -> None:
    async with pair() as (accepted, opened, below_accepted, _):
        await accepted.send([b"last"])
        below_accepted.close()
        assert await receive(opened, 100) == b"last"


async def test_what_was_changed_on_the_way_is_not_taken() -> None:
    async with pair() as (accepted, _, _, below_opened):
        await below_opened.send([b"\x17\x03\x03\x00\x20" + bytes(32)])
        with pytest.raises(ssl.SSLError, match=r"(?i)bad.record.mac|decryption|record layer failure"):
            await receive(accepted, 1)


async def test_a_client_without_tls_is_told_apart_from_one_with() -> None:
    network = MemoryNetwork()
    listener = await network.listen("test", 1, 1)
    plain = await network.connect("test", 1)
    accepted = TlsConnection(await listener.accept(), server_side(), InlineWorkers())
    await plain.send([b"\x00\x00\x00\x10\x00\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"])
    with trio.fail_after(60), pytest.raises(ssl.SSLError) as refused:
        await accepted.handshake()
    assert refused.value.reason == "WRONG_VERSION_NUMBER"
    accepted.close()


async def test_an_end_in_the_handshake_is_an_error() -> None:
    network = MemoryNetwork()
    listener = await network.listen("test", 1, 1)
    plain = await network.connect("test", 1)
    accepted = TlsConnection(await listener.accept(), server_side(), InlineWorkers())
    await plain.send([b"\x16\x03\x01"])
    plain.close()
    with trio.fail_after(60), pytest.raises(ConnectionResetError, match="ended in the TLS handshake"):
        await accepted.handshake()


async def test_a_handshake_can_be_given_up(autojump_clock: trio.testing.MockClock) -> None:
    network = MemoryNetwork()
    listener = await network.listen("test", 1, 1)
    await network.connect("test", 1)
    accepted = TlsConnection(await listener.accept(), server_side(), InlineWorkers())
    with trio.move_on_after(10) as scope:
        await accepted.handshake()
    assert scope.cancelled_caught
    accepted.close()


async def test_large_answers_leave_other_tasks_their_turn(tmp_path: Path) -> None:
    """A client that takes everything at once does not have the loop for itself."""
    path = tmp_path / "log"
    path.write_bytes(bytes(8 << 20))
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    with path.open("rb") as file:
        async with pair(limit=1 << 30) as (accepted, _, _, _), trio.open_nursery() as nursery:
            nursery.start_soon(count_turns)
            await accepted.send([Slice(file, 0, 8 << 20)])
            nursery.cancel_scope.cancel()
    assert turns > 10


# --- over TCP, with another TLS on the other side ---------------------------------------------------------------------


@contextmanager
def stock_client(port: int) -> Iterator[ssl.SSLSocket]:
    context = client_side()
    with (
        socket.create_connection(("127.0.0.1", port)) as connected,
        context.wrap_socket(connected, server_hostname="localhost") as wrapped,
    ):
        wrapped.settimeout(60)
        yield wrapped


async def test_a_stock_client_over_tcp_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pattern(3_000_000))
    network = TcpNetwork(TrioWorkers())
    listener = await network.listen("127.0.0.1", 0, 1)

    def ask() -> tuple[bytes, bytes]:
        with stock_client(listener.port) as connected:
            connected.sendall(b"question")
            answer = bytearray()
            while len(answer) < 3_000_004:
                answer += connected.recv(1 << 20)
            return bytes(answer), connected.recv(1)

    async def serve() -> None:
        accepted = TlsConnection(await listener.accept(), server_side(ssl_client_auth="required"), TrioWorkers())
        await accepted.handshake()
        assert accepted.peer_certificate == ssl.PEM_cert_to_DER_cert(client().certificate)
        assert await receive(accepted, 8) == b"question"
        with path.open("rb") as file:
            await accepted.send([b"head", Slice(file, 0, 3_000_000)])
        accepted.close()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            answer, end = await trio.to_thread.run_sync(ask)
    assert answer == b"head" + pattern(3_000_000)
    assert end == b""  # announced: otherwise the socket would raise SSLEOFError
    listener.close()
