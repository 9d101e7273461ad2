"""Connections of the system's TCP, as they are accepted and as they are opened."""

from __future__ import annotations

import random
import socket
import struct
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import pytest
import trio

from ottla.base.errors import KafkaError
from ottla.base.network import WOULD_BLOCK, Connection
from ottla.base.seams import InlineWorkers
from ottla.base.tcp import TcpNetwork


@pytest.fixture
def network() -> TcpNetwork:
    return TcpNetwork(InlineWorkers())


class Addresses(trio.abc.HostnameResolver):
    """A name service whose every name has these addresses, in this order; a port of 0 stands for the one asked for."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self._addresses = addresses

    async def getaddrinfo(self, host, port, family=0, type=0, proto=0, flags=0):  # type: ignore[no-untyped-def]
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*kind, (address, own_port or port)) for address, own_port in self._addresses]

    async def getnameinfo(self, sockaddr, flags):  # type: ignore[no-untyped-def]
        raise NotImplementedError


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


async def receive(connection: Connection, size: int) -> bytes:
    """The next bytes, ``size`` at most."""
    buffer = memoryview(bytearray(size))
    with trio.fail_after(60):
        while (count := connection.receive_into(buffer)) == WOULD_BLOCK:
            await connection.wait_readable()
    return bytes(buffer[:count])


async def test_a_client_that_is_gone_before_it_is_accepted_is_passed_over(network: TcpNetwork) -> None:
    listener = await network.listen("127.0.0.1", 0, 10)
    with socket.create_connection(("127.0.0.1", listener.port)) as gone:
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # its close is a reset
    with socket.create_connection(("127.0.0.1", listener.port)) as client, trio.fail_after(60):
        connection = await listener.accept()
        assert connection.peer == "{}:{}".format(*client.getsockname())
        connection.close()
    listener.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_both_ends_of_an_opened_connection_hear_one_another(network: TcpNetwork, host: str) -> None:
    listener = await network.listen("127.0.0.1", 0, 10)
    with trio.fail_after(60):
        opened = await network.connect(host, listener.port)
        accepted = await listener.accept()
    assert opened.peer == f"127.0.0.1:{listener.port}"
    await opened.send([b"question"])
    assert await receive(accepted, 8) == b"question"
    await accepted.send([b"answer"])
    assert await receive(opened, 6) == b"answer"
    accepted.close()
    assert await receive(opened, 1) == b""
    opened.close()
    listener.close()


async def test_where_nobody_listens_the_connection_is_refused(network: TcpNetwork) -> None:
    with trio.fail_after(60), pytest.raises(ConnectionRefusedError):
        await network.connect("127.0.0.1", unused_port())


@pytest.mark.parametrize("name", ["two..dots", "x" * 64])
async def test_what_cannot_be_a_host_is_an_os_error(network: TcpNetwork, name: str) -> None:
    with trio.fail_after(60), pytest.raises(OSError, match="is not a host name"):
        await network.connect(name, 9092)


async def test_the_addresses_of_a_name_are_tried_in_turn(network: TcpNetwork) -> None:
    listener = await network.listen("127.0.0.1", 0, 10)
    trio.socket.set_custom_hostname_resolver(Addresses(("127.0.0.1", unused_port()), ("127.0.0.1", 0)))
    with trio.fail_after(60):
        connection = await network.connect("broker.example", listener.port)
    assert connection.peer == f"127.0.0.1:{listener.port}"
    connection.close()
    listener.close()
    with trio.fail_after(60), pytest.raises(ConnectionRefusedError):
        await network.connect("broker.example", unused_port())


async def test_a_caller_may_give_up_connecting(network: TcpNetwork) -> None:
    """Once there is no place in the backlog any more, the kernel lets a connection wait."""
    connected = []
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        with trio.move_on_after(0.2) as scope:
            while True:
                connected.append(await network.connect(*server.getsockname()))
        assert scope.cancelled_caught
    for connection in connected:
        connection.close()


class FileSlice:
    """A part of an open file; ``is_released`` once it is not needed any more."""

    def __init__(self, file: BinaryIO, position: int, nbytes: int) -> None:
        self.position = position
        self.nbytes = nbytes
        self.is_released = False
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()

    def read(self) -> bytes:
        raise AssertionError("the bytes of a file go to the socket")

    def release(self) -> None:
        assert not self.is_released
        self.is_released = True


async def test_slices_of_files_and_bytes_arrive_in_their_order(network: TcpNetwork, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(400_000)
    (tmp_path / "file").write_bytes(content)
    listener = await network.listen("127.0.0.1", 0, 10)
    with trio.fail_after(60), (tmp_path / "file").open("rb") as file:
        opened = await network.connect("127.0.0.1", listener.port)
        accepted = await listener.accept()
        sizes = [100, 16 << 10, 20_000, 0, 1, 200_000, *[5] * 400, 16_385, 7_000]
        starts = list(accumulate(sizes, initial=0))[:-1]
        slices = [FileSlice(file, start, size) for start, size in zip(starts, sizes, strict=True)]
        parts = [part for each in slices for part in (b"%d " % each.nbytes, each)]
        expected = b"".join(b"%d " % s.nbytes + content[s.position : s.position + s.nbytes] for s in slices) + b"end"
        received = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accepted.send, [*parts, b"end"])
            while len(received) < len(expected):
                received += await receive(opened, len(expected) - len(received))
    assert received == expected
    assert all(each.is_released for each in slices)
    accepted.close()
    opened.close()
    listener.close()


@pytest.mark.parametrize("size", [10, 100_000])
async def test_a_file_that_ends_before_the_slice_does_is_an_error(
    network: TcpNetwork, tmp_path: Path, size: int
) -> None:
    (tmp_path / "file").write_bytes(bytes(size - 1))
    listener = await network.listen("127.0.0.1", 0, 10)
    with trio.fail_after(60), (tmp_path / "file").open("rb") as file:
        opened = await network.connect("127.0.0.1", listener.port)
        accepted = await listener.accept()
        part = FileSlice(file, 0, size)
        with pytest.raises(KafkaError, match="before the slice did"):
            await accepted.send([b"header", part])
    assert part.is_released
    accepted.close()
    opened.close()
    listener.close()
