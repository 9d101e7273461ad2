"""``BrokerClient``, a client for requests to another broker, over one connection that is reopened after it ends.

The controller, followers, coordinators and handlers speak to other brokers through it. Kafka answers the requests of a
connection in their order (https://kafka.apache.org/protocol#protocol_network), and everything here relies on that:

- No task runs in the background. Each caller writes its own request and, when all earlier answers have been read, reads its
  own answer; then it is the next caller's turn.
- A caller that is cancelled leaves its request behind; the caller after it reads past the answer. Where there is none, or
  the request was not written to its end, the connection is closed.
- A request that has no answer in time ends the connection, as in Kafka's NetworkClient: what came later would wait for the
  same answer. Whether the peer has executed what was in flight is unknown.
- A response has a buffer of its own, in which its records stay a view; they are valid as long as the caller holds them.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import trio

from ..base.addresses import join_host_port
from ..base.errors import ErrorCode, KafkaError, ProtocolError
from ..base.network import WOULD_BLOCK, Connection, Network, total_size
from ..base.wakeup import cancel_at
from ..wire.api_keys import ApiKey
from ..wire.codec import decode, encode
from ..wire.headers import decode_response_header, encode_request_header
from ..wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ..wire.registry import response_class
from ..wire.schema import Message


class SecuredConnection(NamedTuple):
    """A connection that is ready for requests, and the trio time after which no new one is sent on it."""

    connection: Connection
    usable_until: float = math.inf


Secure = Callable[[Connection, str], Awaitable[SecuredConnection]]
"""What a new connection to a host goes through before the first request: TLS, a SASL conversation.

Returns what is read and written from then on, which owns the connection given. Raises OSError; the caller then closes.
"""

_SIZE = struct.Struct(">i")
_HIGHEST_CORRELATION_ID = (1 << 31) - 1
_SMALL_BUFFER = 512
_SOFTWARE_VERSION = "1"
_WITH_SOFTWARE = 3
"""The first version of ApiVersions in which a client says what its software is."""
_LARGE_FRAME = 256 << 10  # a larger one is not copied out of the buffer that it began in


class NoAnswerError(OSError):
    """There is no answer that could be read; whether the peer has executed the request is unknown."""


class PeerUnavailableError(NoAnswerError):
    """The peer cannot be reached, or the connection ended before the answer came; it may have executed the request."""


class MalformedResponseError(NoAnswerError):
    """The peer's answer is not what the protocol says; the connection was closed. The peer may have executed the request."""


