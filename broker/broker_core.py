"""The core of a broker, started before its other parts: its log directories, id, cluster metadata and dynamic configs.

There is one kind for a cluster whose metadata is in a store of nodes (``zookeeper_broker_core``), and one for a cluster of KRaft
(``quorum_broker_core``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..log.disk import Disk
from ..log.log_directory import LogDirectory
from ..log.log_manager import LogManager
from ..log.settings import LogCleanerSettings, LogManagerSettings, LogSettings
from ..replication.metadata_cache import MetadataCache
from .dependencies import BrokerDependencies

if TYPE_CHECKING:
    from .controller_role import ControllerRole


class BrokerCore(ABC):
    """``start`` it first, ``close`` it last. ``on_failure`` is told why the broker cannot go on."""

    def __init__(
        self,
        dependencies: BrokerDependencies,
        data_dirs: Sequence[str],
        disk: Disk,
        on_failure: Callable[[str], None],
        metadata_dir: str | None = None,
    ) -> None:
        """``metadata_dir`` is the directory of the metadata log where that is none of log.dirs."""
        self._dependencies = dependencies
        self._disk = disk
        self._on_failure = on_failure
        config = dependencies.config
        self.broker_id = -1
        self.controller: ControllerRole | None = None
        """The node's own controller of a quorum, once the start has made it."""
        self.metadata = MetadataCache(has_logs=self._awaits_topics)
        self.logs = LogManager(
            disk,
            data_dirs,
            config.settings(LogSettings),
            config.settings(LogManagerSettings),
            dependencies.clock,
            dependencies.workers,
            dependencies.randomness,
            config.settings(LogCleanerSettings),
            metadata_dir,
        )

    @property
    def cluster_id(self) -> str:
        """Empty until the start has found it."""
        return self.metadata.cluster_id

    @property
    @abstractmethod
    def state_log_dir(self) -> LogDirectory | None:
        """The folder with the cluster's state, without which the broker cannot go on; None when it is elsewhere."""

    @property
    @abstractmethod
    def is_alone(self) -> bool:
        """Whether no other broker can be in the cluster."""

    @property
    @abstractmethod
    def clean_epoch(self) -> int:
        """The broker epoch that a clean stop leaves in the folders, -1 where the cluster does not ask for it."""

    @abstractmethod
    async def start(self) -> None:
        """Do all of it. Raises KafkaError, LogStartError, OSError, StoreError, SettingError."""

    async def resign(self) -> None:
        """While the broker still belongs to the cluster: have another node's controller lead, if the own one does."""
        if self.controller is not None:
            await self.controller.leave()

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything but the logs."""

    def update_log_settings(self) -> None:
        """Have the logs use what is set on the broker now."""
        config = self._dependencies.config
        self.logs.update_settings(
            config.settings(LogSettings), config.settings(LogManagerSettings), config.settings(LogCleanerSettings)
        )

    def _awaits_topics(self) -> bool:
        """Whether the cluster has topics that this broker may be told of after the brokers: there are logs of some."""
        return self.logs.has_logs
