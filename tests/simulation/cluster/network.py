"""A network of named hosts, in which any path from one host to another can be cut or slow, and a host can become silent.

It behaves like TCP: bytes that cannot pass are held, and arrive late when the path is open again, even those of a connection
that its sender has given up meanwhile; connecting to a host that cannot be reached waits. When a process dies its connections
are reset; a machine without power sends nothing, and resets them when it is back.
"""

from __future__ import annotations

import errno
import math
import random
from collections import deque
from collections.abc import Iterable, Sequence

import trio

from ottla.base.errors import KafkaError
from ottla.base.network import WOULD_BLOCK, Part, release, take_bytes

from ..determinism import SimulationClock

_BUFFER_BYTES = 1 << 16
_APART_SECONDS = 1e-7
_LOOK_SECONDS = 1.0
LATENCY_SECONDS = (0.0002, 0.002)


class Pipe:
    """One direction of a connection. Data can be read ``latency`` after it was put, in order, if the path is open."""

    def __init__(self, network: ClusterNetwork, source: str, target: str, rng: random.Random) -> None:
        """``rng`` is the pipe's own, because the seed does not determine in which order a broker closes its connections."""
        self.way = source, target
        self._rng = rng
        self.is_reset = False
        self.has_ended = False
        self.is_abandoned = False
        self.is_stalled = False
        """Whether nothing arrives although the path is open."""
        self._network = network
        self._clock = trio.lowlevel.current_clock()
        assert isinstance(self._clock, SimulationClock)
        self._now = self._clock.current_time
        self._on_the_way: deque[tuple[float, bytes | None]] = deque()
        self._held_bytes = 0
        self._arrived = bytearray()
        self._resets_at = math.inf
        self._last = 0.0
        self._reader: trio.Event | None = None
        self._writer: trio.Event | None = None

    @property
    def is_full(self) -> bool:
        return self._held_bytes >= _BUFFER_BYTES or self._network.is_choked(*self.way)

    def put(self, data: bytes | None) -> None:
        """Send bytes, or the end of the stream; they are lost if there is no reader."""
        if self.is_abandoned:
            return
        self._held_bytes += len(data or b"")
        arrival = self._arrival()
        self._on_the_way.append((arrival, data))
        self._clock.call_at(arrival, self.settle)

    def reset(self) -> None:
        """The sender is gone: data in transit is lost, and the receiver learns of it."""
        self._on_the_way.clear()
        arrival = self._arrival()
        if arrival < self._resets_at:
            self._resets_at = arrival
            self._clock.call_at(arrival, self.settle)
        self._wake_writer()

    def abandon(self) -> None:
        """The receiver is gone; the sender does not know that."""
        self.is_abandoned = True
        self._on_the_way.clear()
        self._arrived.clear()
        self._held_bytes = 0
        self._wake_reader()
        self._wake_writer()

    def take(self, buffer: memoryview) -> int:
        """As ``Connection.receive_into``. Raises OSError."""
        if self.is_reset or self.is_abandoned:
            raise OSError(errno.ECONNRESET, "connection reset")
        if not self._arrived:
            return 0 if self.has_ended else WOULD_BLOCK
        count = min(len(buffer), len(self._arrived))
        buffer[:count] = self._arrived[:count]
        del self._arrived[:count]
        self._held_bytes -= count
        self._wake_writer()
        return count

    @property
    def _is_readable(self) -> bool:
        return bool(self.is_reset or self.is_abandoned or self._arrived or self.has_ended)

    async def wait_readable(self) -> None:
        """One reader at a time."""
        if self._is_readable:
            await trio.lowlevel.checkpoint()
            if self._is_readable:
                return
        while True:
            self._reader = trio.Event()
            await self._reader.wait()
            if self._is_readable:
                return

    async def wait_changed(self, seconds: float) -> None:
        """Wait until there may be room, at most this long; one writer at a time."""
        self._writer = trio.Event()
        with trio.move_on_after(seconds):
            await self._writer.wait()

    def wake(self) -> None:
        """Called when the state of the path has changed; it may change again at the same time."""
        self._clock.call_at(self._now(), self.settle)
        self._wake_writer()

    def _arrival(self) -> float:
        self._last = max(self._now() + self._network.latency(self.way, self._rng), self._last + _APART_SECONDS)
        return self._last

    def settle(self) -> None:
        """Deliver what has arrived by now: called when something arrives, and when the path may be open again."""
        is_held = self.is_stalled or self._network.is_cut(*self.way)
        if (self._on_the_way or self._resets_at < math.inf) and not is_held:
            now = self._now()
            while self._on_the_way and self._on_the_way[0][0] <= now:
                data = self._on_the_way.popleft()[1]
                if data is None:
                    self.has_ended = True
                else:
                    self._arrived += data
            if self._resets_at <= now:
                self.is_reset = True
            if self._is_readable:
                self._wake_reader()

    def _wake_reader(self) -> None:
        if self._reader is not None:
            self._reader.set()
            self._reader = None

    def _wake_writer(self) -> None:
        if self._writer is not None:
            self._writer.set()
            self._writer = None


