"""One client's connection: reads whole frames, handles them in order, writes the responses.

Invariants:

- Requests of a connection are handled one at a time and answered in order; while one is handled nothing is read, so that
  a client cannot send more than the broker handles, as in Kafka.
- Every complete frame in the buffer is handled before one write; a handler that is about to wait has the responses made
  so far sent first (``flush``), and so does a request that ends the connection.
- A Produce that has to wait for replicas is left pending while there are more of them in the buffer: all are appended, about 128
  or 1 MiB at most, and then waited for together. Any other request is handled when they are answered: all take effect in order.
- Only its own task writes to a connection, with one exception: the step that ends the wait of its request sends the response, if
  that is small and there is room (``_send_at_once``). What there is no room for, its task sends before anything else.
- The buffer takes memory as bytes arrive, never by the size a frame announces, and shrinks when the connection goes quiet. A
  view into it lives no longer than its request.
- A frame begins at the front of the buffer, and between there and ``_start`` are whole frames: the last requests, for the
  flight recorder.
- After 32 requests or 1 ms without a wait the loop goes to other tasks, also where more requests are in the buffer: one that was
  made large for a large request holds a hundred thousand small ones.
- A connection whose last request was one to the coordinator of a group waits for its turn of the loop before it reads the next
  one (``base.loop_turns``), because members come by the hundred: a Produce on another connection does not wait for all of them.
- While a ``Gate`` is closed it is given every frame, and has a limit of its own for their size. The frames of an authentication
  are wiped out of the buffer when they are handled, and are not recorded.
- After the response to a request that was throttled nothing is handled or read for that long (KIP-219); a stop ends that.

A frame is a 4-byte big-endian size and so many bytes (https://kafka.apache.org/protocol#protocol_common).
"""

from __future__ import annotations

import logging
import struct
from mmap import mmap
from typing import Any

import trio

from ...base.errors import KafkaError, ProtocolError
from ...base.network import WOULD_BLOCK, Connection, Part, release, size_of, total_size
from ...base.presence import Presence
from ...base.tcp import copy_of
from ...base.wording import shortened
from ...handlers.activity import Activity
from ...handlers.call import AnswersLost, CloseConnection, NewCall, NodeCall
from ...handlers.connection_context import ConnectionContext
from ...handlers.node_services import NodeServices
from ...wire.api_keys import ApiKey
from ..settings import BrokerSettings
from .dispatch import Answer, PendingAnswer, answer, framed
from .flight_recorder import MOST_KEPT
from .foreign_protocols import foreign_protocol
from .gate import AuthenticationFailedError, Gate
from .large_requests import LARGE_FRAME, refuse_without_rights
from .monitor import Ending, Monitor

logger = logging.getLogger(__name__)

SMALL_BUFFER = 16 * 1024
_LARGE_BUFFER = 4 << 20
_REQUESTS_PER_TURN = 32
_REQUESTS_BETWEEN_LOOKS = 4
"""So seldom is the clock read while small requests are handled."""
_MOST_SENT_EARLY = 64 << 10
_MOST_PENDING = 128
_MOST_PENDING_BYTES = 1 << 20
_TURN_SECONDS = 0.001
_GROUP_TURN_SECONDS = 0.0005
_MAX_GATHERED_BYTES = 1 << 20
_LAST_WORD_SECONDS = 0.5
"""How long a client that was refused may take to close the connection itself."""
_SIZE = struct.Struct(">i")
_PRODUCE = struct.pack(">h", ApiKey.PRODUCE)
_OF_GROUPS = frozenset(
    (
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
    )
)
_FULL_ENOUGH = SMALL_BUFFER // 2