class BrokerClient:
    """The way to the broker at ``host:port``; connects when the first request is sent.

    ``client_id`` is the name it gives itself in each request. ``timeout``: seconds that a request may take, from the call on.
    ``max_in_flight``: requests that wait for their answers at a time; further callers wait for their turn. ``max_response``:
    the largest answer taken, in bytes. ``secure``: None where the peer's listener is PLAINTEXT. ``software``: what it says of
    itself where it ``negotiate``s (KIP-511); empty where it says nothing.
    """

    def __init__(
        self,
        network: Network,
        host: str,
        port: int,
        client_id: str,
        *,
        timeout: float = 30.0,
        max_in_flight: int = 5,
        max_response: int = 100 << 20,
        secure: Secure | None = None,
        software: str = "",
    ) -> None:
        self.peer = join_host_port(host, port)
        self._network = network
        self._address = host, port
        self._client_id = client_id
        self._timeout = timeout
        self._max_response = max_response
        self._secure = secure
        self._software = software
        self._slots = trio.Semaphore(max_in_flight)
        # Not round state: a frame is written whole before the next, and of two callers only one connects.
        self._writing = trio.StrictFIFOLock()
        self._link: _Link | None = None
        self._retired: _Link | None = None
        self._is_closed = False

    async def send(self, request: Message, version: int) -> Any:
        """The response to a request of a version that the caller knows the peer to serve.

        For a controller and a follower inter.broker.protocol.version says which (ControllerChannelManager,
        RemoteLeaderEndPoint); others call ``negotiate`` first. The caller looks at error codes in the response. Raises
        PeerUnavailableError, also when the time is up, and MalformedResponseError; ValueError for a request that its
        version cannot carry.
        """
        _, response = await self._exchange(request, version)
        return response

    async def negotiate(self, request: type[Message], highest: int | None = None) -> int:
        """The highest version of ``request``, up to ``highest``, that both sides know.

        Requests to the controller are sent with it (NodeToControllerChannelManager). ApiVersions is asked once per connection,
        in version 0, which every Kafka serves, or in the first that has ``software``. Should an older peer take this one's place
        before the request is sent, it closes the connection. Raises KafkaError (UNSUPPORTED_VERSION) where there is no common
        version, and what ``send`` raises.
        """
        link = self._link
        if link is None or not link.is_usable() or link.versions is None:
            response: ApiVersionsResponse
            link, response = await self._exchange(*self._versions_request())
            if response.error_code:
                link.close(f"ApiVersions got error {response.error_code}")
                raise link.unavailable()
            link.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        lowest, version = link.versions.get(request.api_key, (0, -1))
        ours = request.valid_versions
        version = min(version, ours.stop - 1 if highest is None else highest)
        if version < max(lowest, ours.start):
            name = ApiKey(request.api_key).name
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"{self.peer} serves no version of {name} that is known here"
            )
        return version

    def _versions_request(self) -> tuple[ApiVersionsRequest, int]:
        if not self._software:
            return ApiVersionsRequest(), 0
        request = ApiVersionsRequest(client_software_name=self._software, client_software_version=_SOFTWARE_VERSION)
        return request, _WITH_SOFTWARE

    def close(self) -> None:
        """End the connection, and with it every request in flight: PeerUnavailableError, as for each one after."""
        self._is_closed = True
        for link in (self._link, self._retired):
            if link is not None:
                link.close("the client was closed")

    async def _exchange(self, request: Message, version: int) -> tuple[_Link, Any]:
        """The response, and the connection it came over."""
        await trio.lowlevel.checkpoint_if_cancelled()
        at = trio.current_time() + self._timeout
        link = self._begin_at_once() or await self._begin(request, at)
        limit = _Limit(link, lambda: self._too_late(request))
        cancel_at(at, limit)
        try:
            try:
                waiting = await link.write(request, version, self._client_id)
            finally:
                self._writing.release()
            return link, await link.receive(waiting)
        finally:
            limit.is_waiting = False
            self._slots.release()

    def _begin_at_once(self) -> _Link | None:
        """The connection, with a slot and the right to write taken, where nothing has to be waited for; else None."""
        link = self._link
        if self._is_closed or link is None or not link.is_usable():
            return None
        try:
            self._slots.acquire_nowait()
        except trio.WouldBlock:
            return None
        try:
            self._writing.acquire_nowait()
        except trio.WouldBlock:
            self._slots.release()
            return None
        return link

    async def _begin(self, request: Message, at: float) -> _Link:
        """As ``_begin_at_once``, waiting for the turn of this request and for a connection, up to the time ``at``."""
        try:
            with trio.fail_at(at):
                await _acquire(self._slots)
                try:
                    await _acquire(self._writing)
                    try:
                        return await self._open_link()
                    except BaseException:
                        self._writing.release()
                        raise
                except BaseException:
                    self._slots.release()
                    raise
        except trio.TooSlowError:
            raise PeerUnavailableError(f"{self.peer}: {self._too_late(request)}") from None

    def _too_late(self, request: Message) -> str:
        return f"no response to {ApiKey(request.api_key).name} within {self._timeout:g} s"

    async def _open_link(self) -> _Link:
        if self._is_closed:
            raise PeerUnavailableError(f"{self.peer}: the client was closed")
        if self._link is None or not self._link.is_usable():
            try:
                secured = await self._connect()
            except OSError as error:
                raise PeerUnavailableError(f"{self.peer}: {_in_words(error)}") from error
            self._retired, self._link = self._link, _Link(secured, self.peer, self._max_response)
            if self._is_closed:  # meanwhile
                self._link.close("the client was closed")
                raise self._link.unavailable()
        return self._link

    async def _connect(self) -> SecuredConnection:
        """Raises OSError."""
        connection = await self._network.connect(*self._address)
        if self._secure is None:
            return SecuredConnection(connection)
        try:
            return await self._secure(connection, self._address[0])
        except BaseException:
            connection.close()
            raise


