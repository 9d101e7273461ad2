"""Byte streams to other processes: the five methods the broker needs, and TCP as their real form.

A ``Connection`` is read into a caller's buffer and written as a list of parts; a part is bytes or a ``FileSlice``, whose
bytes go from the page cache to the socket without passing through Python. The TCP form tries the non-blocking socket
first and waits only when the kernel says EAGAIN, because a trio checkpoint costs more than a small request.

A part that is a ``FileSlice`` is released by whoever sends it, also when sending fails.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import trio

_MAX_PARTS = 64


@runtime_checkable
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


class Connection(Protocol):
    """One byte stream in both directions."""

    @property
    def peer(self) -> str:
        """Address of the other side, ``host:port``."""
        ...

    async def receive_into(self, buffer: memoryview) -> int:
        """Fill some of ``buffer``, at least one byte; 0 at the end of the stream."""
        ...

    async def send(self, parts: Sequence[Part]) -> None:
        """Write every byte of ``parts`` in order. Raises OSError when the other side is gone."""
        ...

    def close(self) -> None:
        """Close both directions; safe to call twice."""
        ...
