"""``Network`` over non-blocking TCP sockets of the operating system, without trio's socket objects.

A send gathers the bytes of neighbouring parts into one ``sendmsg``, together with file slices of up to 16 KiB, which are cheaper
to copy than to send by a call of their own. A larger slice is given to ``sendfile``. If its pages were not in memory, that would
block the whole loop: so its last page is probed first (``preadv2`` with RWF_NOWAIT), and if it is not cached a worker thread
reads the slice ahead. Where probing is not possible (macOS), the loop waits. What a large response costs depends on the kernel's
send buffer (``send_buffer``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import trio

from .errors import ErrorCode, KafkaError
from .network import WOULD_BLOCK, FileSlice, Part, release, total_size
from .seams import Workers
from .send_buffer import SendBuffer
from .system_calls import MSG_MORE, RWF_NOWAIT, read_into, set_buffer_size

_MAX_GATHERED = 256
_COPIED = 16 << 10
_READ_AHEAD = 1 << 20
# Errors of a connection that its client has reset before it was accepted; EINVAL is macOS's error for setting options on it.
_GONE = (errno.ENOTCONN, errno.ECONNRESET, errno.EINVAL)
_probe = threading.local()


class TcpConnection:
    """A connected socket as ``Connection``."""

    __slots__ = ("_buffer", "_descriptor", "_socket", "_workers", "peer")

    def __init__(self, connected: socket.socket, workers: Workers, send_buffer: int) -> None:
        connected.setblocking(False)
        self._buffer = SendBuffer(connected, send_buffer)
        if connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._descriptor = connected.fileno()
        self._workers = workers
        address = connected.getpeername()
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) and len(address) > 1 else "local"

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()

    def receive_into(self, buffer: memoryview) -> int:
        try:
            return self._socket.recv_into(buffer)
        except BlockingIOError:
            return WOULD_BLOCK

    async def wait_readable(self) -> None:
        await self._wait(trio.lowlevel.wait_readable)

    async def _wait(self, wait: Callable[[socket.socket], Awaitable[None]]) -> None:
        if self._socket.fileno() < 0:
            raise OSError(errno.EBADF, "connection is closed")
        try:
            await wait(self._socket)
        except trio.ClosedResourceError:
            raise OSError(errno.EBADF, "connection is closed") from None

    async def send(self, parts: Sequence[Part]) -> None:
        if len(parts) == 1 and type(parts[0]) is bytes:
            await self._send_bytes([parts[0]])
            return
        if not self._buffer.is_settled:
            self._buffer.begin(total_size(parts))
        gathered: list[bytes | bytearray | memoryview] = []
        remaining = list(reversed(parts))
        try:
            while remaining:
                part = remaining[-1]
                if isinstance(part, bytes | bytearray | memoryview):
                    gathered.append(part)
                    remaining.pop()
                elif (copy := copy_of(part)) is not None:
                    gathered.append(copy)
                    remaining.pop()
                    part.release()
                else:
                    if gathered:
                        await self._send_bytes(gathered, more=True)
                        gathered = []
                    await self._send_file(part.fileno(), part.position, part.nbytes)
                    remaining.pop()
                    part.release()
                if len(gathered) == _MAX_GATHERED:
                    await self._send_bytes(gathered)
                    gathered = []
                    await trio.lowlevel.checkpoint()  # copying so many slices takes more than a millisecond
            if gathered:
                await self._send_bytes(gathered)
        finally:
            if remaining:
                release(remaining)

    def send_now(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    async def _send_bytes(self, pieces: list[bytes | bytearray | memoryview], more: bool = False) -> None:
        flags = MSG_MORE if more else 0
        sent_all = sum(map(len, pieces))
        while True:
            try:
                if len(pieces) == 1:
                    sent = self._socket.send(pieces[0], flags)
                else:
                    sent = self._socket.sendmsg(pieces, (), flags)
            except BlockingIOError:
                await self._wait(trio.lowlevel.wait_writable)
                continue
            sent_all -= sent
            if not sent_all:
                return
            while sent >= len(pieces[0]):
                sent -= len(pieces[0])
                del pieces[0]
            if sent:
                pieces[0] = memoryview(pieces[0])[sent:]

    async def _send_file(self, descriptor: int, position: int, count: int) -> None:
        if count and RWF_NOWAIT and not _is_cached(descriptor, position + count - 1):
            await self._workers.run(read_ahead, descriptor, position, count)
        while count:
            try:
                sent = os.sendfile(self._descriptor, descriptor, position, count)
            except BlockingIOError:
                await self._wait(trio.lowlevel.wait_writable)
                continue
            if not sent:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"file ended {count} bytes before the slice did")
            position += sent
            count -= sent

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()


def copy_of(part: FileSlice) -> bytes | bytearray | None:
    """The bytes of a slice that is in memory, or small and in the page cache: cheaper to copy than a call of its own."""
    descriptor, count = part.fileno(), part.nbytes
    if descriptor < 0:
        return part.read()
    if count > _COPIED or not RWF_NOWAIT:
        return None
    copy = bytearray(count)
    try:
        return copy if os.preadv(descriptor, (copy,), part.position, RWF_NOWAIT) == count else None
    except OSError:
        return None


def _is_cached(descriptor: int, position: int) -> bool:
    """Whether the page with ``position`` can be read without the disk; True where the file system can't tell."""
    buffer = getattr(_probe, "buffer", None)
    if buffer is None:
        buffer = _probe.buffer = [bytearray(1)]
    try:
        os.preadv(descriptor, buffer, position, RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def read_ahead(descriptor: int, position: int, count: int) -> None:
    """Bring the bytes into the page cache; errors are left for sendfile to find."""
    buffer = bytearray(min(count, _READ_AHEAD))
    with contextlib.suppress(OSError):
        while count > 0:
            read = read_into(descriptor, memoryview(buffer)[:count], position)
            if not read:
                return
            position += read
            count -= read


class TcpListener:
    """A listening socket as ``NetworkListener``."""

    def __init__(self, listening: socket.socket, workers: Workers, send_buffer: int, receive_buffer: int) -> None:
        self._socket = listening
        self._workers = workers
        self._send_buffer = send_buffer
        self._receive_buffer = receive_buffer
        self.host, self.port = listening.getsockname()[:2]

    async def accept(self) -> TcpConnection:
        while True:
            try:
                connected, _ = self._socket.accept()
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._socket)
                continue
            except ConnectionAbortedError:
                continue
            try:
                if self._receive_buffer > 0:
                    set_buffer_size(connected, socket.SO_RCVBUF, self._receive_buffer)
                return TcpConnection(connected, self._workers, self._send_buffer)
            except OSError as error:
                connected.close()
                if error.errno not in _GONE:
                    raise

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()


