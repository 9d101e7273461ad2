"""A listener on an address of its own and on one shared by several processes of a machine (SO_REUSEPORT).

The kernel hands each connection to the shared address to one of the processes (SO_REUSEPORT), and none to a process that is gone.
"""

from __future__ import annotations

from collections import deque

import trio

from .network import Connection, NetworkListener
from .tcp import TcpNetwork


class SharedListener:
    """``own``, where the process is reached by itself, and ``shared``. A ``NetworkListener``."""

    def __init__(self, own: NetworkListener, shared: NetworkListener) -> None:
        self._own = own
        self._shared = shared
        self._accepted: deque[Connection] = deque()

    @property
    def host(self) -> str:
        return self._own.host

    @property
    def port(self) -> int:
        return self._own.port

    async def accept(self) -> Connection:
        """Raises what either of them raises."""
        failures: list[Exception] = []
        while not self._accepted:
            async with trio.open_nursery() as nursery:

                async def take(listener: NetworkListener, scope: trio.CancelScope = nursery.cancel_scope) -> None:
                    try:
                        self._accepted.append(await listener.accept())
                    except Exception as error:
                        failures.append(error)  # as it is: out of the nursery it would come in a group
                    scope.cancel()

                nursery.start_soon(take, self._own)
                nursery.start_soon(take, self._shared)
            if failures and not self._accepted:
                raise failures[0]
        return self._accepted.popleft()

    def close(self) -> None:
        self._own.close()
        self._shared.close()


class MachineNetwork:
    """``network`` where who listens at ``own_port`` listens at ``shared`` as well, with other processes. A ``Network``."""

    def __init__(self, network: TcpNetwork, own_port: int, shared: tuple[str, int]) -> None:
        self._network = network
        self._own_port = own_port
        self._shared = shared

    async def listen(self, host: str, port: int, backlog: int) -> NetworkListener:
        own = await self._network.listen(host, port, backlog)
        if port != self._own_port:
            return own
        try:
            shared = await self._network.listen(*self._shared, backlog, is_shared=True)
        except OSError:
            own.close()
            raise
        return SharedListener(own, shared)

    async def connect(self, host: str, port: int) -> Connection:
        return await self._network.connect(host, port)
