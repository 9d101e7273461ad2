"""The foundation of a broker whose cluster's metadata is in a store of nodes: folders, an id, and a session there.

The order is that of KafkaServer ``startup``: lock the folders and read whose they are, connect to the store, find or make the
cluster, find the broker's id, write both into the folders, read the dynamic configs, and only then open the logs. The
``ClusterHome`` says which store has the cluster's state. A broker can move to another one in two ways: the topics of a folder
that another broker has filled are adopted (``adoption``), and a broker that was alone moves its state when it is started with a
ZooKeeper (``growth``). There is no way back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from ..controller.broker_configs import BrokerConfigs
from ..controller.broker_passwords import BrokerPasswords
from ..controller.zookeeper.adoption import adopt_logs, is_new
from ..controller.zookeeper.config_store import ConfigStore, take_new_secret
from ..controller.zookeeper.features import FeatureStore
from ..controller.zookeeper.growth import Growth, has_state
from ..controller.zookeeper.registration import ensure_cluster, find_cluster
from ..controller.zookeeper.store.cluster_home import ClusterHome
from ..controller.zookeeper.store.session import BrokerSession
from ..handlers.auto_creation import coordinator_topics
from ..log.data_folders import LogStartError
from ..log.disk import Disk
from ..log.log_folder import LogFolder
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from .foundation import Foundation
from .identity import configured_broker_id, find_broker_id
from .surroundings import Surroundings

_CLOSE_SECONDS = 5.0
"""How long a stop waits for a store that does not answer; the store ends the session by itself after its timeout."""


class StoreFoundation(Foundation):
    """``session``, ``configs`` and ``features`` are there once it has started. A broker that is alone has no ``features``."""

    session: BrokerSession
    configs: ConfigStore

    def __init__(
        self,
        around: Surroundings,
        data_dirs: Sequence[str],
        disk: Disk,
        home: ClusterHome,
        on_failure: Callable[[str], None],
    ) -> None:
        super().__init__(around, data_dirs, disk, on_failure)
        self._home = home
        self._is_open = False
        self.features: FeatureStore | None = None

    @property
    def state_folder(self) -> LogFolder | None:
        return self._home.state_folder(self.logs.folders)

    @property
    def is_alone(self) -> bool:
        """Whether the cluster's store is the broker's own, so that no other broker can be in the cluster."""
        return self.state_folder is not None

    @property
    def clean_epoch(self) -> int:
        return -1

    @property
    def is_on_zookeeper(self) -> bool:
        """Whether the cluster's state is in a ZooKeeper, and so brokers of Apache Kafka may be in the cluster."""
        return self._home.zookeeper is not None

    async def start(self) -> None:
        """Do all of it, in the order above."""
        config, logs, zookeeper = self._around.config, self.logs, self._home.zookeeper
        is_growing = zookeeper is not None and has_state(self._disk, logs.folders[0].path)
        logs.take(configured_broker_id(config), is_on_zookeeper=zookeeper is not None and not is_growing)
        self._check_folders()
        await self._home.open(logs.folders)
        self.session = BrokerSession(self._home.connect, await self._home.connect())
        self._is_open = True
        if zookeeper is not None:
            await self._grow(is_growing=is_growing)
        elif self.is_alone:
            await self._adopt_logs()
        cluster_id = await ensure_cluster(self.session, self._around.randomness, logs.cluster_id)
        self.metadata.cluster_id = cluster_id
        self.broker_id = await find_broker_id(config, logs.broker_id, self.session if zookeeper is not None else None)
        await logs.identify(self.broker_id, cluster_id, zookeeper)
        await self._take_over_configs()
        if not self.is_alone:
            self.features = FeatureStore(self.session, self.metadata, self._on_failure)
            await self.features.start()
        if not logs.is_loaded:
            await logs.load()

    def _check_folders(self) -> None:
        """Check that the folders fit the place that the cluster's state is said to have. Raises LogStartError."""
        folder = self.state_folder
        if folder is None:
            return
        if folder.is_offline:
            failed = f"{folder.path} has the cluster's state and cannot be used: {folder.failure}"
            raise LogStartError(failed, may_pass=True)
        if self.logs.zookeeper is not None:
            raise LogStartError(
                f"the data folder {folder.path} belongs to broker {self.logs.broker_id} of a cluster whose state is in the "
                f"ZooKeeper {self.logs.zookeeper}: it is started with zookeeper.connect"
            )

    async def _grow(self, *, is_growing: bool) -> None:
        """Move the state of a broker that was alone into the ZooKeeper; check that the folders belong to its cluster."""
        logs = self.logs
        if is_growing:
            self.broker_id = await find_broker_id(self._around.config, logs.broker_id, None)
        folder, broker_id = logs.folders[0], self.broker_id if is_growing else logs.broker_id
        if not folder.is_offline and broker_id is not None:
            growth = Growth(
                self.session,
                self._disk,
                self._around.workers,
                folder.path,
                broker_id,
                lambda cluster_id: logs.identify(broker_id, cluster_id, self._home.zookeeper),
            )
            await growth.run(logs.cluster_id)
        if logs.cluster_id is not None and await find_cluster(self.session) is None:
            raise LogStartError(
                f"the data folder {folder.path} belongs to cluster {logs.cluster_id}, and the ZooKeeper "
                f"{self._home.zookeeper} has no cluster: zookeeper.connect may be wrong"
            )

    async def _adopt_logs(self) -> None:
        """Register the topics that another broker left in the folders, where the broker's own store is new."""
        if not await is_new(self.session):
            return
        config, logs = self._around.config, self.logs
        await logs.load()
        configs = {name: topic.configs for name, topic in coordinator_topics(config, most_replicas=1).items()}
        broker_id = await find_broker_id(config, logs.broker_id, None)
        await adopt_logs(self.session, broker_id, logs.logs(), configs, TRANSACTIONS_TOPIC, self._around.randomness)

    async def _take_over_configs(self) -> None:
        """Read what is set on topics and brokers, because how logs are opened depends on it."""
        self.configs = ConfigStore(self.session, self._around.clock, self.metadata)
        await self.configs.start()
        passwords = BrokerPasswords(self._around.config)
        await take_new_secret(passwords, self.configs, self.broker_id)
        BrokerConfigs(self._around.config, self.metadata, self.broker_id, passwords.decoded).follow()
        self.update_log_settings()

    async def close(self) -> None:
        """End the session at the cluster's store, if there is one: the broker is not registered any more."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_SECONDS):
            if self._is_open:
                await self.session.close()
        self._home.close()
