"""``TlsConnection``: a ``Connection`` that runs TLS over another ``Connection``.

OpenSSL works on two buffers in memory, whose bytes the connection below sends and receives. So a large piece is encrypted as a
whole and sent with one call, where OpenSSL on a socket would need one for each 16 KiB; and the connection below need not be a
socket.

Bytes of files cannot go from the page cache to the socket as they do without TLS: they are read into a buffer that all
connections of the loop share, encrypted, and sent, ``_CHUNK`` bytes at a time, with a turn for other tasks in between. What is
not in the page cache is read ahead by a worker first, as in ``tcp``.

- A connection can be used when its ``handshake`` is done; the caller limits how long that takes.
- One task reads and one task writes at a time. What OpenSSL wants to send while it reads (a response to a change of keys) is sent
  before the next data; a peer that causes more than ``_MOST_UNSENT`` bytes of it is disconnected.
- The stream may end without TLS's announcement of the end, because Kafka's messages have their own lengths.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
from collections import deque
from collections.abc import Sequence

import trio

from .errors import ErrorCode, KafkaError
from .network import WOULD_BLOCK, Connection, FileSlice, Part, release
from .seams import Workers
from .system_calls import RWF_NOWAIT, read_into
from .tcp import read_ahead

_CHUNK = 256 << 10
_RECEIVED_AT_ONCE = 64 << 10
_READ_AHEAD = 1 << 20
_MOST_UNSENT = 16 << 10


class _Buffers(threading.local):
    """The buffers of one loop; their content is used up before the next wait."""

    def __init__(self) -> None:
        self.plain = memoryview(bytearray(_CHUNK))
        self.received = memoryview(bytearray(_RECEIVED_AT_ONCE))


_buffers = _Buffers()


class TlsConnection:
    """TLS over the connection ``below``, which is closed with this one.

    ``server_name``: where this side has opened the connection, the host name for the peer's certificate; None on the server's
    side.
    """

    def __init__(
        self, below: Connection, context: ssl.SSLContext, workers: Workers, *, server_name: str | None = None
    ) -> None:
        self.peer = below.peer
        self._below = below
        self._workers = workers
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        self._may_say_goodbye = False
        self._has_ended = False
        self._is_undecrypted = False  # whether something is here that was not decrypted yet

    async def handshake(self) -> None:
        """Agree on keys and check certificates. Raises OSError (ssl.SSLError where TLS itself fails)."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._send_encrypted()
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await self._send_encrypted()  # the alert that says why
                raise
            await self._receive_more()
        await self._send_encrypted()
        self._is_undecrypted = True  # the first request may have come with the end of the handshake

    async def _receive_more(self) -> None:
        """Wait for bytes of the handshake."""
        buffer = _buffers.received
        while (count := self._below.receive_into(buffer)) == WOULD_BLOCK:
            await self._below.wait_readable()
        if not count:
            raise ConnectionResetError("the connection ended in the TLS handshake")
        self._incoming.write(buffer[:count])

    @property
    def descriptor(self) -> int:
        return self._below.descriptor

    @property
    def peer_certificate(self) -> bytes | None:
        """The peer's certificate, in DER, once the handshake is done; None where it has sent none."""
        return self._tls.getpeercert(binary_form=True)

    @property
    def cipher(self) -> str:
        """The suite that was agreed on, by OpenSSL's name."""
        cipher = self._tls.cipher()
        return "" if cipher is None else cipher[0]

    # --- reading ------------------------------------------------------------------------------------------------------

    def receive_into(self, buffer: memoryview) -> int:
        """As in ``Connection``, but fills as much as can be read without waiting: where room is left, no more was there."""
        received, is_drained = 0, False
        while True:
            if self._is_undecrypted:
                received = self._decrypt(buffer, received)
                if received == len(buffer):
                    return received
                self._is_undecrypted = False
            if self._has_ended:
                return received
            if is_drained:
                return received or WOULD_BLOCK
            count = self._below.receive_into(_buffers.received)
            if count == WOULD_BLOCK:
                return received or WOULD_BLOCK
            if count:
                self._incoming.write(_buffers.received[:count])
                self._is_undecrypted = True
                is_drained = count < _RECEIVED_AT_ONCE
            else:
                self._has_ended = True

    def _decrypt(self, buffer: memoryview, received: int) -> int:
        """Decrypt what was received into the buffer, from ``received`` on; returns where the free part begins then."""
        tls, incoming = self._tls, self._incoming
        try:
            while received < len(buffer) and (incoming.pending or tls.pending()):
                count: int = tls.read(len(buffer) - received, buffer[received:])  # type: ignore[assignment]  # of bytes, with a buffer
                if not count:
                    self._has_ended = True
                    break
                received += count
        except ssl.SSLWantReadError:  # the rest of a record is still to come
            pass
        if self._outgoing.pending > _MOST_UNSENT:
            raise OSError("the peer asks for new keys again and again")
        return received

    async def wait_readable(self) -> None:
        if self._is_undecrypted or self._has_ended:
            await trio.lowlevel.checkpoint()
        else:
            await self._below.wait_readable()

    # --- writing ------------------------------------------------------------------------------------------------------

    async def send(self, parts: Sequence[Part]) -> None:
        if len(parts) == 1 and type(parts[0]) is bytes:
            self._tls.write(parts[0])
            await self._send_encrypted()
            return
        source = _Source(parts)
        try:
            while source.is_left:
                count = source.fill(_buffers.plain)
                if not count:
                    await source.read_ahead(self._workers)
                    continue
                self._tls.write(_buffers.plain[:count])
                await self._send_encrypted()
                if source.is_left:
                    await trio.lowlevel.checkpoint()
        finally:
            source.release()

    def send_now(self, data: bytes) -> int:
        """Sends nothing: an encrypted record has to be sent whole, and there may be no room for it."""
        return 0

    async def _send_encrypted(self) -> None:
        outgoing = self._outgoing
        while outgoing.pending:
            self._may_say_goodbye = False  # not in the middle of a record
            await self._below.send([memoryview(outgoing.read())])
            self._may_say_goodbye = True

    def close(self) -> None:
        if self._may_say_goodbye:
            self._may_say_goodbye = False
            with contextlib.suppress(OSError):
                self._below.send_now(self._goodbye())
        self._below.close()

    def _goodbye(self) -> bytes:
        """The record that announces the end to the peer; empty where TLS has failed."""
        with contextlib.suppress(ssl.SSLError):  # it would wait for the peer's own
            self._tls.unwrap()
        return self._outgoing.read()


