"""How much of a large response the kernel holds depends on the reader, over TCP of the system."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.base.send_buffer import LARGE, SendBuffer

CONFIGURED = 102_400
MIB = 1 << 20


@contextmanager
def connected(receive_buffer: int | None) -> Iterator[socket.socket]:
    """The sender's end of a connection to somebody who reads whatever comes, with a receive buffer of his own or without."""
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as reader:
        if receive_buffer is not None:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        reader.connect(listening.getsockname())
        sender, _ = listening.accept()

        def read() -> None:
            while reader.recv(MIB):
                pass

        thread = threading.Thread(target=read)
        thread.start()
        try:
            with sender:
                yield sender
        finally:
            thread.join()


def size_of(sender: socket.socket) -> int:
    """As it was set: Linux doubles what it is told."""
    return sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2


def send(sender: socket.socket, buffer: SendBuffer, *sizes: int) -> None:
    for size in sizes:
        if not buffer.is_settled:
            buffer.begin(size)
        sender.sendall(bytes(size))


@pytest.mark.parametrize(
    ("receive_buffer", "responses", "expected"),
    [
        (65_536, [MIB] * 3, CONFIGURED),
        (65_536, [MIB] * 4, LARGE),
        (65_536, [1000, 100_000] * 10, CONFIGURED),
        (2 * MIB, [MIB], LARGE),
        (None, [MIB] * 20, CONFIGURED),
        (None, [*[100_000] * 200, MIB], CONFIGURED),
        (None, [MIB, 3 * MIB], LARGE),
    ],
)
def test_it_is_large_where_that_pays(receive_buffer: int | None, responses: list[int], expected: int) -> None:
    with connected(receive_buffer) as sender:
        send(sender, SendBuffer(sender, CONFIGURED), *responses)
        assert size_of(sender) == expected


@pytest.mark.parametrize("configured", [LARGE, 2 * LARGE])
def test_more_than_that_is_left_alone(configured: int) -> None:
    with connected(65_536) as sender:
        send(sender, SendBuffer(sender, configured), 3 * MIB, *[MIB] * 5)
        assert size_of(sender) == configured


def test_the_system_decides_if_it_is_told_to() -> None:
    with connected(65_536) as sender:
        before = size_of(sender)
        buffer = SendBuffer(sender, -1)
        assert buffer.is_settled
        assert size_of(sender) == before
