"""One broker of a cluster in this process, which can be started, stopped and killed several times: each start is a ``Life``.

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
from ..controller.zookeeper.store.cluster_home import SharedHome
from ..controller.zookeeper.store.embedded_store import EmbeddedStore
from ..controller.zookeeper.store.store_link import StoreLink
from ..handlers.services import Services
from .cluster_network import ClusterNetwork
from .held_port import HeldPort
from .interception import Interception
from .life import Life, Place

SESSION_TIMEOUT = "zookeeper.session.timeout.ms"
"""The property with the session timeout, in milliseconds: after it the store ends the session of a broker that is silent."""


class Surroundings:
    """What the members of a cluster share; ``store`` is one in memory if none is given."""

    def __init__(self, clock: Clock, count: int, store: EmbeddedStore | None = None) -> None:
        self.clock = clock
        self.count = count
        self.network = ClusterNetwork({})
        self.store = store or EmbeddedStore(clock)


class Member:
    """A broker whose data folder, port and faults stay when it is started again; ``properties`` are Kafka's.

    ``close`` closes ``port``. ``on_failure`` is called with the error when the broker ends by itself.
    """

    def __init__(
        self,
        broker_id: int,
        data_dir: Path,
        properties: Mapping[str, str],
        around: Surroundings,
        in_loop: Callable[[Callable[[], Any]], None],
        port: HeldPort,
    ) -> None:
        self.broker_id = broker_id
        self.data_dir = data_dir
        self.interception = Interception(in_loop)
        self.failure: Exception | None = None
        """The error that made the broker end by itself."""
        self.on_failure: Callable[[Exception], None] = lambda error: None
        self._around = around
        self._port = port
        self._session_timeout_ms = int(properties[SESSION_TIMEOUT])
        self._properties = {
            "log.dirs": str(data_dir),
            **{name: value for name, value in properties.items() if name != SESSION_TIMEOUT},
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{self.address}",
        }
        self._life: Life | None = None
        self._link = StoreLink()
        around.network.broker_at[self._port.number] = broker_id

    @property
    def address(self) -> str:
        """``HOST:PORT``, the same after each start."""
        return f"127.0.0.1:{self._port.number}"

    @property
    def services(self) -> Services | None:
        """The broker's parts while it runs, paused or not; otherwise None."""
        return None if self._life is None else self._life.services

    @property
    def is_in_reach(self) -> bool:
        """Whether it runs and is neither paused nor isolated; it may be cut off from single brokers."""
        network = self._around.network
        return not (self.services is None or network.is_paused(self.broker_id) or network.is_isolated(self.broker_id))

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the broker in ``nursery``; returns when it serves clients. Raises StartError, SettingError."""
        if self._life is not None:
            raise StartError(f"broker {self.broker_id} is running")
        self._link = StoreLink()
        life = Life(
            load_config(self._properties),
            Place(self.broker_id, self._around.network, self._around.clock, self._around.count),
            self.interception,
            home=SharedHome(self._around.store, self._link, self._session_timeout_ms),
            leave=self._link.leave,
            on_end=self._ended,
        )
        self._life = life
        self.follow_network()
        await life.begin(nursery)

    def _ended(self, life: Life) -> None:
        self._life = None
        if life.services is not None and life.failure is not None:
            self.failure = self.failure or life.failure
            self.on_failure(life.failure)

    async def stop(self) -> None:
        """Stop as SIGTERM does; a paused broker is resumed first. Does nothing if it does not run."""
        self.resume()
        if self._life is not None:
            await self._life.stop()

    async def kill(self) -> None:
        """End as SIGKILL does. Does nothing if it does not run."""
        if self._life is not None:
            await self._life.kill()
        self._around.network.resume(self.broker_id)

    def pause(self) -> None:
        self._around.network.pause(self.broker_id)
        self.follow_network()

    def resume(self) -> None:
        self._around.network.resume(self.broker_id)
        self.follow_network()

    def follow_network(self) -> None:
        """Cut or heal the connection to the store, as the network's faults say."""
        network, broker_id = self._around.network, self.broker_id
        if self._life is not None:
            if network.is_paused(broker_id) or network.is_isolated(broker_id):
                self._link.cut()
            else:
                self._link.heal()

    def close(self) -> None:
        """Release the port."""
        self._port.close()