class ClientConnection:
    """Serves one connection until either side ends it.

    ``max_request`` is the largest frame taken, in bytes; ``gate`` authenticates the client first, None on a listener without
    SASL.
    """

    def __init__(
        self,
        connection: Connection,
        context: ConnectionContext,
        services: NodeServices,
        new_call: NewCall,
        max_request: int,
        monitor: Monitor,
        gate: Gate | None = None,
    ) -> None:
        self._connection = connection
        self._context = context
        self._monitor = monitor
        self._max_request = max_request
        self._gate = gate
        self._frame_limit = max_request
        self.unknown_since: float | None = None
        """Trio's time when the authentication began that is going on; None while there is none."""
        if gate is not None and gate.frame_limit is not None:
            self._frame_limit = gate.frame_limit
            self.unknown_since = trio.current_time()
        self._call = new_call(context, self._flush, monitor.observer)
        if monitor.keeps_activity:
            self._call.activity = Activity()
        self._elapsed = services.clock.elapsed
        self._turns = services.group_turns
        self._responses: list[Part] = []
        self._response_bytes = 0
        self._pending: list[PendingAnswer | list[Part]] = []  # and the answers that go after one of them
        self._pending_bytes = 0  # of these requests
        self._awaited: list[PendingAnswer | list[Part]] = []  # those of them that are waited for now
        self._is_sending = False
        self._sent_early = 0  # so many of these, from the first one on
        self._call.may_suspend = True
        self._call.send_early = self._send_early
        early = self._early = self._call.early_responses = services.early_responses
        self._call.note_ready = lambda: early.append(self._send_pending)
        self._buffer = memoryview(bytearray(SMALL_BUFFER))
        self._start = 0  # first byte not handled yet
        self._end = 0  # first byte not received yet
        self._earlier = b""  # what was in the buffer before its front was used again
        self._drained = False  # whether the last bytes read were all there were
        self._is_turn_over = False  # though there may be whole frames yet
        self._stopping = False
        self._pausing: trio.CancelScope | None = None
        self.busy = False
        """Whether a request is being handled, and not waiting for the client to read responses: a stop waits for its end."""
        self.presence = Presence()
        """Is told when the other side has gone (``peer_watch``)."""
        self.opened_at = trio.current_time()
        """By trio's clock."""
        self.last_active = self.opened_at
        """When the last bytes were read, by trio's clock."""

    @property
    def context(self) -> ConnectionContext:
        return self._context

    @property
    def call(self) -> NodeCall:
        """The last request, with what is known of the client."""
        return self._call

    @property
    def peer(self) -> str:
        return self._context.peer

    @property
    def listener(self) -> str:
        return self._context.listener

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    @property
    def host(self) -> str:
        """The peer's address without its port, which differs with each connection of a client."""
        return self._context.host

    async def serve(self) -> None:
        """Read and answer until the end; closes the connection. Raises nothing but cancellation."""
        self.presence.begin()
        try:
            await self._serve()
        except ProtocolError as error:
            self._monitor.errors[Ending.PROTOCOL] += 1
            await self._record(error)
        except CloseConnection as error:
            self._monitor.errors[Ending.REFUSED_REQUEST] += 1
            self._say(str(error))
        except AuthenticationFailedError as error:
            self._monitor.errors[Ending.AUTHENTICATION] += 1
            self._say(str(error))
        except OSError as error:
            self._monitor.errors[Ending.NETWORK] += 1
            logger.debug("connection from %s ended: %s", self.peer, error)
        except KafkaError as error:
            # Raised while sending: the log was truncated, or its folder failed, after the response was made.
            self._monitor.errors[Ending.STORAGE] += 1
            if self._monitor.closings.is_first(self.host, error.code.name, logging.INFO):
                logger.info("closing connection from %s: %s", self.peer, error)
        except Exception:
            self._monitor.errors[Ending.BUG] += 1
            logger.exception("closing connection from %s: its response could not be created or sent", self.peer)
        finally:
            self._drop_responses()
            self._connection.close()
            self._buffer = memoryview(b"")  # a large one would live until the next garbage collection

    def _say(self, why: str) -> None:
        """Log why the connection ends. The reason is shortened: it may contain text that the client sent."""
        why = shortened(why)
        if self._monitor.closings.is_first(self.host, why, logging.INFO):
            logger.info("closing connection from %s: %s", self.peer, why)

    def stop(self) -> None:
        """Finish the request that is being handled, then end; at once when there is none."""
        self._stopping = True
        if self._pausing is not None:
            self._pausing.cancel()
        elif not self.busy:
            self._connection.close()

    def disconnect(self) -> None:
        """End it at once, as an administrator has asked; what is being handled goes on and has no answer."""
        logger.info("closing connection from %s: an administrator has asked for it", self.peer)
        self._stopping = True
        if self._pausing is not None:
            self._pausing.cancel()
        self._connection.close()

    def shrink(self) -> None:
        """Replace a large, empty buffer by a small one; called for connections that went quiet."""
        if not self.busy and self._start == self._end and len(self._buffer) > SMALL_BUFFER:
            self._buffer = memoryview(bytearray(SMALL_BUFFER))
            self._start = self._end = 0
        self._earlier = b""

    async def _record(self, error: ProtocolError) -> None:
        """Log why the connection ends, and record its last requests; not again for the same host and reason."""
        self._drop_responses()
        self._connection.close()
        start = bytes(self._buffer[self._start : min(self._end, self._start + _SIZE.size)])
        why = foreign_protocol(start, self._context.listener, self._context.security_protocol) or shortened(str(error))
        if not self._monitor.closings.is_first(self.host, why):
            return
        path = None
        if self._monitor.recorder is not None:
            is_secret = self.unknown_since is not None
            received = bytes(self._buffer[: self._start if is_secret else self._frame_at_fault_end()])
            path = await self._monitor.recorder.record(self.peer, self._context.listener, why, self._earlier, received)
        where = "" if path is None else f"; its last requests are in {path}"
        logger.warning("closing connection from %s: %s%s", self.peer, why, where)

    def _frame_at_fault_end(self) -> int:
        """The frame at ``_start`` could not be read; where it ends, as far as it was received."""
        if self._end - self._start < _SIZE.size:
            return self._end
        size = _SIZE.unpack_from(self._buffer, self._start)[0]
        return min(self._start + _SIZE.size + size, self._end) if size >= 0 else self._end

    async def _serve(self) -> None:
        elapsed = self._elapsed
        turn_started = elapsed()
        handled = 0
        call, turns = self._call, self._turns
        group_turn = -1
        while not self._stopping:
            handled_before, began = handled, turn_started if handled == 0 else elapsed()
            try:
                handled += await self._handle_frames(turn_started)
            except (ProtocolError, CloseConnection):
                await self._flush()  # the requests before the bad one are answered
                raise
            except AuthenticationFailedError as error:
                await self._refuse(error.answer)
                raise
            except AnswersLost as lost:
                raise lost.error from None
            if self._responses:
                await self._flush()
            is_of_group = self._is_of_group
            if is_of_group and handled > handled_before:
                turns.note(group_turn, elapsed() - began)
            if call.throttle_ms:
                await self._mute()
                turn_started, handled = elapsed(), 0
                call.start_turn(turn_started)
                continue
            if self._stopping:
                return
            if self._is_turn_over:
                await self._give_turn()
                turn_started, handled, group_turn = elapsed(), 0, turns.number
                call.start_turn(turn_started)
                continue
            # There was one request and nothing after it: the client waits for its response, so reading would find nothing.
            if handled == 1 and self._drained:
                received = WOULD_BLOCK
            else:
                if is_of_group and group_turn != turns.number:
                    if await turns.wait():
                        turn_started, handled = elapsed(), 0
                    group_turn = turns.number
                received = self._receive()
            if received == 0:
                return
            if received == WOULD_BLOCK:
                await self._connection.wait_readable()
                turn_started, handled = elapsed(), 0
            else:
                now = elapsed()
                if handled >= _REQUESTS_PER_TURN or now - turn_started > _TURN_SECONDS:
                    await self._give_turn()
                    turn_started = now = elapsed()
                    handled, group_turn = 0, turns.number
                call.start_turn(now)

    @property
    def _is_of_group(self) -> bool:
        """Whether the last request was one to the coordinator of a group."""
        return self._call.key >> 16 in _OF_GROUPS

    async def _give_turn(self) -> None:
        """Let other tasks run before the next request."""
        is_of_group = self._is_of_group
        if is_of_group and await self._turns.wait():
            return
        await trio.lowlevel.checkpoint()
        if is_of_group:
            await self._turns.wait()

    async def _handle_frames(self, turn_started: float) -> int:
        """Handle the complete frames in the buffer, as far as the turn lasts; how many there were."""
        count = 0
        self._is_turn_over = False
        call, gate = self._call, self._gate
        limit, looks = _TURN_SECONDS, _REQUESTS_BETWEEN_LOOKS
        if self._is_of_group:
            limit, looks = _GROUP_TURN_SECONDS, 1
        try:
            while not self._stopping and not call.throttle_ms:
                if self._end - self._start < _SIZE.size:
                    if self._read_for_pending():
                        continue
                    break
                size = _SIZE.unpack_from(self._buffer, self._start)[0]
                if not 0 <= size <= self._frame_limit:
                    raise ProtocolError(self._too_large(size))
                frame_start = self._start + 4
                frame_end = frame_start + size
                if frame_end > self._end:
                    # The whole frame may be a Produce that goes with those pending: waiting for them now would part the two.
                    if size < _MOST_PENDING_BYTES and self._read_for_pending():
                        continue
                    if size > LARGE_FRAME and self._end >= frame_start + 4 and (gate is None or gate.is_open):
                        refuse_without_rights(call, self._buffer[frame_start : self._end], size)
                    break
                if self._pending and self._buffer[frame_start:frame_end][:2] != _PRODUCE:
                    await self._finish_pending()
                self.busy = True
                frame = self._buffer[frame_start:frame_end]
                parts = await (answer(call, frame) if gate is None or gate.is_open else self._pass(gate, frame))
                self.busy = False
                self._start = frame_end
                count += 1
                if self._early:
                    call.respond_early()
                if parts is None:
                    pass
                elif self._pending or isinstance(parts, PendingAnswer):
                    # Responses go in the order of the requests, so one that is ready waits behind those that are not.
                    self._pending.append(parts)
                    self._pending_bytes += size
                else:
                    self._responses += parts
                    self._response_bytes += size_of(parts[0]) if len(parts) == 1 else total_size(parts)
                    if self._response_bytes > _MAX_GATHERED_BYTES:
                        call.report_batch()
                        await self._flush()
                        call.start_turn(self._elapsed())
                if not count % looks and self._elapsed() - turn_started > limit:
                    if not 0 < len(self._pending) < _MOST_PENDING:
                        self._is_turn_over = True
                        break
                    # The turn does not end while requests are pending, because its end waits for all of them.
                    await trio.lowlevel.checkpoint()
                    turn_started = self._elapsed()
            await self._finish_pending()
        except (ProtocolError, CloseConnection, AuthenticationFailedError):
            await self._finish_pending()  # those before the one at fault are answered
            raise
        finally:
            self.busy = False  # after a refusal only the response that says so is left, and a stop need not wait for it
            call.report_batch()
        return count

    def _read_for_pending(self) -> bool:
        """Read more where a request is pending, and there may be others to go with it; returns whether there was something."""
        if not self._pending or self._drained or len(self._pending) >= _MOST_PENDING:
            return False
        return self._pending_bytes < _MOST_PENDING_BYTES and self._receive() > 0

    async def _finish_pending(self) -> None:
        """Wait for the answers that are pending; they are sent with what is sent next, or before a wait."""
        if not self._pending:
            return
        self._awaited, self._pending, self._pending_bytes = self._pending, [], 0
        self.busy = True
        while self._awaited:
            each = self._awaited[0]
            if isinstance(each, PendingAnswer):
                if self._responses and not each.is_ready:
                    await self._flush()
                each = await each.parts()
            del self._awaited[0]
            # The first ``_sent_early`` were sent while this task waited: they are reported here, and must not go out again.
            if self._sent_early:
                self._sent_early -= 1
            else:
                self._responses += each
                self._response_bytes += total_size(each)
        self.busy = False

    def _send_pending(self) -> None:
        """Answer what is waited for and ready, in the step that makes it so; the task goes on when it has its turn."""
        if self._sent_early:
            return
        parts: list[Part] = []
        count = 0
        for each in self._awaited:
            ready = each.parts_now() if isinstance(each, PendingAnswer) else each
            if ready is None:
                break
            parts += ready
            count += 1
        if parts and self._send_at_once(parts):
            self._sent_early = count

    def _send_early(self, response: Any) -> bool:
        """Send the response to the request whose handler waits, if it is small and there is room for it; whether it was sent."""
        call = self._call
        return self._send_at_once(
            framed(call.route.encode_response_header(call.correlation_id), call.version, response)
        )

    def _send_at_once(self, parts: list[Part]) -> bool:
        """Send parts without waiting, or leave them as they are, when it returns False."""
        # Bytes that are about to be sent, or half sent, come first: these would stand in the middle of another response.
        if self._responses or self._is_sending or self._stopping or total_size(parts) > _MOST_SENT_EARLY:
            return False
        pieces = []
        for part in parts:
            piece = part if isinstance(part, bytes | bytearray | memoryview) else copy_of(part)
            if piece is None:
                return False
            pieces.append(piece)
        data = b"".join(pieces)
        try:
            sent = self._connection.send_now(data)
        except OSError:
            return False  # its task will find out
        if not sent:
            return False
        release(parts)
        if sent < len(data):
            self._responses.append(data[sent:])
        return True

    async def _pass(self, gate: Gate, frame: memoryview) -> Answer:
        """Have the gate handle a frame, and take over the size limit that it has for the next one."""
        is_secret = gate.frame_limit is not None
        try:
            return await gate.take(self._call, frame)
        finally:
            if is_secret:
                frame[:] = bytes(len(frame))
            if gate.frame_limit is None:
                self._frame_limit, self.unknown_since = self._max_request, None
            else:
                self._frame_limit = gate.frame_limit
                if self.unknown_since is None:
                    self.unknown_since = trio.current_time()

    def _too_large(self, size: int) -> str:
        if self._frame_limit < self._max_request:
            return (
                f"a frame of {size} bytes before authentication (sasl.server.max.receive.size is {self._frame_limit})"
            )
        return f"a frame of {size} bytes (socket.request.max.bytes is {self._max_request})"

    async def _refuse(self, answer: list[Part]) -> None:
        """Answer the earlier requests and then, after the delay that slows down guessing, the failed authentication."""
        await self._flush()
        settings = self._call.node.config.settings(BrokerSettings)
        await self._pause(settings.connection_failed_authentication_delay_ms / 1000)
        if answer:
            await self._connection.send(answer)
            if not self._stopping:
                # If the response and the end of the connection arrive together, kafka-python notices the end only.
                with trio.move_on_after(_LAST_WORD_SECONDS) as self._pausing:
                    await self._connection.wait_readable()
                self._pausing = None

    async def _mute(self) -> None:
        """Read nothing for as long as the last answer told the client to wait (KIP-219)."""
        throttle_ms, self._call.throttle_ms = self._call.throttle_ms, 0
        await self._pause(throttle_ms / 1000)

    async def _pause(self, seconds: float) -> None:
        """Do nothing for so long, or until the connection is stopped."""
        if not self._stopping:
            with trio.move_on_after(seconds) as self._pausing:
                await trio.sleep_forever()
            self._pausing = None

    def _receive(self) -> int:
        """Read what is there into the free end of the buffer, making room first."""
        if self._start == self._end:
            if self._end > _FULL_ENOUGH:
                self._keep(self._end)
                self._start = self._end = 0
        elif self._end == len(self._buffer):
            self._make_room()
        received = self._connection.receive_into(self._buffer[self._end :])
        if received > 0:
            self._end += received
            self._drained = self._end < len(self._buffer)
            self.last_active = trio.current_time()
        return received

    def _keep(self, end: int) -> None:
        """Keep for the flight recorder what is in the buffer before ``end``, because it is about to be overwritten."""
        self._earlier = bytes(self._buffer[: min(end, MOST_KEPT)])

    def _make_room(self) -> None:
        """Move the incomplete frame to the front; to a larger buffer where it does not fit: as large as it, or twice as large.

        Doubling a large one would copy and clear more megabytes each time than a step of the loop may. The pages of a mapped
        one are memory from the moment on that they are written.
        """
        if self._start:
            self._keep(self._start)
        waiting = self._end - self._start
        size = len(self._buffer)
        frame_size = _SIZE.size
        if waiting >= _SIZE.size:
            frame_size += _SIZE.unpack_from(self._buffer, self._start)[0]
        if frame_size <= size:
            target = self._buffer
        elif size < _LARGE_BUFFER or frame_size <= size * 2:
            target = memoryview(bytearray(min(frame_size, size * 2)))
        else:
            target = memoryview(mmap(-1, frame_size))
        target[:waiting] = self._buffer[self._start : self._end]
        self._buffer, self._start, self._end = target, 0, waiting

    async def _flush(self) -> None:
        """Send the responses made so far. A client that does not read them delays its own requests, but not a stop."""
        parts, self._responses, self._response_bytes = self._responses, [], 0
        if parts:
            # Not busy, so that a stop closes the connection: a client that reads nothing would otherwise hold it up.
            was_busy, self.busy = self.busy, False
            self._is_sending = True
            await self._connection.send(parts)
            self._is_sending = False
            self.busy = was_busy

    def _drop_responses(self) -> None:
        release(self._responses)
        self._responses = []
