"""The core of a broker in a KRaft cluster: its formatted log directories, and the metadata log it follows.

The order is that of Kafka's SharedServer and BrokerServer, with one difference: lock the folders and read whose they are, open
the metadata log, follow the quorum until the first image is there, take its dynamic configs, and then open the logs. The broker
registers after that (``QuorumCluster``), with the listeners that are in force by then; Kafka's registers before.

The follower goes on until the broker has stopped. If the metadata log cannot be kept, or says what this broker does not
understand, the broker ends.

A node with both roles has its controller on the same Raft node. That begins before the broker waits for its first image, and goes
on until the broker has stopped, which needs a controller to let it go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import trio

from ..controller.configs.broker_configs import BrokerConfigs
from ..controller.quorum.channel import QuorumChannel
from ..controller.quorum.following import LoaderListener, MetadataFollower
from ..controller.quorum.lifecycle import Directories
from ..controller.quorum.loader import MetadataLoader
from ..controller.quorum.metadata_version import KRAFT_VERSION
from ..controller.quorum.settings import QuorumSettings
from ..controller.quorum.snapshot_generator import SnapshotGenerator
from ..controller.raft.driver import RaftDriver
from ..controller.raft.metadata_cleaning import MetadataLogCleaner
from ..controller.raft.voter_set import ReplicaKey
from ..group_coordinator.group_configs import within_bounds
from ..log.checkpoints import read_clean_shutdown
from ..log.disk import Disk
from ..log.log_directories import LogStartError, metadata_log_dir_of
from ..log.log_directory import LogDirectory
from ..metadata.delta import ClusterDelta
from ..wire.schema import ZERO_UUID
from .auth.peer_security import PeerListener
from .broker_core import BrokerCore
from .controller_listeners import ControllerListeners
from .controller_role import ControllerRole, bootstrap_of, check_bootstrap
from .dependencies import BrokerDependencies
from .directories.directory_ids import random_directory_id
from .directories.own_quorum import form_quorum
from .identity import configured_broker_id
from .listeners.monitor import Monitor
from .raft_manager import RaftManager, run_guarded


class QuorumConnection:
    """How a broker reaches the quorum."""

    def __init__(
        self,
        controllers: PeerListener,
        own: ControllerListeners | None = None,
        monitor: Monitor | None = None,
        *,
        is_alone: bool = False,
        forms_itself: bool = False,
    ) -> None:
        self.controllers = controllers
        """The listener of the controllers."""
        self.own = own
        """The listeners of the controller in this process; None where there is no such controller."""
        self.monitor = monitor or Monitor()
        """Counts the connections of that controller."""
        self.is_alone = is_alone
        """Whether no other node can reach that controller."""
        self.forms_itself = forms_itself
        """Whether empty log directories become a quorum of this node."""


class QuorumBrokerCore(BrokerCore):
    """See the module. ``nursery`` has the tasks of the quorum."""

    def __init__(
        self,
        dependencies: BrokerDependencies,
        data_dirs: Sequence[str],
        disk: Disk,
        on_failure: Callable[[str], None],
        nursery: trio.Nursery,
        place: QuorumConnection,
    ) -> None:
        self.settings = dependencies.config.settings(QuorumSettings)
        metadata_dir = metadata_log_dir_of(self.settings.metadata_log_dir, data_dirs)
        super().__init__(dependencies, data_dirs, disk, on_failure, None if metadata_dir in data_dirs else metadata_dir)
        self._metadata_dir = metadata_dir
        self._nursery = nursery
        self._place = place
        self._raft = RaftManager(
            dependencies.config,
            dependencies.network,
            dependencies.clock,
            dependencies.workers,
            dependencies.randomness,
            place.controllers,
            () if place.own is None else place.own.endpoints,
        )
        self.previous_epoch = -1
        """The broker epoch that the last stop has left in all log directories if it was clean, else -1."""
        self.broker_epoch: Callable[[], int] = lambda: -1
        self.loader = MetadataLoader(self._publish)
        self.driver: RaftDriver | None = None
        self._has_let_go = trio.Event()
        self._first_image = trio.Event()

    @property
    def state_log_dir(self) -> LogDirectory:
        """The folder of the metadata log."""
        if self.logs.metadata_log_dir is not None:
            return self.logs.metadata_log_dir
        return next(each for each in self.logs.folders if each.path == self._metadata_dir)

    @property
    def is_alone(self) -> bool:
        return self._place.is_alone

    @property
    def clean_epoch(self) -> int:
        return self.broker_epoch()

    def _awaits_topics(self) -> bool:
        return False

    async def start(self) -> None:
        """Do all of it, in the order above. Raises CorruptFileError, too."""
        config, logs = self._dependencies.config, self.logs
        logs.take(configured_broker_id(config))
        if self._place.forms_itself:
            await self._form_quorum()
        logs.check_formatted()
        logs.complete_directory_ids(lambda: random_directory_id(self._dependencies.randomness))
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
        BrokerConfigs(config, self.metadata, self.broker_id, partial(within_bounds, config)).follow()
        self.update_log_settings()
        if not logs.is_loaded:
            await logs.load()

    async def _form_quorum(self) -> None:
        dependencies, own = self._dependencies, self._place.own
        assert own is not None
        await form_quorum(
            self._disk,
            dependencies.config,
            self.logs,
            self.state_log_dir,
            own.endpoints,
            is_dynamic=not self.settings.voters,
            randomness=dependencies.randomness,
            clock=dependencies.clock,
            workers=dependencies.workers,
        )

    def _read_previous_epoch(self) -> int:
        """All folders have to agree: one that was away may lack what the others had at the stop."""
        epochs = {read_clean_shutdown(self._disk, folder.path) for folder in self.logs.folders}
        (epoch,) = epochs if len(epochs) == 1 else (None,)
        return -1 if epoch is None else epoch

    # --- the quorum ---------------------------------------------------------------------------------------------------

    async def _begin_following(self) -> None:
        dependencies, raft, folder = self._dependencies, self._raft, self.state_log_dir
        key = ReplicaKey(self.broker_id, self.logs.directory_id(folder))
        await raft.open(folder, self.logs.folders, key, self.cluster_id)
        driver = raft.driver
        follower = MetadataFollower(driver, LoaderListener(driver, self.loader), dependencies.workers)
        run = driver.run
        if self._place.own is not None:
            self.controller = self._make_controller(self._place.own)
            run = self.controller.run  # it writes the snapshots and cleans the log, too
        else:
            log, limits = driver.storage.log, raft.log_settings
            generator = SnapshotGenerator(log, limits, dependencies.clock, dependencies.workers, driver.note_snapshot)
            self.loader.on_image = generator.on_metadata_update
            self._nursery.start_soon(generator.run)
            self._nursery.start_soon(
                MetadataLogCleaner(log, limits, dependencies.clock, dependencies.workers, driver.clean).run
            )
        self.driver = driver
        self._nursery.start_soon(self._drive, run)
        self._nursery.start_soon(run_guarded, follower.run, self._on_failure)

    def _make_controller(self, listeners: ControllerListeners) -> ControllerRole:
        dependencies, place = self._dependencies, self._place
        bootstrap = bootstrap_of(self._disk, self._metadata_dir)
        check_bootstrap(self._raft.driver, bootstrap)
        return ControllerRole(
            self._raft,
            listeners,
            bootstrap,
            place.monitor,
            dependencies.clock,
            dependencies.workers,
            dependencies.randomness,
        )

    async def _drive(self, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run_guarded(run, self._on_failure)
        finally:
            self._has_let_go.set()

    def _publish(self, delta: ClusterDelta) -> None:
        """Publish what the log says, with the level of ``kraft.version``, which is not among its records.

        The first delta has the configs that a start needs. The parts that are made with them are told of it when they are there.
        """
        features, driver = delta.features, self.driver
        if features is not None and driver is not None and (level := driver.node.quorum.kraft_version):
            delta = delta._replace(features=features._replace(levels={**features.levels, KRAFT_VERSION: level}))
        if not self._first_image.is_set():
            # Held until ``QuorumCluster`` publishes the whole image: the parts are made meanwhile, and would miss the deltas.
            self.loader.is_held = True
            self._first_image.set()
            delta = delta._replace(controller_id=self.broker_id)
        self.metadata.publish(delta)

    def channel(self, purpose: str) -> QuorumChannel:
        """A way to the active controller."""
        return self._raft.channel(purpose)

    def directories(self) -> Directories:
        """The ids of the log directories, and of those that have failed."""
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