class HostConnection:
    """One end of a connection."""

    def __init__(self, peer: str, incoming: Pipe, outgoing: Pipe) -> None:
        self.peer = peer
        self.descriptor = -1
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False

    @property
    def is_over(self) -> bool:
        return self._closed or self._incoming.is_reset or self._incoming.has_ended

    def receive_into(self, buffer: memoryview) -> int:
        if self._closed:
            raise OSError(errno.EBADF, "connection is closed")
        return self._incoming.take(buffer)

    async def wait_readable(self) -> None:
        await self._incoming.wait_readable()
        if self._closed:
            raise OSError(errno.EBADF, "connection is closed")

    async def send(self, parts: Sequence[Part]) -> None:
        remaining = deque(parts)
        try:
            while remaining:
                await self._wait_for_room()
                self._outgoing.put(take_bytes(remaining))
        except KafkaError as error:  # a file has become shorter, as ``sendfile`` would notice
            raise OSError(errno.EIO, str(error)) from error
        finally:
            release(remaining)

    def send_now(self, data: bytes) -> int:
        if self.is_over or self._outgoing.is_full:
            return 0
        self._outgoing.put(data)
        return len(data)

    async def _wait_for_room(self) -> None:
        """Return once something can be sent; bytes of files are read then, as by ``sendfile``."""
        pipe = self._outgoing
        while True:
            if self.is_over:
                raise OSError(errno.EPIPE, "the other side has closed")
            if not pipe.is_full:
                return
            await pipe.wait_changed(_LOOK_SECONDS)  # limited, to look at the other direction, too

    def cut(self) -> None:
        """Reset the connection at both ends."""
        self._outgoing.reset()
        self._incoming.abandon()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._outgoing.put(None)
            self._incoming.abandon()


class HostListener:
    """A bound address."""

    def __init__(self, network: ClusterNetwork, host: str, port: int, backlog: int) -> None:
        self.host = host
        self.port = port
        self._network = network
        self._send, self._receive = trio.open_memory_channel[HostConnection](backlog)

    async def accept(self) -> HostConnection:
        return await self._receive.receive()

    def offer(self, connection: HostConnection) -> bool:
        """Offer a connection to accept; False when too many are waiting."""
        try:
            self._send.send_nowait(connection)
        except trio.WouldBlock:
            return False
        return True

    def close(self) -> None:
        self._network.listeners.pop((self.host, self.port), None)
        try:
            while True:
                self._receive.receive_nowait().cut()
        except (trio.WouldBlock, trio.ClosedResourceError):
            pass
        self._receive.close()