class _Limit:
    """The time that a request may take: the connection ends with it, and so does the wait of every caller."""

    __slots__ = ("_link", "_why", "is_waiting")

    def __init__(self, link: _Link, why: Callable[[], str]) -> None:
        self._link = link
        self._why = why
        self.is_waiting = True

    def cancel(self) -> None:
        self._link.close(self._why())


@dataclasses.dataclass(eq=False, slots=True)
class _InFlightRequest:
    """A request whose response has not been read."""

    correlation_id: int
    api_key: ApiKey
    version: int
    turn: trio.Event = dataclasses.field(default_factory=trio.Event)
    """Set when its caller is to read, or when the connection has ended."""
    is_given_up: bool = False
    """Whether its caller has gone, so that the next one reads past its response."""


class _Link:
    """One connection, from its start to its end, and the requests in flight on it, in the order of their answers.

    Of those that were not given up the first is its caller's to read; what was given up before it is read past. Given up
    requests alone don't stay: with no request left that waits for answers the connection is closed. So it is, after the last
    answer, once a session at the peer is about to end (KIP-368): the next connection begins a new one.
    """

    def __init__(self, secured: SecuredConnection, peer: str, max_response: int) -> None:
        self.versions: dict[int, tuple[int, int]] | None = None
        """Lowest and highest version by API key, once the peer was asked."""
        self._connection, self._usable_until = secured
        self._peer = peer
        self._frames = _FrameReader(self._connection, max_response)
        self._in_flight: deque[_InFlightRequest] = deque()
        self._correlation_id = 0
        self._closed_because: str | None = None

    def is_usable(self) -> bool:
        """Whether a request can be sent: not after the peer has closed, or sent bytes unasked, while the link was idle."""
        if self._closed_because is None and not self._in_flight and self._frames.has_more():
            self.close("the peer closed the connection")
        if self._closed_because is None and self._is_session_over():
            if not self._in_flight:
                self._end_session()
            return False
        return self._closed_because is None

    def _is_session_over(self) -> bool:
        return self._usable_until < math.inf and trio.current_time() >= self._usable_until

    def _end_session(self) -> None:
        self.close("the session at the peer was about to end")

    async def write(self, request: Message, version: int, client_id: str) -> _InFlightRequest:
        """Send a request; one caller at a time. Raises PeerUnavailableError, ValueError."""
        self._correlation_id = self._correlation_id % _HIGHEST_CORRELATION_ID + 1
        header = encode_request_header(request.api_key, version, self._correlation_id, client_id)
        body = encode(request, version)
        waiting = _InFlightRequest(self._correlation_id, ApiKey(request.api_key), version)
        self._in_flight.append(waiting)
        self._pass_turn()
        try:
            await self._connection.send([_SIZE.pack(len(header) + total_size(body)) + header, *body])
        except OSError as error:
            self.close(_in_words(error))
            raise self.unavailable() from error
        except BaseException:
            self.close("a request was cancelled before it was written to its end")
            raise
        return waiting

    async def receive(self, waiting: _InFlightRequest) -> Any:
        """The answer to what ``write`` sent. Raises PeerUnavailableError, MalformedResponseError."""
        try:
            if not waiting.turn.is_set():
                await waiting.turn.wait()
            if self._closed_because is not None:
                raise OSError(self._closed_because)
            while True:
                frame = await self._frames.read()
                if self._closed_because is not None:  # meanwhile; the frame had come before that
                    raise OSError(self._closed_because)
                answered = self._in_flight.popleft()
                correlation_id, start = decode_response_header(frame, answered.api_key, answered.version)
                if correlation_id != answered.correlation_id:
                    raise ProtocolError(f"answer {correlation_id} came where {answered.correlation_id} was due")
                if answered is waiting:
                    return decode(response_class(answered.api_key), answered.version, frame[start:])
        except OSError as error:
            self.close(_in_words(error))
            raise self.unavailable() from error
        except ProtocolError as error:
            self.close(f"it sent a malformed response: {error}")
            raise MalformedResponseError(f"{self._peer}: {error}") from error
        finally:
            waiting.is_given_up = True
            self._pass_turn()

    def _pass_turn(self) -> None:
        for waiting in self._in_flight:
            if not waiting.is_given_up:
                waiting.turn.set()
                return
        if self._in_flight:
            self.close("every caller has given up")
        elif self._is_session_over():
            self._end_session()

    def close(self, why: str) -> None:
        """End the connection, the first time; every caller in flight learns why."""
        if self._closed_because is None:
            self._closed_because = why
            self._connection.close()
            for waiting in self._in_flight:
                waiting.turn.set()
            self._in_flight.clear()

    def unavailable(self) -> PeerUnavailableError:
        """What a caller gets whose connection was closed."""
        return PeerUnavailableError(f"{self._peer}: {self._closed_because}")


