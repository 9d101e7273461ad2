"""The foundation of a broker in a cluster of KRaft: its formatted folders, and the quorum's metadata log, which it follows.

The order is that of Kafka's SharedServer and BrokerServer, with one difference: lock the folders and read whose they are, open
the metadata log, follow the quorum until the first image is there, take its dynamic configs, and then open the logs. The broker
registers after that (``QuorumCluster``), with the listeners that are in force by then; Kafka's registers before.

The follower goes on until the broker has stopped. If the metadata log cannot be kept, or says what this broker does not
understand, the broker ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import trio

from ..base.errors import KafkaError
from ..base.settings import SettingError
from ..controller.broker_configs import BrokerConfigs
from ..controller.quorum.channel import QuorumChannel
from ..controller.quorum.following import LoaderListener, MetadataFollower
from ..controller.quorum.lifecycle import Directories
from ..controller.quorum.loader import MetadataLoader
from ..controller.quorum.metadata_version import KRAFT_VERSION
from ..controller.quorum.registrations import ReplayError
from ..controller.quorum.settings import QuorumSettings
from ..controller.quorum.snapshot_generator import SnapshotGenerator
from ..controller.raft.driver import RaftDriver
from ..controller.raft.metadata_cleaning import MetadataLogCleaner
from ..controller.raft.metadata_log import MetadataLog
from ..controller.raft.node import RaftIdentity, RaftNode
from ..controller.raft.settings import MetadataLogSettings, RaftTimes
from ..controller.raft.storage import RaftStorage
from ..controller.raft.voter_set import ReplicaKey, VoterSet
from ..controller.raft.voters import ControllerAddress, parse_addresses, parse_static_voters
from ..log.checkpoints import CorruptFileError, read_clean_shutdown
from ..log.data_folders import LogStartError, metadata_folder_of
from ..log.disk import Disk, join
from ..log.files import METADATA_LOG_FOLDER
from ..log.log_folder import LogFolder
from ..metadata.delta import ClusterDelta
from ..replication.broker_client import BrokerClient
from ..wire.schema import ZERO_UUID
from .format_folders import random_directory_id
from .foundation import Foundation
from .identity import configured_broker_id
from .peer_security import PeerListener
from .surroundings import Surroundings


class QuorumFoundation(Foundation):
    """``nursery`` has the task that follows the quorum; ``controllers`` is how the controllers' listener is reached.

    ``previous_epoch`` is the broker epoch that the last stop has left in all folders if it was clean, else -1.
    """

    def __init__(
        self,
        around: Surroundings,
        data_dirs: Sequence[str],
        disk: Disk,
        on_failure: Callable[[str], None],
        nursery: trio.Nursery,
        controllers: PeerListener,
    ) -> None:
        self.settings = around.config.settings(QuorumSettings)
        metadata_dir = metadata_folder_of(self.settings.metadata_log_dir, data_dirs)
        super().__init__(around, data_dirs, disk, on_failure, None if metadata_dir in data_dirs else metadata_dir)
        self._metadata_dir = metadata_dir
        self._nursery = nursery
        self._controllers = controllers
        self.log_settings = around.config.settings(MetadataLogSettings)
        self.previous_epoch = -1
        self.broker_epoch: Callable[[], int] = lambda: -1
        self.loader = MetadataLoader(self._publish)
        self.driver: RaftDriver | None = None
        self._has_let_go = trio.Event()
        self._first_image = trio.Event()

    @property
    def state_folder(self) -> LogFolder:
        """The folder of the metadata log."""
        if self.logs.metadata_folder is not None:
            return self.logs.metadata_folder
        return next(each for each in self.logs.folders if each.path == self._metadata_dir)

    @property
    def is_alone(self) -> bool:
        return False

    @property
    def clean_epoch(self) -> int:
        return self.broker_epoch()

    def _awaits_topics(self) -> bool:
        return False

    async def start(self) -> None:
        """Do all of it, in the order above. Raises CorruptFileError, too."""
        config, logs = self._around.config, self.logs
        logs.take(configured_broker_id(config))
        logs.check_formatted()
        logs.complete_directory_ids(lambda: random_directory_id(self._around.randomness))
        assert logs.broker_id is not None
        assert logs.cluster_id is not None
        self.broker_id, self.metadata.cluster_id = logs.broker_id, logs.cluster_id
        self.previous_epoch = self._read_previous_epoch()
        await self._begin_following()
        with trio.move_on_after(self.settings.initial_registration_timeout_ms / 1000) as waiting:
            await self._first_image.wait()
        if waiting.cancelled_caught:
            raise LogStartError(
                "the quorum's controllers have not been reached, or have no leader: "
                f"{', '.join(self.settings.bootstrap_servers or self.settings.voters)}",
                may_pass=True,
            )
        BrokerConfigs(config, self.metadata, self.broker_id).follow()
        self.update_log_settings()
        await logs.load()

    def _read_previous_epoch(self) -> int:
        """All folders have to agree: one that was away may lack what the others had at the stop."""
        epochs = {read_clean_shutdown(self._disk, folder.path) for folder in self.logs.folders}
        (epoch,) = epochs if len(epochs) == 1 else (None,)
        return -1 if epoch is None else epoch

    # --- the quorum ---------------------------------------------------------------------------------------------------

    async def _begin_following(self) -> None:
        settings, folder = self.settings, self.state_folder
        folder.check_online()
        self._check_place(folder)
        try:
            voters, bootstrap = parse_static_voters(settings.voters), parse_addresses(settings.bootstrap_servers)
        except ValueError as error:
            raise SettingError("controller.quorum.bootstrap.servers", "", str(error)) from None
        if not voters and not bootstrap:
            raise SettingError(
                "controller.quorum.bootstrap.servers",
                "",
                "a broker of a cluster of KRaft needs the addresses of controllers",
            )
        log = MetadataLog(folder, self.log_settings)
        try:
            await log.open()
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None
        around, limits = self._around, self.log_settings
        node = self._raft_node(log, voters, bootstrap)
        driver = RaftDriver(node, RaftStorage(log), self._client("raft"), around.clock, around.workers)
        follower = MetadataFollower(driver, LoaderListener(driver, self.loader), around.workers)
        generator = SnapshotGenerator(log, limits, around.clock, around.workers, driver.note_snapshot)
        self.loader.on_image = generator.take_image
        self._nursery.start_soon(self._drive, driver)
        self._nursery.start_soon(self._guard, follower.run)
        self._nursery.start_soon(generator.run)
        self._nursery.start_soon(MetadataLogCleaner(log, limits, around.clock, around.workers, driver.clean).run)
        self.driver = driver

    def _raft_node(
        self, log: MetadataLog, voters: Mapping[int, ControllerAddress], bootstrap: Sequence[ControllerAddress]
    ) -> RaftNode:
        key = ReplicaKey(self.broker_id, self.logs.directory_id(self.state_folder))
        listener = self._controllers.name
        return RaftNode(
            RaftIdentity(self.cluster_id, key, (), listener, may_vote=False),
            RaftTimes(request_timeout_ms=self.settings.request_timeout_ms),
            log.outline(),
            bootstrap,
            VoterSet.of_addresses(voters, listener),
            self._around.randomness,
        )

    def _check_place(self, folder: LogFolder) -> None:
        """Refuse to pass over a metadata log elsewhere: ``metadata.log.dir`` was changed. Raises LogStartError."""
        for other in self.logs.folders:
            path = join(other.path, METADATA_LOG_FOLDER)
            if other is not folder and not other.is_offline and self._disk.is_dir(path):
                raise LogStartError(
                    f"Found unexpected metadata location in data directory `{path}` (the configured metadata directory is "
                    f"{folder.path})."
                )

    async def _drive(self, driver: RaftDriver) -> None:
        try:
            await self._guard(driver.run)
        finally:
            self._has_let_go.set()

    async def _guard(self, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except (KafkaError, OSError, CorruptFileError, ReplayError) as error:
            text = error.message if isinstance(error, KafkaError) else str(error)
            self._on_failure(f"the metadata log cannot be followed any more: {text}")

    def _publish(self, delta: ClusterDelta) -> None:
        """Publish what the log says, with the level of ``kraft.version``, which is not among its records.

        The first delta has the configs that a start needs. The parts that are made with them are told of it when they are there.
        """
        features, driver = delta.features, self.driver
        if features is not None and driver is not None and (level := driver.node.log.quorum.kraft_version):
            delta = delta._replace(features=features._replace(levels={**features.levels, KRAFT_VERSION: level}))
        if not self._first_image.is_set():
            self.loader.is_held = True
            self._first_image.set()
            delta = delta._replace(controller_id=self.broker_id)
        self.metadata.publish(delta)

    def _client(self, purpose: str) -> Callable[[ControllerAddress], BrokerClient]:
        """Makes connections to controllers, of one purpose each."""
        around, timeout = self._around, self.settings.request_timeout_ms / 1000
        name = f"broker-{self.broker_id}-{purpose}"

        def connect(address: ControllerAddress) -> BrokerClient:
            secure = self._controllers.secure
            return BrokerClient(around.network, *address, name, timeout=timeout, max_in_flight=1, secure=secure)

        return connect

    def channel(self, purpose: str) -> QuorumChannel:
        """A way to the active controller."""
        assert self.driver is not None
        node = self.driver.node
        return QuorumChannel(lambda: node.leader_address, self._client(purpose))

    def directories(self) -> Directories:
        """The ids of the data folders, and of those that have failed."""
        folders = self.logs.folders
        ids = [self.logs.directory_id(folder) for folder in folders if not folder.is_offline]
        offline = [self.logs.directory_id(folder) for folder in folders if folder.is_offline]
        return Directories(sorted([*ids, *offline]), [each for each in offline if each != ZERO_UUID])

    async def close(self) -> None:
        """End the tasks, and wait until the metadata log is closed."""
        self._nursery.cancel_scope.cancel()
        if self.driver is not None:
            with trio.CancelScope(shield=True):
                await self._has_let_go.wait()
