"""Byte streams to other processes: the interface of the broker to the network.

A ``Connection`` is read into a caller's buffer and written as a list of parts; a part is bytes or a ``FileSlice``, whose
bytes go from the page cache to the socket without passing through Python. Reading is tried first and waited for only
when there is nothing, because a trio checkpoint costs more than a small request.

The sender of a ``FileSlice`` releases it, also when sending fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

WOULD_BLOCK = -1
"""What ``receive_into`` returns when no byte is there yet."""


class FileSlice(Protocol):
    """``nbytes`` bytes of a file from ``position`` on, pinned until ``release``."""

    @property
    def nbytes(self) -> int: ...

    @property
    def position(self) -> int: ...

    def fileno(self) -> int:
        """The open descriptor, or -1 where the bytes are not in a file of the system."""
        ...

    def read(self) -> bytes:
        """The bytes. Raises KafkaError(KAFKA_STORAGE_ERROR) when fewer are there."""
        ...

    def release(self) -> None:
        """Unpin; called exactly once."""
        ...


Part = bytes | bytearray | memoryview | FileSlice
_WITH_LENGTH = (bytes, bytearray)


def size_of(part: Part) -> int:
    """How many bytes a part stands for."""
    return len(part) if isinstance(part, bytes | bytearray) else part.nbytes


def total_size(parts: Iterable[Part]) -> int:
    """How many bytes the parts stand for together."""
    return sum([len(part) if isinstance(part, _WITH_LENGTH) else part.nbytes for part in parts])


def take_bytes(parts: deque[Part]) -> bytes:
    """Remove the first part; returns its bytes, read now if they are in a file. Raises KafkaError(KAFKA_STORAGE_ERROR)."""
    part = parts[0]
    if isinstance(part, bytes | bytearray | memoryview):
        data = bytes(part)
    else:
        data = part.read()
        part.release()
    parts.popleft()
    return data


def release(parts: Iterable[Part]) -> None:
    """Release the slices of files among the parts."""
    for part in parts:
        if not isinstance(part, bytes | bytearray | memoryview):
            part.release()


class Connection(Protocol):
    """One byte stream in both directions."""

    @property
    def peer(self) -> str:
        """Address of the other side, ``host:port``."""
        ...

    @property
    def descriptor(self) -> int:
        """The descriptor of its socket, -1 where it is no socket of the system, or closed."""
        ...

    def receive_into(self, buffer: memoryview) -> int:
        """Fill some of ``buffer``; 0 at the end of the stream, WOULD_BLOCK when nothing is there. Raises OSError."""
        ...

    async def wait_readable(self) -> None:
        """Return once ``receive_into`` would not return WOULD_BLOCK. Raises OSError."""
        ...

    async def send(self, parts: Sequence[Part]) -> None:
        """Write every byte of ``parts`` in order, releasing each slice.

        Raises OSError when the other side is gone, KafkaError(KAFKA_STORAGE_ERROR) when a slice's bytes are no longer there.
        """
        ...

    def send_now(self, data: bytes) -> int:
        """Write as much of ``data`` as there is room for now; returns how many bytes. Raises OSError.

        It is for a last message before ``close``: what there is no room for is lost.
        """
        ...

    def close(self) -> None:
        """Close both directions; safe to call twice, and wakes a waiting task with OSError."""
        ...


class NetworkListener(Protocol):
    """A bound address that hands out connections."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    async def accept(self) -> Connection:
        """The next connection. Raises OSError (EMFILE, ENFILE) when the process has no descriptor left."""
        ...

    def close(self) -> None: ...


class Network(Protocol):
    """Where listeners and connections to other processes come from; a simulation has its own."""

    async def listen(self, host: str, port: int, backlog: int) -> NetworkListener:
        """Bind ``host:port`` (0: any free port). Raises OSError."""
        ...

    async def connect(self, host: str, port: int) -> Connection:
        """Connect to ``host:port``. Raises OSError; the caller limits the time."""
        ...


async def receive_exactly(connection: Connection, size: int, why_ended: str) -> memoryview:
    """So many bytes. Raises OSError, at the end of the stream with ``why_ended``."""
    buffer = memoryview(bytearray(size))
    received = 0
    while received < size:
        count = connection.receive_into(buffer[received:])
        if count == WOULD_BLOCK:
            await connection.wait_readable()
        elif count == 0:
            raise OSError(why_ended)
        else:
            received += count
    return buffer
