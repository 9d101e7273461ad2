"""The core of a broker in ZooKeeper mode: log directories, an id, and a session at the cluster's store.

The order is that of KafkaServer ``startup``: lock the folders and read whose they are, connect to the store, find or make the
cluster, find the broker's id, write both into the folders, read the dynamic configs, and only then open the logs. The
``ClusterHome`` says which store has the cluster's state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import trio

from ..controller.configs.broker_configs import BrokerConfigs
from ..controller.configs.broker_passwords import BrokerPasswords
from ..controller.zookeeper.config_store import ConfigStore, take_new_secret
from ..controller.zookeeper.features import FeatureStore
from ..controller.zookeeper.leaving.old_state import check_no_own_cluster
from ..controller.zookeeper.registration import ensure_cluster, find_cluster, generate_broker_id
from ..controller.zookeeper.store.cluster_home import ClusterHome
from ..controller.zookeeper.store.cluster_store import StoreError
from ..controller.zookeeper.store.session import BrokerSession
from ..controller.zookeeper.unserved import unserved
from ..group_coordinator.group_configs import within_bounds
from ..log.disk import Disk
from ..log.log_directories import LogStartError
from ..log.log_directory import LogDirectory
from .broker_core import BrokerCore
from .dependencies import BrokerDependencies
from .identity import configured_broker_id
from .settings import BrokerSettings

_CLOSE_SECONDS = 5.0
"""How long a stop waits for a store that does not answer; the store ends the session by itself after its timeout."""


class ZooKeeperBrokerCore(BrokerCore):
    """``session``, ``configs`` and ``features`` are there once it has started."""

    session: BrokerSession
    configs: ConfigStore

    def __init__(
        self,
        dependencies: BrokerDependencies,
        data_dirs: Sequence[str],
        disk: Disk,
        home: ClusterHome,
        on_failure: Callable[[str], None],
    ) -> None:
        super().__init__(dependencies, data_dirs, disk, on_failure)
        self._home = home
        self._is_open = False
        self.features: FeatureStore | None = None

    @property
    def state_log_dir(self) -> LogDirectory | None:
        return None

    @property
    def is_alone(self) -> bool:
        return False

    @property
    def clean_epoch(self) -> int:
        return -1

    @property
    def is_on_zookeeper(self) -> bool:
        """Whether the cluster's state is in a ZooKeeper, and so brokers of Apache Kafka may be in the cluster."""
        return self._home.zookeeper is not None

    async def start(self) -> None:
        """Do all of it, in the order above."""
        try:
            await self._start()
        except StoreError as error:
            raise unserved(error) from error

    async def _start(self) -> None:
        config, logs, zookeeper = self._dependencies.config, self.logs, self._home.zookeeper
        if zookeeper is not None:
            check_no_own_cluster(self._disk, [folder.path for folder in logs.folders if not folder.is_offline])
        logs.take(configured_broker_id(config), is_on_zookeeper=zookeeper is not None)
        await self._home.open()
        self.session = BrokerSession(self._home.connect, await self._home.connect())
        self._is_open = True
        await self.session.take_step(self._find_cluster)
        self.broker_id = await self.session.take_step(self._find_broker_id)
        await logs.identify(self.broker_id, self.metadata.cluster_id, zookeeper)
        await self._take_over_configs()
        self.features = FeatureStore(self.session, self.metadata, self._on_failure)
        await self.session.take_step(self.features.start)
        await logs.load()

    async def _find_cluster(self) -> None:
        """Read the cluster's id, or make the cluster. Raises StoreError, LogStartError."""
        logs, zookeeper = self.logs, self._home.zookeeper
        if zookeeper is not None:
            await self._check_cluster(zookeeper)
        self.metadata.cluster_id = await ensure_cluster(self.session, self._dependencies.randomness, logs.cluster_id)

    async def _check_cluster(self, zookeeper: str) -> None:
        """Whether the ZooKeeper can be the one of the log directories. Raises StoreError, LogStartError."""
        logs = self.logs
        if logs.cluster_id is not None and await find_cluster(self.session) is None:
            raise LogStartError(
                f"the log directory {logs.folders[0].path} belongs to cluster {logs.cluster_id}, and the ZooKeeper "
                f"{zookeeper} has no cluster: zookeeper.connect may be wrong"
            )

    async def _find_broker_id(self) -> int:
        """The one that was given, else that of the log directories, else the next of the ZooKeeper. Raises StoreError."""
        settings, known = self._dependencies.config.settings(BrokerSettings), self.logs.broker_id
        configured = configured_broker_id(self._dependencies.config)
        if configured is not None:
            return configured
        if known is not None:
            return known
        if self._home.zookeeper is None:
            return settings.node_id
        return await generate_broker_id(self.session, settings.reserved_broker_max_id)

    async def _take_over_configs(self) -> None:
        """Read what is set on topics and brokers, because how logs are opened depends on it."""
        self.configs = ConfigStore(self.session, self._dependencies.clock, self.metadata)
        await self.session.take_step(self.configs.start)
        config = self._dependencies.config
        passwords = BrokerPasswords(config)
        await self.session.take_step(lambda: take_new_secret(passwords, self.configs, self.broker_id))

        def prepare(stored: Mapping[str, str]) -> Mapping[str, str]:
            return within_bounds(config, passwords.decoded(stored))

        BrokerConfigs(config, self.metadata, self.broker_id, prepare).follow()
        self.update_log_settings()

    async def close(self) -> None:
        """End the session at the cluster's store, if there is one: the broker is not registered any more."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLOSE_SECONDS):
            if self._is_open:
                await self.session.close()
        self._home.close()