class TcpNetwork:
    """Sockets of the system.

    The buffer sizes are those of accepted connections, in bytes; -1 leaves them to the kernel, which then tunes them by itself.
    """

    def __init__(self, workers: Workers, send_buffer: int = -1, receive_buffer: int = -1) -> None:
        self._workers = workers
        self._send_buffer = send_buffer
        self._receive_buffer = receive_buffer

    async def listen(self, host: str, port: int, backlog: int, *, is_shared: bool = False) -> TcpListener:
        """``is_shared``: other processes of the same user listen at the address, too."""
        family, kind, protocol, _, address = (
            await trio.socket.getaddrinfo(
                host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
            )
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if is_shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind(address)
            listening.listen(backlog)
        except OSError:
            listening.close()
            raise
        return TcpListener(listening, self._workers, self._send_buffer, self._receive_buffer)

    async def connect(self, host: str, port: int) -> TcpConnection:
        """Try the addresses of the host one after another; raises the OSError of the last.

        The kernel sizes the buffers: the settings are for accepted connections only.
        """
        refused = OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
        for family, kind, protocol, _, address in await _addresses(host, port):
            connecting = socket.socket(family, kind, protocol)
            try:
                await _connect(connecting, address)
                return TcpConnection(connecting, self._workers, -1)
            except OSError as error:
                connecting.close()
                refused = error
            except BaseException:
                connecting.close()
                raise
        raise refused


async def _addresses(host: str, port: int) -> list[tuple[Any, ...]]:
    """The addresses of a host, looked up in a thread. Raises OSError."""
    try:
        found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICSERV)
    except UnicodeError:  # an empty label, or one of more than 63 characters
        raise OSError(errno.EINVAL, f"{host!r} is not a host name") from None
    return list(found)


async def _connect(connecting: socket.socket, address: Any) -> None:
    connecting.setblocking(False)
    try:
        connecting.connect(address)
    except BlockingIOError:
        await trio.lowlevel.wait_writable(connecting)
        failure = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise OSError(failure, os.strerror(failure)) from None
