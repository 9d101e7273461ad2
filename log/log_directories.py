"""The log directories of the broker: locking, identification and loading at startup.

A start locks each folder and sees whose it is (``take``), writes there whose it is from now on (``identify``), takes its clean
mark away and opens its logs (``load``; in worker threads, cutting what a crash left behind). A folder that fails goes
*offline*: its logs are gone until the broker starts again, the others serve.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import trio

from ..base.errors import KafkaError
from .checkpoints import (
    META_PROPERTIES,
    CorruptFileError,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from .directory_logs import DirectoryLogs
from .disk import join
from .log_directory import LogDirectory
from .recovery import UnsupportedLogError
from .settings import LogSettings

logger = logging.getLogger(__name__)


class LogStartError(Exception):
    """The log directories cannot be used. ``str()`` is one line for people."""

    def __init__(self, why: str, *, may_pass: bool = False) -> None:
        super().__init__(why)
        self.may_pass = may_pass
        """Another start may succeed: another process has them, or their disk is not there yet or has failed."""


def metadata_log_dir_of(wanted: str | None, folders: Sequence[str]) -> str:
    """Where ``metadata.log.dir`` puts the metadata log: in the first log directory, in another one, or beside them."""
    if wanted is None:
        return folders[0]
    return next((each for each in folders if os.path.realpath(each) == os.path.realpath(wanted)), wanted)


class LogDirectories:
    """The entries of log.dirs, in that order, and beside them the folder of the metadata log if that is none of them.

    That one is taken, checked and released like the others, and has no logs of partitions.
    """

    def __init__(self, folders: Iterable[LogDirectory], metadata_log_dir: LogDirectory | None = None) -> None:
        self._parts = [DirectoryLogs(folder) for folder in folders]
        self.all_parts = list(self._parts)
        if metadata_log_dir is not None:
            self.all_parts.append(DirectoryLogs(metadata_log_dir))
            metadata_log_dir.write_checkpoints = None  # they are of partitions
        self.cluster_id: str | None = None
        """None until a log directory or ``identify`` tells it."""
        self.broker_id: int | None = None
        """None until a log directory or ``identify`` tells it."""
        self.zookeeper: str | None = None
        """Where the state of the cluster was at the last start; None if it was no ZooKeeper."""

    def __iter__(self) -> Iterator[DirectoryLogs]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def folders(self) -> Sequence[LogDirectory]:
        return [part.folder for part in self._parts]

    @property
    def online(self) -> list[DirectoryLogs]:
        return [part for part in self._parts if not part.folder.is_offline]

    @property
    def _all_online(self) -> list[DirectoryLogs]:
        return [part for part in self.all_parts if not part.folder.is_offline]

    @property
    def offline_log_dirs(self) -> list[str]:
        return [folder.path for folder in self.folders if folder.is_offline]

    def part(self, folder: LogDirectory) -> DirectoryLogs:
        """The logs of a folder."""
        return next(part for part in self.all_parts if part.folder is folder)

    def at(self, path: str) -> LogDirectory | None:
        """The folder with this absolute path."""
        return next((folder for folder in self.folders if os.path.abspath(folder.path) == path), None)

    # --- start --------------------------------------------------------------------------------------------------------

    def take(self, broker_id: int | None, *, is_on_zookeeper: bool = False) -> None:
        """Lock the folders, and see whose they are: of ``broker_id``, and all of one broker and cluster. Raises LogStartError.

        Kafka's ZooKeeper mode knows ``meta.properties`` of version 0 only, which a KRaft node never wrote.
        """
        for part in self.all_parts:
            self._take(part)
        self._check_identity(broker_id, only_version_0=is_on_zookeeper)

    def reopen(self) -> None:
        """See whose the folders are after some were formatted. Raises LogStartError."""
        for part in self._all_online:
            try:
                part.meta = read_meta_properties(part.folder.disk, part.folder.path)
            except CorruptFileError as error:
                raise LogStartError(str(error)) from None
        self._check_identity(self.broker_id, only_version_0=False)

    def check_formatted(self) -> None:
        """Check that each folder is one of a node of KRaft. Raises LogStartError, in Kafka's words."""
        for part in self._all_online:
            path = join(part.folder.path, META_PROPERTIES)
            if part.meta is None:
                raise LogStartError(
                    f"No `meta.properties` found in {part.folder.path} (have you run `ottla format` or `kafka-storage.sh` to "
                    "format the directory?)"
                )
            if part.meta.version != 1 or part.meta.broker_id is None or part.meta.cluster_id is None:
                raise LogStartError(
                    f"Found unexpected version in {path}. A node of KRaft needs version 1, with node.id and cluster.id."
                )

    def complete_directory_ids(self, make: Callable[[], bytes]) -> None:
        """Give each formatted folder without an id one; folders of Kafka before 3.7 have none. Raises LogStartError."""
        for part in self._all_online:
            if part.meta is not None and part.meta.directory_id is None:
                part.meta = dataclasses.replace(part.meta, directory_id=make())
                try:
                    write_meta_properties(part.folder.disk, part.folder.path, part.meta)
                except OSError as error:
                    part.folder.fail("cannot write meta.properties", error, is_half_done=True)
        ids = [part.meta.directory_id for part in self._all_online if part.meta is not None]
        if len(set(ids)) < len(ids):
            raise LogStartError("two log directories have the same directory.id: one is a copy of the other")
        self._check_online()

    async def load(self, settings: LogSettings, threads: int) -> None:
        """Open every log, in each folder with ``threads`` workers. Raises LogStartError."""
        refusals: list[Exception] = []

        async def load(part: DirectoryLogs) -> None:
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

    def _take(self, part: DirectoryLogs) -> None:
        folder = part.folder
        try:
            folder.max_open_files = folder.disk.max_open_files() // len(self._parts)
            part.take()
        except BlockingIOError:
            raise LogStartError(
                f"the log directory {folder.path} is in use by another process", may_pass=True
            ) from None
        except OSError as error:
            folder.fail("it cannot be used", error, is_half_done=True)
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None

    def _check_identity(self, broker_id: int | None, *, only_version_0: bool) -> None:
        """The checks and the words of Kafka's ``MetaPropertiesEnsemble.verify``. Raises LogStartError."""
        self.broker_id = broker_id
        for part in self.all_parts:
            meta = part.meta
            if meta is None:
                continue
            path = join(part.folder.path, META_PROPERTIES)
            if only_version_0 and meta.version != 0:
                raise LogStartError(
                    f"Found unexpected version in {path}. ZK-based brokers that are not migrating only support version 0 "
                    "(which is implicit when the `version` field is missing)."
                )
            if meta.cluster_id is not None:
                if self.cluster_id not in (None, meta.cluster_id):
                    raise _wrong_cluster(path, self.cluster_id, meta.cluster_id)
                self.cluster_id = meta.cluster_id
            if meta.broker_id is not None:
                if self.broker_id not in (None, meta.broker_id):
                    raise LogStartError(
                        f"Stored node id {meta.broker_id} doesn't match previous node id {self.broker_id} in {path}. If you "
                        "moved your data, make sure your configured node id matches. If you intend to create a new node, "
                        "you should remove all data in your data directories."
                    )
                self.broker_id = meta.broker_id
            self.zookeeper = self.zookeeper or meta.zookeeper

    async def identify(self, broker_id: int, cluster_id: str, zookeeper: str | None = None) -> None:
        """Write ``meta.properties`` where it does not say so already; ``zookeeper`` is where the cluster's state is.

        Raises LogStartError when the folders belong to another cluster.
        """
        if self.cluster_id not in (None, cluster_id):
            path = next(p.folder.path for p in self._parts if p.meta is not None and p.meta.cluster_id is not None)
            raise _wrong_cluster(join(path, META_PROPERTIES), cluster_id, self.cluster_id)
        self.broker_id, self.cluster_id = broker_id, cluster_id
        for part in self._parts:
            folder, meta = part.folder, part.meta
            if folder.is_offline or (meta is not None and _says_all(meta, zookeeper)):
                continue
            try:
                meta = MetaProperties(broker_id, cluster_id, 0, zookeeper)
                await folder.workers.run(write_meta_properties, folder.disk, folder.path, meta)
            except OSError as error:
                folder.fail("cannot write meta.properties", error, is_half_done=True)
            else:
                part.meta = meta
        self._check_online()

    def _check_online(self) -> None:
        if not self.online:
            failed = "; ".join(f"the log directory {f.path} cannot be used: {f.failure}" for f in self.folders)
            raise LogStartError(failed, may_pass=True)


def _wrong_cluster(path: str, expected: str | None, found: str | None) -> LogStartError:
    return LogStartError(f"Invalid cluster.id in: {path}. Expected {expected}, but read {found}")


def _says_all(meta: MetaProperties, zookeeper: str | None) -> bool:
    """Whether nothing is to be written to ``meta.properties``. What a KRaft node wrote stays, except for a ZooKeeper."""
    if zookeeper is None:
        return meta.cluster_id is not None
    return None not in (meta.cluster_id, meta.broker_id) and meta.version == 0 and meta.zookeeper == zookeeper