class _Source:
    """Reads parts as bytes, piece by piece; each slice of a file is released when its last byte was read."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = deque(parts)
        self._taken = 0  # bytes of the first part
        self._is_cached_to = 0  # the same, as far as they were read ahead

    @property
    def is_left(self) -> bool:
        return bool(self._parts)

    def release(self) -> None:
        """Release the parts that were not read."""
        release(self._parts)
        self._parts.clear()

    def fill(self, target: memoryview) -> int:
        """Read as much as fits and is in memory; 0 where the next byte is on the disk only.

        Raises KafkaError(KAFKA_STORAGE_ERROR) when a slice's bytes are no longer there.
        """
        filled = 0
        while self._parts and filled < len(target):
            part, room = self._parts[0], target[filled:]
            if isinstance(part, bytes | bytearray | memoryview):
                piece = memoryview(part)[self._taken : self._taken + len(room)]
                room[: len(piece)] = piece
                count, size = len(piece), len(part)
            elif part.fileno() < 0:
                self._parts[0] = part.read()
                part.release()
                continue
            else:
                count, size = self._read(part, room), part.nbytes
                if not count and size:
                    break
            filled += count
            self._taken += count
            if self._taken == size:
                self._drop_first()
        return filled

    def _drop_first(self) -> None:
        part = self._parts.popleft()
        self._taken = self._is_cached_to = 0
        if not isinstance(part, bytes | bytearray | memoryview):
            part.release()

    def _read(self, part: FileSlice, room: memoryview) -> int:
        """Read bytes of a slice; 0 where the next one is not in memory. Where the system cannot tell, the loop waits."""
        ahead = self._is_cached_to - self._taken
        room = room[: ahead if ahead > 0 else part.nbytes - self._taken]
        position = part.position + self._taken
        count = _read_cached(part.fileno(), position, room) if ahead <= 0 else read_into(part.fileno(), room, position)
        if count == 0 and part.nbytes:
            missing = part.nbytes - self._taken
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"file ended {missing} bytes before the slice did")
        return max(count, 0)

    async def read_ahead(self, workers: Workers) -> None:
        """Bring the next bytes of a file into the page cache."""
        part = self._parts[0]
        assert not isinstance(part, bytes | bytearray | memoryview)
        count = min(part.nbytes - self._taken, _READ_AHEAD)
        await workers.run(read_ahead, part.fileno(), part.position + self._taken, count)
        self._is_cached_to = self._taken + count


def _read_cached(descriptor: int, position: int, room: memoryview) -> int:
    """How much was read, 0 at the end of the file, -1 where the first byte is not in the page cache."""
    if RWF_NOWAIT:
        try:
            return os.preadv(descriptor, (room,), position, RWF_NOWAIT)
        except BlockingIOError:
            return -1
        except OSError:  # of a file system that cannot tell
            pass
    return read_into(descriptor, room, position)
