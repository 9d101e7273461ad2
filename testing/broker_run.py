"""One run of a broker, from its start to a stop or a kill, in a process that outlives it.

Everything here is called in the broker's loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

import trio

from ..base.config import Config
from ..base.seams import Clock, InlineWorkers, TrioWorkers
from ..broker.dependencies import tcp_network
from ..broker.server import BrokerFailedError, BrokerServer, StartError
from ..handlers.services import Services
from ..handlers.table import SERVED, ServedApis
from .cluster_network import BrokerNetwork, ClusterNetwork
from .interception import Interception
from .mortal_disk import MortalDisk

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""How long a start may take: a broker that cannot reach the cluster's controller would try for ever."""


class BrokerEnvironment(NamedTuple):
    """What a process gives to a broker that runs in it."""

    broker_id: int
    """Its id in ``network``."""
    network: ClusterNetwork
    clock: Clock
    sharers: int
    """The number of brokers that share the process's file descriptors."""
    is_kept: bool = True
    """Whether its folder outlives the process. If not, nothing waits for the disk."""


class BrokerRun:
    """One run of a broker. ``on_end`` is called last."""

    def __init__(
        self,
        config: Config,
        place: BrokerEnvironment,
        interception: Interception,
        *,
        on_end: Callable[[BrokerRun], None],
        served: ServedApis = SERVED,
    ) -> None:
        workers = TrioWorkers() if place.is_kept else InlineWorkers()
        self.services: Services | None = None
        """None until the broker serves."""
        self.failure: Exception | None = None
        """The error by which the broker has ended by itself; set before ``on_end`` is called."""
        self.decided = trio.Event()
        """Set once the broker serves or has failed to start."""
        self.over = trio.Event()
        """Set at the end of the run."""
        self._broker_id = place.broker_id
        self._network = BrokerNetwork(place.network, place.broker_id, tcp_network(config, workers))
        self._disk = MortalDisk(place.sharers, is_synced=place.is_kept)
        self._interception = interception
        self._on_end = on_end
        self._scope = trio.CancelScope()
        self.server = BrokerServer(
            config,
            network=self._network,
            clock=place.clock,
            workers=workers,
            disk=self._disk,
            served=served,
        )

    async def begin(self, nursery: trio.Nursery) -> None:
        """Run it in ``nursery``; returns when it serves clients. Raises StartError, SettingError."""
        nursery.start_soon(self._run)
        with trio.move_on_after(START_SECONDS):
            await self.decided.wait()
        if self.services is None:
            await self.kill()
            if self.failure is not None:
                raise self.failure
            raise StartError(f"broker {self._broker_id} did not come to serve in {START_SECONDS:.0f} s")

    async def stop(self) -> None:
        """Stop as SIGTERM does."""
        self.server.stop()
        await self.over.wait()

    async def kill(self) -> None:
        """End as SIGKILL does: from this call on nothing that it does reaches a client or its disk."""
        # In this order: what cancelled tasks do in their ``finally`` blocks must not reach a client or the disk.
        self._network.close_all()
        self._disk.die()
        self._scope.cancel()
        await self.over.wait()

    async def _run(self) -> None:
        """Run to the end. An error of the broker becomes ``failure``, and does not end others in the loop."""
        try:
            with self._scope:
                await self.server.serve(self._serves)
        except (StartError, BrokerFailedError) as error:
            self.failure = error
        except Exception as error:
            if not self._disk.is_dead:
                logger.exception("A broker has ended by itself")
                self.failure = error
        except BaseException:  # ``Killed``, of a task that still wrote
            if not self._disk.is_dead:
                raise
        finally:
            self._network.close_all()
            self._disk.release()
            self.decided.set()
            self._on_end(self)
            self.services = None
            self.over.set()

    def _serves(self) -> None:
        assert self.server.assembly is not None
        self.services = self.server.assembly.services
        self._interception.attach(self.services)
        self.decided.set()
