"""How much of a large response the kernel holds depends on the reader, over TCP of the system."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.base import send_buffer
from ottla.base.send_buffer import LARGE, MIDDLE, Peer, SendBuffer

CONFIGURED = 102_400
MIB = 1 << 20


class Pair:
    """A connection to a client that reads all of a response before the next one is due, as a consumer does.

    The reader has a receive buffer of his own, or without one that which the kernel gives him.
    """

    def __init__(self, sender: socket.socket, reader: socket.socket) -> None:
        self.sender = sender
        self._reader = reader

    def send(self, buffer: SendBuffer, *sizes: int) -> None:
        """Responses of so many bytes."""
        for size in sizes:
            if not buffer.is_settled:
                buffer.begin(size)
            reading = threading.Thread(target=self._read, args=(size,))
            reading.start()
            self.sender.sendall(bytes(size))
            reading.join()

    def _read(self, size: int) -> None:
        while size:
            size -= len(self._reader.recv(min(size, MIB)))

    def size(self) -> int:
        """Of the send buffer, as it was set: Linux doubles what it is told."""
        return self.sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2


@contextmanager
def connected(receive_buffer: int | None) -> Iterator[Pair]:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as reader:
        if receive_buffer is not None:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        reader.connect(listening.getsockname())
        sender, _ = listening.accept()
        with sender:
            yield Pair(sender, reader)


@pytest.mark.parametrize(
    ("receive_buffer", "responses", "expected"),
    [
        (65_536, [MIB] * 3, MIDDLE),
        (65_536, [MIB] * 4, LARGE),
        (65_536, [12 * MIB] * 4, LARGE),
        (65_536, [1000, 100_000] * 10, CONFIGURED),
        (2 * MIB, [MIB], LARGE),
        (None, [MIB] * 20, MIDDLE),
        (None, [12 * MIB] * 20, MIDDLE),
        (None, [100_000] * 200, CONFIGURED),
        (None, [*[100_000] * 200, MIB], MIDDLE),
    ],
)
def test_it_is_as_large_as_pays(receive_buffer: int | None, responses: list[int], expected: int) -> None:
    with connected(receive_buffer) as pair:
        pair.send(SendBuffer(pair.sender, CONFIGURED), *responses)
        assert pair.size() == expected


@pytest.mark.parametrize(
    ("peer", "responses", "expected"),
    [
        (Peer(MIB, 5000), [MIB] * 4, MIDDLE),
        (Peer(MIB, 5000), [MIB, 3 * MIB], LARGE),
        (None, [MIB] * 4, CONFIGURED),
        (None, [MIB, 3 * MIB], LARGE),
    ],
    ids=["far, 1 MiB", "far, 3 MiB", "untold, 1 MiB", "untold, 3 MiB"],
)
def test_a_response_of_many_mib_has_the_large_one_unless_the_reader_is_near(
    peer: Peer | None, responses: list[int], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Untold is what systems without Linux' struct tcp_info say."""
    with connected(None) as pair:
        buffer = SendBuffer(pair.sender, CONFIGURED)
        monkeypatch.setattr(send_buffer, "peer_of", lambda _: peer)
        pair.send(buffer, *responses)
        assert pair.size() == expected


@pytest.mark.parametrize("configured", [LARGE, 2 * LARGE])
def test_more_than_that_is_left_alone(configured: int) -> None:
    with connected(65_536) as pair:
        pair.send(SendBuffer(pair.sender, configured), 3 * MIB, *[MIB] * 5)
        assert pair.size() == configured


def test_it_is_never_made_smaller() -> None:
    with connected(None) as pair:
        pair.send(SendBuffer(pair.sender, 300_000), *[12 * MIB] * 5)
        assert pair.size() == 300_000


def test_the_system_decides_if_it_is_told_to() -> None:
    with connected(65_536) as pair:
        before = pair.size()
        assert SendBuffer(pair.sender, -1).is_settled
        assert pair.size() == before
