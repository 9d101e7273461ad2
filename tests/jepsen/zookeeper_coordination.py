"""Brokers on one ZooKeeper, which has a host of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.clusters import BrokerCluster
from ottla.compat_tests.cut_network import Network
from ottla.compat_tests.wire_client import cluster_view
from ottla.compat_tests.zookeeper import ZooKeeperProcess

from .coordination import SESSION_S, VIEW_S, Coordination

ZOOKEEPER = "zookeeper"
BROKERS = 3


class ZooKeeperCoordination(Coordination):
    """A cluster of the given class, with Kafka's ``properties``."""

    hosts = (ZOOKEEPER,)

    def __init__(
        self, cluster: type[BrokerCluster], properties: Mapping[str, str], folder: Path, network: Network
    ) -> None:
        own = folder / ZOOKEEPER
        own.mkdir(parents=True)
        self.zookeeper = ZooKeeperProcess(own)
        self.zookeeper.host = network.address(ZOOKEEPER)
        self.zookeeper.prefix = network.on(ZOOKEEPER)
        session = {"zookeeper.session.timeout.ms": str(int(SESSION_S * 1000))}
        self._cluster = cluster(folder, BROKERS, zookeeper=self.zookeeper, properties={**session, **properties})
        self.nodes = self.brokers = self._cluster.brokers

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    def start(self) -> None:
        self.zookeeper.start()
        self._cluster.start()

    def before_start(self, broker: BrokerProcess) -> None:
        self._cluster.before_start(broker)

    def controller(self) -> int | None:
        for broker in self.brokers:
            view = cluster_view(broker.address, VIEW_S) if broker.is_running else None
            if view is not None and view.controller >= 0:
                return view.controller
        return None

    def depose_controller(self) -> bool:
        """Delete the controller's node, as an operator may do; False if ZooKeeper does not answer."""
        client = KazooClient(self.zookeeper.address, timeout=4.0)
        try:
            client.start(timeout=4.0)
            client.delete("/controller")
        except (KazooException, KazooTimeoutError):
            return False
        finally:
            client.stop()
            client.close()
        return True

    def administrators(self) -> Sequence[BrokerProcess]:
        controller = self.controller()
        return [] if controller is None else [self.brokers[controller - 1]]

    def close(self) -> None:
        self._cluster.close()
        self.zookeeper.close()