class ClusterNetwork:
    """All hosts. ``trouble`` is the probability of a fault at a client's request."""

    def __init__(self, rng: random.Random) -> None:
        self.trouble = 0.0
        self.listeners: dict[tuple[str, int], HostListener] = {}
        self._rng = rng
        self._cuts: set[tuple[str, str]] = set()
        self._parted: set[tuple[str, str]] = set()
        self._silent: set[str] = set()
        self._slow: dict[tuple[str, str], float] = {}
        self._choked: set[tuple[str, str]] = set()
        self._pipes: list[Pipe] = []
        self._connections: dict[str, list[HostConnection]] = {}
        self._changed = trio.Event()

    def host(self, name: str) -> Host:
        """The network as one host sees it."""
        return Host(self, name)

    def latency(self, way: tuple[str, str], rng: random.Random) -> float:
        """The latency of data that is sent now, in seconds."""
        extra = self._slow.get(way)
        return rng.uniform(*LATENCY_SECONDS) + (rng.uniform(0, extra) if extra else 0.0)

    def is_cut(self, source: str, target: str) -> bool:
        is_cut = (source, target) in self._cuts or (source, target) in self._parted
        return is_cut or source in self._silent or target in self._silent

    def is_choked(self, source: str, target: str) -> bool:
        return (source, target) in self._choked

    # --- faults -------------------------------------------------------------------------------------------------------

    def cut(self, ways: Iterable[tuple[str, str]]) -> None:
        """Cut the path from the first host of each pair to the second."""
        self._cuts.update(ways)

    def part(self, ways: Iterable[tuple[str, str]]) -> None:
        """Cut these paths until ``join``, whatever ``heal`` does."""
        self._parted.update(ways)

    def join(self, ways: Iterable[tuple[str, str]]) -> None:
        """Open paths that ``part`` has cut."""
        self._parted.difference_update(ways)
        self._tell()

    def is_troubled(self, host: str) -> bool:
        """Whether a path from or to a host is cut, slow or choked."""
        stalled = [pipe.way for pipe in self._pipes if pipe.is_stalled]
        return any(
            host in way for ways in (self._cuts, self._parted, self._slow, self._choked, stalled) for way in ways
        )

    def slow_down(self, ways: Iterable[tuple[str, str]], seconds: float) -> None:
        """Delay everything from now on by up to ``seconds``."""
        self._slow.update(dict.fromkeys(ways, seconds))

    def choke(self, ways: Iterable[tuple[str, str]]) -> None:
        """From now on the buffers from the first host of each pair to the second are full.

        Data that was sent before arrives, and connections can be opened.
        """
        self._choked.update(ways)

    def stall(self, ways: Iterable[tuple[str, str]]) -> None:
        """Nothing arrives by the connections that there are, from the first host of each pair to the second. New ones work."""
        stalled = set(ways)
        for pipe in self._pipes:
            pipe.is_stalled = pipe.is_stalled or pipe.way in stalled

    def heal(self) -> None:
        """Open all paths, none of which is slow or choked any more; a machine without power stays silent."""
        for pipe in self._pipes:
            pipe.is_stalled = False
        self._cuts.clear()
        self._slow.clear()
        self._choked.clear()
        self._tell()

    def kill(self, name: str, *, silently: bool) -> None:
        """The process on a host has died. ``silently``: so has the machine, until ``wake_up``."""
        if silently:
            self._silent.add(name)
        for host, port in [address for address in self.listeners if address[0] == name]:
            self.listeners[host, port].close()
        for connection in self._connections.pop(name, ()):
            connection.cut()
        self._tell()

    def wake_up(self, name: str) -> None:
        """The machine has power again."""
        self._silent.discard(name)
        self._tell()

    def _tell(self) -> None:
        self._pipes = [pipe for pipe in self._pipes if not (pipe.is_reset or pipe.is_abandoned)]
        for pipe in self._pipes:
            pipe.wake()
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    # --- connections --------------------------------------------------------------------------------------------------

    async def connect(self, source: str, host: str, port: int) -> HostConnection:
        """Connect to a host; waits while the path there or back is cut. Raises OSError."""
        await trio.sleep(self.latency((source, host), self._rng) + self.latency((host, source), self._rng))
        while self.is_cut(source, host) or self.is_cut(host, source):
            await self._changed.wait()
        listener = self.listeners.get((host, port))
        if listener is None:
            raise OSError(errno.ECONNREFUSED, "connection refused")
        there, back = (Pipe(self, *way, random.Random(self._rng.random())) for way in ((source, host), (host, source)))
        near, far = HostConnection(f"{host}:{port}", back, there), HostConnection(f"{source}:1", there, back)
        if not listener.offer(far):
            raise OSError(errno.ECONNREFUSED, "too many connections wait")
        self._pipes += (there, back)
        for name, end in ((source, near), (host, far)):
            ends = self._connections.setdefault(name, [])
            ends[:] = [one for one in ends if not one.is_over]
            ends.append(end)
        return near


class Host:
    """The network as one host sees it; a ``Network``."""

    def __init__(self, network: ClusterNetwork, name: str) -> None:
        self._network = network
        self._name = name

    @property
    def trouble(self) -> float:
        return self._network.trouble

    async def listen(self, host: str, port: int, backlog: int) -> HostListener:
        if (host, port) in self._network.listeners:
            raise OSError(errno.EADDRINUSE, "address already in use")
        listener = self._network.listeners[host, port] = HostListener(self._network, host, port, backlog)
        return listener

    async def connect(self, host: str, port: int) -> HostConnection:
        return await self._network.connect(self._name, host, port)
