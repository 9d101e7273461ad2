"""Controllers that are cut off: a cluster of KRaft in which every connection to a controller goes through a proxy.

Each controller has two listeners, CONTROLLER for the nodes of Apache Kafka and OTTLA for the brokers of Ottla, and advertises of
each the address of its proxy. A cut holds what has to pass the proxy: connections stay open, and nothing arrives, as with a
network that drops packets. A healed connection gets what was held. The proxies run in a thread of their own.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import trio

from ottla.compat_tests.quorum_cluster import QuorumCluster
from ottla.testing.held_port import HeldPort

from ...controller.helpers.tcp_proxy import TcpProxy, tcp_proxy
from .on_quorum import PROPERTIES, QuorumMixed

OTHER_CONTROLLERS, OTTLA_BROKERS = "CONTROLLER", "OTTLA"
"""Who reaches a controller at a listener."""
BOTH_SIDES = (OTHER_CONTROLLERS, OTTLA_BROKERS)
Door = tuple[int, str]
"""A controller's id, and a listener of it."""


class Proxies:
    """One for each of the ``targets``, which are host:port; ``running`` starts them."""

    def __init__(self, targets: Mapping[Door, str]) -> None:
        self._targets = targets
        self._ready: queue.SimpleQueue[trio.lowlevel.TrioToken] = queue.SimpleQueue()
        self._proxies: dict[Door, TcpProxy] = {}
        self._over = trio.Event()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=trio.run, args=(self._serve,), name="proxies", daemon=True)
        thread.start()
        self._token = self._ready.get(timeout=30)
        try:
            yield
        finally:
            trio.from_thread.run_sync(self._over.set, trio_token=self._token)
            thread.join()

    async def _serve(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for door, target in self._targets.items():
                self._proxies[door] = await stack.enter_async_context(tcp_proxy(target))
            self._ready.put(trio.lowlevel.current_trio_token())
            await self._over.wait()

    def address(self, door: Door) -> str:
        """host:port of the proxy."""
        return self._proxies[door].address

    def cut(self, controller: int, *listeners: str) -> None:
        for listener in listeners:
            trio.from_thread.run_sync(self._proxies[controller, listener].hold, trio_token=self._token)

    def heal(self) -> None:
        for proxy in self._proxies.values():
            trio.from_thread.run_sync(proxy.release, trio_token=self._token)


class CutMixed(QuorumMixed):
    """Three nodes of Apache Kafka and two brokers of Ottla; ``proxies`` are before the controllers."""

    def __init__(self, cluster: QuorumCluster, proxies: Proxies) -> None:
        super().__init__(cluster)
        self.proxies = proxies


@contextlib.contextmanager
def running_behind_proxies(folder: Path) -> Iterator[CutMixed]:
    """A context with a started cluster."""
    cluster = QuorumCluster(folder, 3, 2, properties=PROPERTIES)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(cluster))
        ports = {number: stack.enter_context(contextlib.closing(HeldPort())) for number in cluster.controllers}
        proxies = Proxies(_targets(cluster, ports))
        stack.enter_context(proxies.running())
        _configure(cluster, ports, proxies)
        cluster.start()
        yield CutMixed(cluster, proxies)


def _targets(cluster: QuorumCluster, ports: Mapping[int, HeldPort]) -> dict[Door, str]:
    targets = {(number, OTHER_CONTROLLERS): node.controller_address for number, node in cluster.controllers.items()}
    return targets | {(number, OTTLA_BROKERS): f"127.0.0.1:{port.number}" for number, port in ports.items()}


def _configure(cluster: QuorumCluster, ports: Mapping[int, HeldPort], proxies: Proxies) -> None:
    for number in cluster.ids:
        node = cluster.node(number)
        is_controller = number in cluster.controllers
        listener = OTHER_CONTROLLERS if is_controller else OTTLA_BROKERS
        voters = [f"{each}@{proxies.address((each, listener))}" for each in cluster.controllers]
        node.properties["controller.quorum.voters"] = ",".join(voters)
        node.properties["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OTTLA:PLAINTEXT"
        node.properties["controller.listener.names"] = ",".join(BOTH_SIDES) if is_controller else OTTLA_BROKERS
        if is_controller:
            own = _targets(cluster, ports)
            node.properties["listeners"] = _listeners(node.address, {each: own[number, each] for each in BOTH_SIDES})
            advertised = {each: proxies.address((number, each)) for each in BOTH_SIDES}
            node.properties["advertised.listeners"] = _listeners(node.address, advertised)


def _listeners(broker: str, controllers: Mapping[str, str]) -> str:
    return ",".join([f"PLAINTEXT://{broker}", *(f"{name}://{address}" for name, address in controllers.items())])
