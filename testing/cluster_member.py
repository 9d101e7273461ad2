"""One broker of a cluster in this process, as the cluster's loop has it: its lives, from a start to a stop or a kill.

Everything here is called in the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import trio

from ..base.config import Config
from ..base.seams import Clock, TrioWorkers
from ..base.tcp import TcpNetwork
from ..broker.cluster_home import SharedHome
from ..broker.config_file import load_config
from ..broker.server import BrokerFailedError, BrokerServer, StartError
from ..controller.embedded_store import EmbeddedStore
from ..controller.store_link import StoreLink
from ..handlers.services import Services
from .cluster_network import BrokerNetwork, ClusterNetwork
from .held_port import HeldPort
from .interception import Interception
from .mortal_disk import MortalDisk

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
"""How long a start may take: that of a broker that cannot reach the cluster's store would never end."""

SESSION_TIMEOUT = "zookeeper.session.timeout.ms"
"""The property that says for how many milliseconds the store keeps the session of a broker that it does not hear."""


class Surroundings:
    """What the members of a cluster have in common; ``store`` is one in memory if none is given."""

    def __init__(self, clock: Clock, count: int, store: EmbeddedStore | None = None) -> None:
        self.clock = clock
        self.count = count
        self.network = ClusterNetwork({})
        self.store = store or EmbeddedStore(clock)


class Member:
    """A broker with a data folder, a port and faults that outlast its lives; ``properties`` are Kafka's.

    ``port`` is for it to close. ``on_failure`` is called with what makes it end by itself.
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
        """What made the broker end by itself."""
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
        self._life: _Life | None = None
        around.network.broker_at[self._port.number] = broker_id

    @property
    def address(self) -> str:
        """``HOST:PORT``, the same for all lives."""
        return f"127.0.0.1:{self._port.number}"

    @property
    def services(self) -> Services | None:
        """The broker's parts while it serves, or is paused."""
        return None if self._life is None else self._life.services

    @property
    def is_in_reach(self) -> bool:
        """Whether it serves, and nothing keeps it from the other brokers but a cut between two of them."""
        network = self._around.network
        return not (self.services is None or network.is_paused(self.broker_id) or network.is_isolated(self.broker_id))

    async def start(self, nursery: trio.Nursery) -> None:
        """Begin a life, in ``nursery``; returns when it serves. Raises StartError, SettingError."""
        if self._life is not None:
            raise StartError(f"broker {self.broker_id} is running")
        home = SharedHome(self._around.store, StoreLink(), self._session_timeout_ms)
        config = load_config(self._properties)
        life = self._life = _Life(config, self.broker_id, self._around, home, self.interception)
        self.follow_network()
        nursery.start_soon(self._live, life)
        with trio.move_on_after(START_SECONDS):
            await life.decided.wait()
        if life.services is None:
            life.kill()
            await life.over.wait()
            if life.failure is not None:
                raise life.failure
            raise StartError(f"broker {self.broker_id} did not come to serve in {START_SECONDS:.0f} s")

    async def _live(self, life: _Life) -> None:
        await life.run()
        self._life = None
        if life.services is not None and life.failure is not None:
            self.failure = self.failure or life.failure
            self.on_failure(life.failure)
        life.services = None
        life.over.set()

    async def stop(self) -> None:
        """End as SIGTERM does; a broker that is paused goes on for that. Nothing happens where it does not run."""
        self.resume()
        if self._life is not None:
            self._life.server.stop()
            await self._life.over.wait()

    async def kill(self) -> None:
        """End as SIGKILL does. Nothing happens where it does not run."""
        life = self._life
        if life is not None:
            life.kill()
            await life.over.wait()
        self._around.network.resume(self.broker_id)

    def pause(self) -> None:
        self._around.network.pause(self.broker_id)
        self.follow_network()

    def resume(self) -> None:
        self._around.network.resume(self.broker_id)
        self.follow_network()

    def follow_network(self) -> None:
        """Have the way to the store be as the network is."""
        network, broker_id = self._around.network, self.broker_id
        if self._life is not None:
            link = self._life.home.link
            if network.is_paused(broker_id) or network.is_isolated(broker_id):
                link.cut()
            else:
                link.heal()

    def close(self) -> None:
        """Let go of the port."""
        self._port.close()


class _Life:
    """One life. ``decided`` is set when it serves, with its ``services``, or cannot; ``over`` when it has ended."""

    def __init__(
        self, config: Config, broker_id: int, around: Surroundings, home: SharedHome, interception: Interception
    ) -> None:
        workers = TrioWorkers()
        self.home = home
        self.services: Services | None = None
        self.failure: Exception | None = None
        self.decided = trio.Event()
        self.over = trio.Event()
        self._network = BrokerNetwork(around.network, broker_id, TcpNetwork(workers))
        self._disk = MortalDisk(around.count)
        self._interception = interception
        self._scope = trio.CancelScope()
        self.server = BrokerServer(
            config,
            network=self._network,
            clock=around.clock,
            workers=workers,
            disk=self._disk,
            home=home,
        )

    async def run(self) -> None:
        """All of it. What ended it by itself is the ``failure``, which is no reason for the other brokers to end."""
        try:
            with self._scope:
                await self.server.serve(self._serves)
        except (StartError, BrokerFailedError) as error:
            self.failure = error
        except Exception as error:
            if not self._disk.is_dead:
                logger.exception("A broker has ended by itself")
                self.failure = error
        except BaseException:
            if not self._disk.is_dead:
                raise
        finally:
            self.home.link.leave()
            self._network.close_all()
            self._disk.release()
            self.decided.set()

    def _serves(self) -> None:
        assert self.server.assembly is not None
        self.services = self.server.assembly.services
        self._interception.attach(self.services)
        self.decided.set()

    def kill(self) -> None:
        """End it here: from this call on nothing that it does is seen, by a client or on its disk."""
        self.home.link.leave()
        self._network.close_all()
        self._disk.die()
        self._scope.cancel()
