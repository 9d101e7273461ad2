"""The network between the brokers of a cluster in one process, with faults.

Its faults are states in ``ClusterNetwork``: pairs of brokers that are cut off from each other, brokers that are isolated
(from every other broker and the controller), brokers that are paused (nothing passes to or from them, clients included). Each
broker has a ``BrokerNetwork`` over real sockets; the controller is reached in memory, at an address that is no host's.

Connections are not broken by a fault but held: as behind a firewall that drops packets, what is sent waits, what has arrived is
not read, and connecting waits. When the fault ends all of it goes on, unless one side has timed out. Between two brokers the
side that has connected holds the connection, because it knows which broker is at the other end.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

import trio

from ..base.memory_network import MemoryNetwork
from ..base.network import WOULD_BLOCK, Connection, Network, NetworkListener, Part, release

CONTROLLER_ID = 0
"""The node id of a cluster's controller; those of the brokers begin at 1."""
CONTROLLER_ADDRESS = ("controller", 9093)
_BYTES_ON_THE_WAY = 1 << 20


class ClusterNetwork:
    """The network among brokers, which decides who reaches whom."""

    def __init__(self, broker_at: dict[int, int]) -> None:
        self.broker_at = broker_at
        """The brokers by the ports at which they listen."""
        self.of_controller = MemoryNetwork(_BYTES_ON_THE_WAY)
        """Where the controller listens, if there is one."""
        self._cuts: set[frozenset[int]] = set()
        self._isolated: set[int] = set()
        self._paused: set[int] = set()
        self._changed = trio.Event()

    def cut(self, one: int, other: int) -> None:
        self._cuts.add(frozenset((one, other)))

    def isolate(self, broker: int) -> None:
        self._isolated.add(broker)

    def heal(self) -> None:
        """End every ``cut`` and ``isolate``; a paused broker stays paused."""
        self._cuts.clear()
        self._isolated.clear()
        self.notify()

    def pause(self, broker: int) -> None:
        self._paused.add(broker)

    def resume(self, broker: int) -> None:
        self._paused.discard(broker)
        self.notify()

    def is_isolated(self, broker: int) -> bool:
        return broker in self._isolated

    def is_paused(self, broker: int) -> bool:
        return broker in self._paused

    def is_held(self, broker: int, peer: int | None) -> bool:
        """Whether a connection of ``broker`` is on hold; ``peer``: the node that it has connected to, if it is one."""
        if broker in self._paused:
            return True
        if peer is None or peer == broker:
            return False
        return bool(self._isolated & {broker, peer}) or frozenset((broker, peer)) in self._cuts

    def notify(self) -> None:
        """Wake the tasks that wait for a change: a fault has ended, or a connection was closed."""
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def wait_change(self) -> None:
        await self._changed.wait()


class BrokerNetwork:
    """The ``Network`` of one broker, from its start to its end."""

    def __init__(self, cluster: ClusterNetwork, broker: int, sockets: Network) -> None:
        self.cluster = cluster
        self.broker = broker
        self._sockets = sockets
        self._open: set[NetworkListener | HeldConnection] = set()
        self._is_closed = False

    async def listen(self, host: str, port: int, backlog: int) -> NetworkListener:
        listener = _Listener(await self._sockets.listen(host, port, backlog), self)
        self._open.add(listener)
        return listener

    async def connect(self, host: str, port: int) -> Connection:
        sockets, peer = self._sockets, self.cluster.broker_at.get(port)
        if (host, port) == CONTROLLER_ADDRESS:
            sockets, peer = self.cluster.of_controller, CONTROLLER_ID
        while self.cluster.is_held(self.broker, peer):
            await self.cluster.wait_change()
        return self.opened(await sockets.connect(host, port), peer)

    def opened(self, connection: Connection, peer: int | None) -> HeldConnection:
        """Keep a connection until it is closed. Raises OSError when everything is closed."""
        if self._is_closed:
            connection.close()
            raise OSError(errno.ENETDOWN, "the broker is dead")
        held = HeldConnection(connection, self, peer)
        self._open.add(held)
        return held

    def closed(self, each: NetworkListener | HeldConnection) -> None:
        """Forget what its user has closed."""
        self._open.discard(each)
        self.cluster.notify()

    def close_all(self) -> None:
        """Close every socket, as the kernel does when a process is killed; no more can be opened."""
        self._is_closed = True
        for each in list(self._open):
            each.close()


class HeldConnection:
    """A ``Connection`` that may be on hold."""

    def __init__(self, connection: Connection, network: BrokerNetwork, peer: int | None) -> None:
        self.peer = connection.peer
        self.descriptor = connection.descriptor
        self._connection = connection
        self._network = network
        self._peer_node = peer
        self._is_closed = False

    @property
    def _is_held(self) -> bool:
        return self._network.cluster.is_held(self._network.broker, self._peer_node)

    def receive_into(self, buffer: memoryview) -> int:
        if self._is_held and not self._is_closed:
            return WOULD_BLOCK
        return self._connection.receive_into(buffer)

    async def wait_readable(self) -> None:
        while True:
            await self._wait_free()
            await self._connection.wait_readable()
            if not self._is_held:  # a fault may have begun meanwhile: then the bytes stay in the socket
                return

    async def send(self, parts: Sequence[Part]) -> None:
        try:
            await self._wait_free()
        except BaseException:
            release(parts)
            raise
        await self._connection.send(parts)

    def send_now(self, data: bytes) -> int:
        return 0 if self._is_held or self._is_closed else self._connection.send_now(data)

    async def _wait_free(self) -> None:
        while self._is_held:
            if self._is_closed:
                raise OSError(errno.EBADF, "connection is closed")
            await self._network.cluster.wait_change()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._connection.close()
            self._network.closed(self)


class _Listener:
    """A ``NetworkListener`` whose connections may be on hold; the kernel accepts for a broker that is paused, too."""

    def __init__(self, listener: NetworkListener, network: BrokerNetwork) -> None:
        self.host = listener.host
        self.port = listener.port
        self._listener = listener
        self._network = network

    async def accept(self) -> Connection:
        return self._network.opened(await self._listener.accept(), None)

    def close(self) -> None:
        self._listener.close()
        self._network.closed(self)
