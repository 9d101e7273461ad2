"""All logs of the broker's data folder: start, the logs by partition, and stop."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable

import trio

from ..base.seams import Clock, Workers
from .checkpoints import LOCK, read_meta_properties, write_meta_properties
from .disk import Disk, Lock, join
from .log_folder import LogFolder
from .partition_log import PartitionLog
from .settings import LogManagerSettings, LogSettings

logger = logging.getLogger(__name__)


class LogStartError(Exception):
    """The data folder cannot be used. ``str()`` is one line for people."""


class LogManager:
    """The logs of one data folder."""

    def __init__(
        self,
        disk: Disk,
        directories: Iterable[str],
        settings: LogSettings,
        manager_settings: LogManagerSettings,
        clock: Clock,
        workers: Workers,
        rng: random.Random,
    ) -> None:
        (path,) = directories
        self.settings = settings
        self.manager_settings = manager_settings
        self.folder = LogFolder(disk, path, clock, workers, rng=rng)
        self.cluster_id = ""
        self.broker_id = -1
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._lock: Lock | None = None

    @property
    def is_offline(self) -> bool:
        """Whether the data folder has failed; it stays so until the broker starts again."""
        return self.folder.is_offline

    async def start(self, broker_id: int) -> None:
        """Lock the folder and read or write ``meta.properties``. Raises LogStartError."""
        folder = self.folder
        try:
            folder.disk.make_dir(folder.path)
            self._lock = folder.disk.lock(join(folder.path, LOCK))
        except BlockingIOError:
            raise LogStartError(f"the data folder {folder.path} is in use by another process") from None
        except OSError as error:
            raise LogStartError(f"the data folder {folder.path} cannot be used: {error.strerror}") from None
        self._identify(broker_id)

    def _identify(self, broker_id: int) -> None:
        folder = self.folder
        meta = read_meta_properties(folder.disk, folder.path)
        if meta is not None and meta.broker_id not in (None, broker_id):
            raise LogStartError(
                f"the data folder {folder.path} belongs to broker {meta.broker_id}, but this is broker {broker_id}"
            )
        self.broker_id = broker_id
        self.cluster_id = (meta.cluster_id if meta else None) or ""

    async def set_cluster_id(self, cluster_id: str) -> None:
        """Write ``meta.properties`` unless it says so already. Raises LogStartError when it names another cluster."""
        if self.cluster_id == cluster_id:
            return
        if self.cluster_id:
            raise LogStartError(
                f"the data folder {self.folder.path} belongs to cluster {self.cluster_id}, but this is {cluster_id}"
            )
        self.cluster_id = cluster_id
        folder = self.folder
        await folder.workers.run(write_meta_properties, folder.disk, folder.path, self.broker_id, cluster_id)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def get_or_create(
        self, topic: str, partition: int, topic_id: bytes | None = None, settings: LogSettings | None = None
    ) -> PartitionLog:
        """The log of a partition; a new one has no file until it is written to."""
        partition_log = self._logs.get((topic, partition))
        if partition_log is None:
            partition_log = PartitionLog(self.folder, topic, partition, topic_id, settings or self.settings)
            self._logs[topic, partition] = partition_log
        return partition_log

    def logs(self) -> Iterable[PartitionLog]:
        return self._logs.values()

    def delete(self, topic: str, partition: int) -> None:
        """Forget a log and its files."""
        self._logs.pop((topic, partition), None)

    async def run(self) -> None:
        """Housekeeping."""
        await trio.sleep_forever()

    async def abandon(self) -> None:
        """Let go of the folder after a failed start; nothing is marked clean."""
        await self.stop()

    async def stop(self) -> None:
        """Release the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
