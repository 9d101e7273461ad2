"""Start and stop of a controller-only KRaft node (``process.roles=controller``).

Start: bind the listeners, lock the log directories and read whose they are, open the metadata log, and take part in the quorum.
The node is ready when it accepts connections: without the others of its quorum there is no leader yet. It opens no logs of
partitions. Its metrics and health are served beside it; a console it has not, for that shows what brokers have.

Stop: have another controller lead, end the connections, close the metadata log, and let go of the directories.
"""

from __future__ import annotations

import functools
import logging
import random
from collections.abc import Awaitable, Callable, Collection

import trio

from ..base.addresses import join_host_port
from ..base.config import Config
from ..base.errors import KafkaError
from ..base.network import Network
from ..base.seams import Clock, SystemClock, TrioWorkers, Workers
from ..base.settings import SettingError
from ..controller.quorum.settings import QuorumSettings
from ..controller.raft.voter_set import ReplicaKey
from ..log.disk import Disk, OsDisk
from ..log.log_directories import LogDirectories, LogStartError, metadata_log_dir_of
from ..log.log_directory import LogDirectory
from ..wire.api_keys import ApiKey
from .config_file import load_config
from .controller_listeners import ControllerListeners, controllers_listener
from .controller_role import ControllerRole, bootstrap_of, check_bootstrap
from .dependencies import tcp_network
from .directories.directory_ids import random_directory_id
from .identity import check_roles, configured_broker_id, log_directories
from .listeners.addresses import ListenerAddress
from .listeners.bound_listeners import CannotListenError
from .listeners.flight_recorder import FlightRecorder
from .listeners.log_observers import log_observers
from .listeners.monitor import Monitor
from .raft_manager import RaftManager, run_guarded
from .server import BrokerFailedError, Side, StartError, bind_side, check_distinct, missing_metrics, start_error
from .settings import BrokerSettings

logger = logging.getLogger(__name__)


