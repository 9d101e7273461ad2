"""One simulated machine with one controller of a quorum: its starts and its crashes, and a disk whose fsync may be slow.

What a controller has on its disk outlives any loss of power, because Raft counts only what was flushed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

import trio

from ...controller.quorum.active.helpers.controller_server import ControllerQuorum, ControllerServer
from ..cluster.network import ClusterNetwork, Host
from ..faults import FaultyDisk
from ..machine import Machine
from ..run import Run

CONTROLLER_PORT = 9093
_FOLDER = "/controller"
_RESTART_SECONDS = (0.05, 0.5, 2.0, 5.0)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SlowWorkers:
    """No threads, and a call that waits for the disk first, for up to ``seconds``."""

    def __init__(self, rng: random.Random) -> None:
        self.seconds = 0.0
        self._rng = rng

    async def run(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        await trio.sleep(self._rng.uniform(0, self.seconds))
        return function(*args)


class ControllerPlace:
    """The surroundings of a controller's machine: its host in the network."""

    def __init__(self, network: ClusterNetwork, host: str) -> None:
        self.host = host
        self.network = Host(network, host)
        self._network = network

    def home(self) -> None:
        self._network.wake_up(self.host)

    def gone(self, *, power_lost: bool) -> None:
        self._network.kill(self.host, silently=power_lost)


class _Started:
    """Tells of a start as a nursery is told of it."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def started(self, value: Any = None) -> None:
        self._call()


class ControllerMachine(Machine):
    """See the module. ``format`` of the quorum comes before the first start."""

    def __init__(self, run: Run, network: ClusterNetwork, quorum: ControllerQuorum, node_id: int) -> None:
        name = f"controller-{node_id}"
        self._home = ControllerPlace(network, name)
        super().__init__(run, name, {}, self._home, run.random_for(f"life {name}"), _RESTART_SECONDS)
        self._wish_to_stop = trio.Event()
        self.workers = SlowWorkers(run.random_for(f"workers {name}"))
        self.controller: ControllerServer = quorum.add(
            node_id, name, CONTROLLER_PORT, self._home.network, self.disk, _FOLDER, self.clock
        )
        self.controller.workers = self.workers

    async def _serve(self) -> None:
        self._home.home()
        self._wish_to_stop = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_when_wished)
            await self.controller.live(_Started(self._is_ready))  # type: ignore[arg-type]
            nursery.cancel_scope.cancel()

    async def _stop_when_wished(self) -> None:
        await self._wish_to_stop.wait()
        await self.controller.stop()

    def stop_soon(self) -> None:
        """Stop the controller as SIGTERM does."""
        if self.ready.is_set():
            self.is_stopping = True
            self._wish_to_stop.set()

    async def replace_disk(self) -> None:
        """The machine dies, and comes back with an empty disk, as a controller that is not a voter."""
        self.is_held = True
        self.crash(power_lost=False)
        while self.is_serving:
            await trio.sleep(0.01)
        self.disk = FaultyDisk(self.clock.now_ms)
        self.controller.take_disk(self.disk)
        self.is_held = False