class _FrameReader:
    """Frames of a connection, each in a buffer of its own. A read that was cancelled is taken up by the next one."""

    def __init__(self, connection: Connection, most: int) -> None:
        """``most`` is the size of the largest frame taken, in bytes."""
        self._connection = connection
        self._most = most
        # As large as the frame before suggests, so that mostly one call takes the size and all of the frame. At its front is the
        # size of the frame that it begins with, until that is known.
        self._buffer = memoryview(bytearray(_SMALL_BUFFER))
        self._received = 0  # so many bytes of the buffer are filled
        self._size: int | None = None  # of the frame, which then has the buffer to itself

    def has_more(self) -> bool:
        """Whether between two frames there is a byte, or the end of the stream; the byte is lost."""
        if self._received:
            return True
        try:
            return self._connection.receive_into(memoryview(bytearray(1))) != WOULD_BLOCK
        except OSError:
            return True

    async def read(self) -> memoryview:
        """The next frame, without its size. Raises OSError, also at the end of the stream, and ProtocolError."""
        if self._size is None and self._received < _SIZE.size:
            await self._connection.wait_readable()  # an answer is never there at once
        else:
            await trio.lowlevel.checkpoint()
        if self._size is None:
            await self._fill(_SIZE.size)
            (size,) = _SIZE.unpack_from(self._buffer)
            if not 0 <= size <= self._most:
                raise ProtocolError(f"a frame of {size} bytes, where {self._most} are the most")
            end = _SIZE.size + size
            if self._received >= end:
                frame = self._buffer[_SIZE.size : end]
                self._begin(size, self._buffer[end : self._received])
                return frame
            self._take_over(size)
        assert self._size is not None
        await self._fill(self._size)
        frame = self._buffer
        self._begin(self._size, b"")
        return frame

    def _take_over(self, size: int) -> None:
        """Move a frame that has not arrived in full to a buffer of just its size."""
        arrived = self._buffer[_SIZE.size : self._received]
        self._buffer = memoryview(bytearray(size))
        self._buffer[: len(arrived)] = arrived
        self._received, self._size = len(arrived), size

    def _begin(self, last_size: int, arrived: bytes | memoryview) -> None:
        """Be ready for the next frame, of which some bytes may have arrived."""
        likely = last_size + _SIZE.size if last_size < _LARGE_FRAME else _SMALL_BUFFER
        self._buffer = memoryview(bytearray(max(likely, _SMALL_BUFFER, len(arrived))))
        self._buffer[: len(arrived)] = arrived
        self._received, self._size = len(arrived), None

    async def _fill(self, wanted: int) -> None:
        """Return once so many bytes are in the buffer, or more."""
        while self._received < wanted:
            count = self._connection.receive_into(self._buffer[self._received :])
            if count == WOULD_BLOCK:
                await self._connection.wait_readable()
            elif count == 0:
                raise OSError("the peer closed the connection")
            else:
                self._received += count


async def _acquire(permit: trio.Semaphore | trio.StrictFIFOLock) -> None:
    """As ``permit.acquire()``, which lets every other task have its turn even where there is nothing to wait for."""
    try:
        permit.acquire_nowait()
    except trio.WouldBlock:
        await permit.acquire()


def _in_words(error: OSError) -> str:
    return error.strerror or str(error)
