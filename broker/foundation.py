"""What a broker stands on: its data folders, a session at the cluster's store, and what is set on topics and brokers.

Which store the cluster's state is in is the ``ClusterHome``'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ..controller.broker_configs import BrokerConfigs
from ..controller.config_store import ConfigStore
from ..controller.registration import ensure_cluster
from ..controller.session import BrokerSession
from ..handlers.auto_creation import coordinator_topics
from ..log.data_folders import LogStartError
from ..log.disk import Disk
from ..log.log_folder import LogFolder
from ..log.log_manager import LogManager
from ..log.settings import LogCleanerSettings, LogManagerSettings, LogSettings
from .adoption import adopt_logs
from .cluster_home import ClusterHome
from .surroundings import Surroundings

_LEAVE_SECONDS = 5.0
"""How long a stop waits for a store that does not answer; it ends the session by itself in the end."""


class Foundation:
    """``lay`` it first, ``leave`` the cluster last; ``session`` and ``configs`` are there in between."""

    session: BrokerSession
    configs: ConfigStore

    def __init__(
        self, around: Surroundings, broker_id: int, data_dirs: Sequence[str], disk: Disk, home: ClusterHome
    ) -> None:
        self._around = around
        self._home = home
        self._is_open = False
        config = around.config
        self.broker_id = broker_id
        self.cluster_id = ""
        self.logs = LogManager(
            disk,
            data_dirs,
            config.settings(LogSettings),
            config.settings(LogManagerSettings),
            around.clock,
            around.workers,
            around.randomness,
            config.settings(LogCleanerSettings),
        )

    @property
    def state_folder(self) -> LogFolder | None:
        """The data folder that the cluster's state is in; the broker cannot go on without it."""
        return self._home.state_folder(self.logs.folders)

    @property
    def is_alone(self) -> bool:
        """Whether the cluster's store is the broker's own, so that no other broker can be in the cluster."""
        return self.state_folder is not None

    async def lay(self) -> None:
        """Raises KafkaError, LogStartError, OSError, StoreError, SettingError."""
        config, randomness = self._around.config, self._around.randomness
        await self.logs.start(self.broker_id)
        await self._open_store()
        self.cluster_id = await ensure_cluster(self.session, randomness, self.logs.cluster_id or None)
        await self.logs.set_cluster_id(self.cluster_id)
        self.configs = ConfigStore(self.session, self._around.clock)
        await self.configs.start()
        BrokerConfigs(config, self.configs, self.broker_id).follow()

    async def _open_store(self) -> None:
        state_folder = self.state_folder
        if state_folder is not None and state_folder.is_offline:
            why = f"{state_folder.path} has the cluster's state and cannot be used: {state_folder.failure}"
            raise LogStartError(why)
        await self._home.open(self.logs.folders)
        self.session = BrokerSession(self._home.connect, await self._home.connect())
        self._is_open = True
        if state_folder is not None:
            # Such a store is this broker's alone, and knows no topics when another broker has filled the folder.
            topics = coordinator_topics(self._around.config, most_replicas=1)
            configs = {name: topic.configs for name, topic in topics.items()}
            await adopt_logs(self.session, self.broker_id, self.logs.logs(), configs, self._around.randomness)

    async def leave(self) -> None:
        """End the session at the cluster's store, if there is one: the broker is not registered any more."""
        if self._is_open:
            with trio.move_on_after(_LEAVE_SECONDS):
                await self.session.close()
        self._home.close()
