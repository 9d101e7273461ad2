"""The data folders of the broker: taking them at a start, and whose they are.

A start locks each folder, sees whose it is, takes its clean mark away and opens its logs (in worker threads, cutting what a
crash left behind). A folder that fails goes *offline*: its logs are gone until the broker starts again, the others serve.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence

import trio

from ..base.errors import KafkaError
from .checkpoints import CorruptFileError, write_meta_properties
from .folder_logs import FolderLogs
from .log_folder import LogFolder
from .recovery import UnsupportedLogError
from .settings import LogSettings

logger = logging.getLogger(__name__)


class LogStartError(Exception):
    """The data folders cannot be used. ``str()`` is one line for people."""


class DataFolders:
    """The entries of log.dirs, in that order. ``cluster_id`` is None until a folder or ``set_cluster_id`` tells it."""

    def __init__(self, folders: Iterable[LogFolder]) -> None:
        self._parts = [FolderLogs(folder) for folder in folders]
        self.cluster_id: str | None = None
        self.broker_id = -1

    def __iter__(self) -> Iterator[FolderLogs]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def folders(self) -> Sequence[LogFolder]:
        return [part.folder for part in self._parts]

    @property
    def online(self) -> list[FolderLogs]:
        return [part for part in self._parts if not part.folder.is_offline]

    @property
    def offline_paths(self) -> list[str]:
        return [folder.path for folder in self.folders if folder.is_offline]

    def part(self, folder: LogFolder) -> FolderLogs:
        """The logs of a folder."""
        return next(part for part in self._parts if part.folder is folder)

    def at(self, path: str) -> LogFolder | None:
        """The folder with this absolute path."""
        return next((folder for folder in self.folders if os.path.abspath(folder.path) == path), None)

    # --- start --------------------------------------------------------------------------------------------------------

    async def start(self, broker_id: int, settings: LogSettings, threads: int) -> None:
        """Take the folders and open every log in them, each with ``threads`` workers. Raises LogStartError."""
        for part in self._parts:
            self._take(part)
        self._identify(broker_id)
        refusals: list[Exception] = []

        async def load(part: FolderLogs) -> None:
            try:
                await part.load(settings, threads)
            except (OSError, KafkaError) as error:
                part.folder.fail("it cannot be read", error, is_half_done=True)
            except UnsupportedLogError as error:
                refusals.append(error)

        async with trio.open_nursery() as nursery:
            for part in self.online:
                nursery.start_soon(load, part)
        if refusals:
            raise LogStartError(str(refusals[0])) from refusals[0]
        self._check_online()

    def _take(self, part: FolderLogs) -> None:
        folder = part.folder
        try:
            folder.max_open_files = folder.disk.max_open_files() // len(self._parts)
            part.take()
        except BlockingIOError:
            raise LogStartError(f"the data folder {folder.path} is in use by another process") from None
        except OSError as error:
            folder.fail("it cannot be used", error, is_half_done=True)
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None

    def _identify(self, broker_id: int) -> None:
        self.broker_id = broker_id
        first: FolderLogs | None = None
        for part in self._parts:
            meta = part.meta
            if meta is None:
                continue
            path = part.folder.path
            if meta.broker_id not in (None, broker_id):
                raise LogStartError(
                    f"the data folder {path} belongs to broker {meta.broker_id}, but this is broker {broker_id}"
                )
            if meta.cluster_id is None:
                continue
            if first is not None and meta.cluster_id != self.cluster_id:
                raise LogStartError(
                    f"the data folder {path} belongs to cluster {meta.cluster_id}, "
                    f"but {first.folder.path} to cluster {self.cluster_id}"
                )
            first = first or part
            self.cluster_id = meta.cluster_id

    async def set_cluster_id(self, cluster_id: str) -> None:
        """Write ``meta.properties`` where it does not say so already. Raises LogStartError when one names another cluster."""
        if self.cluster_id not in (None, cluster_id):
            paths = ", ".join(folder.path for folder in self.folders)
            raise LogStartError(
                f"the data folder {paths} belongs to cluster {self.cluster_id}, but this is {cluster_id}"
            )
        self.cluster_id = cluster_id
        for part in self._parts:
            folder = part.folder
            if folder.is_offline or (part.meta is not None and part.meta.cluster_id is not None):
                continue
            try:
                await folder.workers.run(write_meta_properties, folder.disk, folder.path, self.broker_id, cluster_id)
            except OSError as error:
                folder.fail("cannot write meta.properties", error, is_half_done=True)
        self._check_online()

    def _check_online(self) -> None:
        if not self.online:
            failed = "; ".join(f"the data folder {f.path} cannot be used: {f.failure}" for f in self.folders)
            raise LogStartError(failed)