class ControllerOnlyServer:
    """One controller. ``serve`` runs it to its end; ``stop`` asks for that end."""

    def __init__(
        self,
        config: Config,
        *,
        network: Network | None = None,
        clock: Clock | None = None,
        workers: Workers | None = None,
        disk: Disk | None = None,
        randomness: random.Random | None = None,
        traced: Collection[ApiKey] = (),
    ) -> None:
        """``traced``: the APIs whose requests get a log line each."""
        self._config = load_config(config.properties)  # of its own: the dynamic configs of the controller go there
        self._settings = self._config.settings(BrokerSettings)
        self._workers = workers or TrioWorkers()
        self._network = network or tcp_network(self._config, self._workers)
        self._clock = clock or SystemClock()
        self._disk = disk or OsDisk()
        self._randomness = randomness or random.SystemRandom()
        self._traced = traced
        self._stop_asked = trio.Event()
        self._handing_over = trio.CancelScope()
        self._failure: str | None = None
        self._listeners = ControllerListeners(self._config, self._network, self._workers)
        self.cluster_id = ""
        """Empty until the start has found it."""
        self.role: ControllerRole | None = None
        """The controller, once the start has made it."""
        self.monitor = Monitor()
        self._metrics: Side | None = None
        self._is_accepting = False

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def metrics_address(self) -> str | None:
        """``HOST:PORT`` where metrics are served, if they are."""
        return None if self._metrics is None else join_host_port(self._metrics.host, self._metrics.port)

    def readiness(self) -> dict[str, bool]:
        """The conditions for taking part, each with whether it is fulfilled.

        That there is a leader is none: others of the quorum may be started only once this node is ready, as by Kubernetes.
        """
        return {"metadata_log_opened": self.role is not None, "listeners_open": self._is_accepting}

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """The log directories; ``metadata.log.dir`` may be another one."""
        return log_directories(self._config)

    @property
    def endpoints(self) -> list[ListenerAddress]:
        """The listeners' advertised addresses; none before they are bound."""
        return list(self._listeners.advertised)

    def stop(self) -> None:
        """Ask ``serve`` to end; safe to call twice."""
        self._stop_asked.set()

    def stop_without_handing_over(self) -> None:
        """The same, without waiting for another controller to lead."""
        self.stop()
        self._handing_over.cancel()

    def _fail(self, why: str) -> None:
        self._failure = why
        logger.info("stopping: %s", why)
        self.stop()

    async def serve(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Start, call ``on_ready``, and serve until ``stop``. Raises StartError, BrokerFailedError."""
        try:
            await self._bind()
            serve: Callable[[], Awaitable[None]] = functools.partial(self._serve_bound, on_ready)
            if self._metrics is not None:
                serve = functools.partial(self._metrics.run_beside, serve)
            await serve()
        finally:
            self._listeners.close()
            if self._metrics is not None:
                self._metrics.close()
        if self._failure is not None:
            raise BrokerFailedError(self._failure)

    async def _bind(self) -> None:
        check_distinct(self.data_dirs)
        if self._settings.console_listener is not None:
            raise StartError(
                "console.listener: a controller that is not a broker has no console; use a broker's console, or "
                "'ottla console -b BROKER'"
            )
        try:
            check_roles(self._config)
            await self._listeners.bind()
        except (SettingError, CannotListenError) as error:
            raise start_error(error) from None
        if self._settings.metrics_listener is not None:
            self._metrics = self._make_metrics()
            await bind_side("metrics.listener", self._settings.metrics_listener, self._metrics)
        self.monitor = self._make_monitor()

    def _make_metrics(self) -> Side:
        try:
            from .metrics.controller_only import ControllerCollector
            from .metrics.http import MetricsServer
        except ImportError as error:
            raise missing_metrics(error) from None
        collector = functools.partial(ControllerCollector, self)
        return MetricsServer(self, collector, self._network, self._clock, self._workers)

    async def _serve_bound(self, on_ready: Callable[[], None]) -> None:
        folders = self._folders()
        try:
            await self._serve_in(folders, on_ready)
        finally:
            for part in folders.all_parts:
                part.release()

    def _folders(self) -> LogDirectories:
        def folder(path: str) -> LogDirectory:
            return LogDirectory(self._disk, path, self._clock, self._workers, randomness=self._randomness)

        metadata = self._metadata_dir
        beside = None if metadata in self.data_dirs else folder(metadata)
        return LogDirectories([folder(path) for path in self.data_dirs], beside)

    @property
    def _metadata_dir(self) -> str:
        return metadata_log_dir_of(self._config.settings(QuorumSettings).metadata_log_dir, self.data_dirs)

    async def _serve_in(self, folders: LogDirectories, on_ready: Callable[[], None]) -> None:
        try:
            role = self.role = await self._open(folders)
        except (KafkaError, LogStartError, OSError, SettingError) as error:
            raise start_error(error) from error
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_guarded, role.run, self._fail)
            self._is_accepting = True
            on_ready()
            await self._stop_asked.wait()
            self._is_accepting = False
            with self._handing_over:
                await role.leave()
            nursery.cancel_scope.cancel()

    async def _open(self, folders: LogDirectories) -> ControllerRole:
        """Raises KafkaError, LogStartError, OSError, SettingError."""
        folders.take(configured_broker_id(self._config))
        folders.check_formatted()
        folders.complete_directory_ids(lambda: random_directory_id(self._randomness))
        assert folders.broker_id is not None
        assert folders.cluster_id is not None
        self.cluster_id = folders.cluster_id
        part = next(each for each in folders.all_parts if each.folder.path == self._metadata_dir)
        directory_id = b"" if part.meta is None else part.meta.directory_id
        raft = RaftManager(
            self._config,
            self._network,
            self._clock,
            self._workers,
            self._randomness,
            controllers_listener(self._config, self._workers),
            self._listeners.endpoints,
        )
        key = ReplicaKey(folders.broker_id, directory_id or bytes(16))
        await raft.open(part.folder, [each.folder for each in folders.all_parts], key, folders.cluster_id)
        bootstrap = bootstrap_of(self._disk, self._metadata_dir)
        check_bootstrap(raft.driver, bootstrap)
        return ControllerRole(
            raft, self._listeners, bootstrap, self.monitor, self._clock, self._workers, self._randomness
        )

    def _make_monitor(self) -> Monitor:
        observers = log_observers(self._clock.elapsed, self._traced)
        if self._metrics is not None:
            observers = [self._metrics.requests, *observers]
        recorder = FlightRecorder(self._disk, self.data_dirs[0], self._clock, self._workers)
        return Monitor(observers, recorder, self._clock.elapsed)
