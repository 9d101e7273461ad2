"""One broker of a cluster in this process, which can be started, stopped and killed several times: each start is a ``BrokerRun``.

Everything here is called in the cluster's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import trio

from ..base.seams import Clock
from ..broker.config_file import load_config
from ..broker.server import StartError
from ..handlers.services import Services
from .broker_run import BrokerEnvironment, BrokerRun
from .cluster_controller import QUORUM_PROPERTIES, ClusterController
from .cluster_network import ClusterNetwork
from .held_port import HeldPort
from .interception import Interception


class ClusterEnvironment:
    """What the members of a cluster share."""

    def __init__(self, clock: Clock, count: int, properties: Mapping[str, str], *, is_kept: bool = False) -> None:
        self.clock = clock
        self.count = count
        """The number of brokers."""
        self.properties = properties
        """Of all brokers."""
        self.is_kept = is_kept
        """Whether folders outlive the process."""
        self.network = ClusterNetwork({})
        self.controller = ClusterController(properties, clock, self.network, is_kept=is_kept)


class RestartableBroker:
    """A broker that can be started again with the same log directory, port and faults.

    ``properties`` are Kafka's. ``close`` closes ``port``.
    """

    def __init__(
        self,
        broker_id: int,
        data_dir: Path,
        properties: Mapping[str, str],
        around: ClusterEnvironment,
        in_loop: Callable[[Callable[[], Any]], None],
        port: HeldPort,
    ) -> None:
        self.broker_id = broker_id
        self.data_dir = data_dir
        self.interception = Interception(in_loop)
        self.failure: Exception | None = None
        """The error that made the broker end by itself."""
        self.on_failure: Callable[[Exception], None] = lambda error: None
        """Called with the error when the broker ends by itself."""
        self._around = around
        self._port = port
        self._properties = {
            "log.dirs": str(data_dir),
            "metadata.log.dir": str(data_dir),  # also with other log directories, each of which may fail then
            **properties,
            **QUORUM_PROPERTIES,
            "process.roles": "broker",
            "node.id": str(broker_id),
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{self.address}",
        }
        self._broker_run: BrokerRun | None = None
        around.network.broker_at[self._port.number] = broker_id

    @property
    def address(self) -> str:
        """``HOST:PORT``, the same after each start."""
        return f"127.0.0.1:{self._port.number}"

    @property
    def services(self) -> Services | None:
        """The broker's parts while it runs, paused or not; otherwise None."""
        return None if self._broker_run is None else self._broker_run.services

    @property
    def is_in_reach(self) -> bool:
        """Whether it runs and is neither paused nor isolated; it may be cut off from single brokers."""
        network = self._around.network
        return not (self.services is None or network.is_paused(self.broker_id) or network.is_isolated(self.broker_id))

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the broker in ``nursery``; returns when it serves clients. Raises StartError, SettingError."""
        if self._broker_run is not None:
            raise StartError(f"broker {self.broker_id} is running")
        config, around = load_config(self._properties), self._around
        around.controller.format_node(config)
        life = BrokerRun(
            config,
            BrokerEnvironment(self.broker_id, around.network, around.clock, around.count, around.is_kept),
            self.interception,
            on_end=self._ended,
        )
        self._broker_run = life
        await life.begin(nursery)

    def _ended(self, life: BrokerRun) -> None:
        self._broker_run = None
        if life.services is not None and life.failure is not None:
            self.failure = self.failure or life.failure
            self.on_failure(life.failure)

    async def stop(self) -> None:
        """Stop as SIGTERM does; a paused broker is resumed first. Does nothing if it does not run."""
        self.resume()
        if self._broker_run is not None:
            await self._broker_run.stop()

    async def kill(self) -> None:
        """End as SIGKILL does. Does nothing if it does not run."""
        if self._broker_run is not None:
            await self._broker_run.kill()
        self._around.network.resume(self.broker_id)

    def pause(self) -> None:
        """Let nothing pass to or from it."""
        self._around.network.pause(self.broker_id)

    def resume(self) -> None:
        """End ``pause``."""
        self._around.network.resume(self.broker_id)

    def close(self) -> None:
        """Release the port."""
        self._port.close()
