"""A running broker: its listeners, its start and its stop.

Start: bind the listeners (a port in use is found before any file is touched), lock the log directories, open the cluster store,
recover the logs, join the cluster, become controller, load the coordinators, and only then accept connections. Where
another broker is the controller, its requests wait in the listener's backlog until then; the broker is ready once it was
first told of the cluster.

Stop: the controller moves leaderships to other brokers, if there are some; then connections end, and after them the background
loops, the controller among them (each of the two has a nursery); the logs are flushed and marked clean, and the broker leaves the
cluster.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

import trio

from ..base.addresses import join_host_port, split_host_port
from ..base.config import Config
from ..base.errors import KafkaError
from ..base.network import Network
from ..base.repeated_lines import sum_up_while_running
from ..base.seams import Clock, SystemClock, TrioWorkers, Workers
from ..base.secret_names import shown
from ..base.settings import SettingError
from ..base.wording import explained, how_to_install
from ..controller.quorum.settings import CONTROLLER_ROLE
from ..controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
from ..handlers.call import Call, RequestObserver
from ..handlers.table import SERVED, ServedApis
from ..log.disk import Disk, OsDisk
from ..log.log_directories import LogStartError
from ..replication.metadata_cache import MetadataCache
from ..wire.api_keys import ApiKey
from .assembly import Assembly, ClusterKind
from .broker_state import BrokerLifecycleState
from .config_file import load_config
from .dependencies import BrokerDependencies, tcp_network
from .identity import check_broker_id, check_roles, forms_itself, has_role, is_lone, log_directories
from .listeners.acceptor import Acceptor
from .listeners.addresses import ListenerAddress
from .listeners.bound_listeners import BoundListeners, CannotListenError
from .listeners.connection import ClientConnection
from .listeners.connection_limits import ConnectionLimits
from .listeners.flight_recorder import FlightRecorder
from .listeners.listener_changes import ListenerChanges
from .listeners.log_observers import log_observers
from .listeners.monitor import Monitor
from .settings import BrokerSettings

if TYPE_CHECKING:
    from ..controller.zookeeper.store.cluster_home import ClusterHome
    from .controller_role import ControllerRole
    from .quorum_broker_core import QuorumConnection

logger = logging.getLogger(__name__)

_LAST_RESPONSES_SECONDS = 3.0
_JOIN_SECONDS = 30.0


class StartError(Exception):
    """The broker cannot start; ``str()`` is one line for the user.

    ``may_pass``: the settings are not the cause, and another try may succeed.
    """

    def __init__(self, why: str, *, may_pass: bool = False) -> None:
        super().__init__(why)
        self.may_pass = may_pass


class BrokerFailedError(Exception):
    """The broker had to stop, because it cannot store anything any more; ``str()`` is one line for the user."""


class Side(Protocol):
    """A server beside the broker (metrics, console), on its loop, from before its start until it has stopped."""

    @property
    def requests(self) -> RequestObserver:
        """The observer of the broker's requests."""
        ...

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...

    async def bind(self, host: str, port: int) -> None:
        """Bind the address. Raises OSError."""
        ...

    def close(self) -> None:
        """Close the listener; safe to call twice."""
        ...

    async def run_beside(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Serve until ``serve`` ends; what it raises is raised."""
        ...


MakeSide = Callable[["BrokerServer", Network, Clock, Workers], Side]
"""May raise StartError."""


class BrokerServer:
    """One broker. ``serve`` runs it to its end; ``stop`` asks for that end."""

    def __init__(
        self,
        config: Config,
        *,
        network: Network | None = None,
        clock: Clock | None = None,
        workers: Workers | None = None,
        disk: Disk | None = None,
        randomness: random.Random | None = None,
        home: ClusterHome | None = None,
        served: ServedApis = SERVED,
        traced: Collection[ApiKey] = (),
        make_console: MakeSide | None = None,
    ) -> None:
        """``home``: the store with the cluster's state; None: at ``zookeeper.connect``, or without it at a quorum.
        ``traced``: the APIs whose requests get a log line each; ``make_console`` makes what serves ``console.listener``.
        """
        self.config = config
        self.settings = config.settings(BrokerSettings)
        self._workers = workers or TrioWorkers()
        self._network = network or tcp_network(config, self._workers)
        self._clock = clock or SystemClock()
        self._disk = disk or OsDisk()
        self._randomness = randomness or random.SystemRandom()
        self._home = home or self._configured_home()
        self._served = served
        self._stop_asked = trio.Event()
        self._failure: str | None = None
        self._traced = traced
        self._make_console = make_console
        self._metrics: Side | None = None
        self._console: Side | None = None
        self._is_accepting = False
        self.monitor = Monitor()
        self._listeners = BoundListeners(config, self._network, self._workers)
        self._quorum_place: QuorumConnection | None = None
        self.assembly: Assembly | None = None
        self._handing_over = trio.CancelScope()
        self._acceptor: Acceptor | None = None

    def _configured_home(self) -> ClusterHome | None:
        zookeeper = self.config.settings(ZooKeeperSettings)
        if not zookeeper.connect or not is_lone(self.config):
            return None
        from ..controller.zookeeper.store.cluster_home import ZooKeeperHome

        return ZooKeeperHome(zookeeper)

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """The log directories; the first one has the cluster's state, if the broker keeps it itself."""
        return log_directories(self.config)

    @property
    def broker_id(self) -> int:
        """-1 until the start has found it (``identity``)."""
        return -1 if self.assembly is None else self.assembly.broker_id

    @property
    def cluster_id(self) -> str:
        """Empty until the start has found it."""
        return "" if self.assembly is None else self.assembly.cluster_id

    @property
    def controller(self) -> ControllerRole | None:
        """The node's own controller of a quorum, once the start has made it."""
        return None if self.assembly is None else self.assembly.controller

    @property
    def endpoints(self) -> list[ListenerAddress]:
        """The listeners' advertised addresses; none before they are bound."""
        return self._listeners.advertised

    @property
    def bootstrap_servers(self) -> str:
        """The advertised address of the first listener."""
        return join_host_port(self.endpoints[0].host, self.endpoints[0].port)

    @property
    def metrics_address(self) -> str | None:
        """``HOST:PORT`` where metrics are served, if they are."""
        return None if self._metrics is None else join_host_port(self._metrics.host, self._metrics.port)

    @property
    def console_address(self) -> str | None:
        """``HOST:PORT`` where the console is served, if it is."""
        return None if self._console is None else join_host_port(self._console.host, self._console.port)

    @property
    def _sides(self) -> list[Side]:
        return [side for side in (self._metrics, self._console) if side is not None]

    def connections(self) -> list[ClientConnection]:
        """The open connections of clients."""
        return [] if self._acceptor is None else self._acceptor.connections()

    def readiness(self) -> dict[str, bool]:
        """The conditions for serving clients, each with whether it is fulfilled. A broker that is to stop wants no new ones."""
        assembly = self.assembly
        return {
            "logs_loaded": assembly is not None and assembly.logs.is_loaded,
            "controller_elected": assembly is not None and assembly.knows_controller,
            "listeners_open": self._is_accepting and not self._stop_asked.is_set(),
        }

    @property
    def state(self) -> BrokerLifecycleState:
        """How far the broker is; SHUTTING_DOWN also after its end."""
        if self._stop_asked.is_set():
            return (
                BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN
                if self._is_accepting
                else BrokerLifecycleState.SHUTTING_DOWN
            )
        return BrokerLifecycleState.RUNNING if self._is_accepting else BrokerLifecycleState.STARTING

    def stop(self) -> None:
        """Ask ``serve`` to end; safe to call twice."""
        self._stop_asked.set()

    def stop_without_handing_over(self) -> None:
        """The same, without waiting for a controller to move this broker's leaderships. The logs are flushed all the same."""
        self.stop()
        self._handing_over.cancel()

    def _fail(self, why: str) -> None:
        """The first cause is told: what fails after it fails because of it."""
        self._failure = self._failure or why
        logger.info("stopping: %s", why)  # info: the error itself was logged before, and ``serve`` raises it
        self.stop()

    async def serve(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Start, call ``on_ready``, and serve until ``stop``. Raises StartError, BrokerFailedError."""
        try:
            await self._bind()
            if self.settings.metrics_listener is not None:
                self._metrics = await self._bind_side("metrics.listener", self.settings.metrics_listener, _make_metrics)
            if self.settings.console_listener is not None:
                make = self._make_console or _make_no_console
                self._console = await self._bind_side("console.listener", self.settings.console_listener, make)
            self.monitor = self._make_monitor(self._sides)
            if self._quorum_place is not None and self._metrics is not None:
                self._quorum_place.monitor = self._make_monitor([self._metrics])
            self._log_start()
            serve: Callable[[], Awaitable[None]] = functools.partial(self._serve_bound, on_ready)
            for side in self._sides:
                serve = functools.partial(side.run_beside, serve)
            await serve()
        finally:
            self._listeners.close()
            if self._quorum_place is not None and self._quorum_place.own is not None:
                self._quorum_place.own.close()
            for side in self._sides:
                side.close()
        if self._failure is not None:
            raise BrokerFailedError(self._failure)

    async def _bind(self) -> None:
        check_distinct(self.data_dirs)
        try:
            if self._home is None:
                await self._bind_in_quorum()
            else:
                if self._home.zookeeper is not None:
                    check_broker_id(self.config)
                await self._listeners.bind(is_alone=False)
            self._listener_changes = ListenerChanges(self.config, self._listeners)
        except (SettingError, CannotListenError) as error:
            raise start_error(error) from None

    async def _bind_in_quorum(self) -> None:
        """Raises SettingError, CannotListenError."""
        from .controller_listeners import ControllerListeners, controller_names, controllers_listener
        from .quorum_broker_core import QuorumConnection

        is_by_itself = is_lone(self.config)
        if not is_by_itself:
            check_roles(self.config)
        own, names = None, set[str]()
        if is_by_itself or has_role(self.config, CONTROLLER_ROLE):
            own = ControllerListeners(load_config(self.config.properties), self._network, self._workers)
            names = {*controller_names(self.config)}
        await self._listeners.bind(is_alone=is_by_itself, of_controller=names)
        self._quorum_place = QuorumConnection(
            controllers_listener(self.config, self._workers),
            own,
            self._make_monitor([]),
            is_alone=is_by_itself,
            forms_itself=forms_itself(self.config),
        )
        if own is not None:
            await own.bind()

    async def _bind_side(self, name: str, listener: str, make: MakeSide) -> Side:
        side = make(self, self._network, self._clock, self._workers)
        await bind_side(name, listener, side)
        return side

    def _make_monitor(self, sides: Sequence[Side]) -> Monitor:
        observers = [*(side.requests for side in sides), *log_observers(self._clock.elapsed, self._traced)]
        recorder = FlightRecorder(self._disk, self.data_dirs[0], self._clock, self._workers)
        return Monitor(observers, recorder, self._clock.elapsed, keeps_activity=self._console is not None)

    def _log_start(self) -> None:
        """Log settings, folders and listeners, before anything is opened."""
        given = ", ".join(f"{name}={shown(name, value)}" for name, value in sorted(self.config.effective().items()))
        logger.debug("Settings given, the others being the defaults: %s", given or "none")
        logger.debug("Log directories: %s", ", ".join(self.data_dirs))
        logger.debug("Advertised listeners: %s", ", ".join(map(str, self.endpoints)))

    async def _serve_bound(self, on_ready: Callable[[], None]) -> None:
        dependencies = BrokerDependencies(
            self.config,
            self._network,
            self._clock,
            self._workers,
            self._randomness,
            self._served,
            self._listeners.inter_broker,
            self._listeners.control_plane,
        )
        failure: StartError | None = None
        async with trio.open_nursery() as longest:
            try:
                kind = self._kind_of_cluster(dependencies, longest)
                assembly = self.assembly = Assembly(dependencies, kind, self._fail)
                if await self._start(assembly):
                    await self._serve_started(assembly, on_ready)
            except StartError as error:
                failure = error  # as it is, and not in a group of the nursery's
            longest.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def _kind_of_cluster(self, dependencies: BrokerDependencies, longest: trio.Nursery) -> ClusterKind:
        """``longest`` has the tasks of a broker of KRaft that go on from before its start until it has stopped."""
        if self._quorum_place is not None:
            from .quorum_broker_core import QuorumBrokerCore
            from .quorum_components import QuorumBrokerComponents

            quorum = QuorumBrokerCore(dependencies, self.data_dirs, self._disk, self._fail, longest, self._quorum_place)
            return ClusterKind(quorum, lambda: QuorumBrokerComponents(dependencies, quorum, longest))
        from .zookeeper_broker_core import (
            ZooKeeperBrokerCore,  # so that a node imports the parts of its own kind of cluster
        )
        from .zookeeper_components import ZooKeeperBrokerComponents

        assert self._home is not None
        store = ZooKeeperBrokerCore(dependencies, self.data_dirs, self._disk, self._home, self._fail)
        return ClusterKind(store, lambda: ZooKeeperBrokerComponents(dependencies, store))

    async def _serve_started(self, assembly: Assembly, on_ready: Callable[[], None]) -> None:
        try:
            async with trio.open_nursery() as background:
                assembly.run_in(background)
                background.start_soon(sum_up_while_running, self.monitor.closings, assembly.services.absent_topics)
                names = self._listeners.names()
                limits = ConnectionLimits(self.config, self._listeners.inter_broker.name, names)
                acceptor = self._acceptor = Acceptor(
                    assembly.services, functools.partial(Call, assembly.services), self.monitor, limits
                )
                async with trio.open_nursery() as connections:
                    acceptor.start(self._listeners.served, connections)
                    connections.start_soon(
                        self._listener_changes.follow, acceptor, limits, assembly.register, connections
                    )
                    self._is_accepting = True
                    connections.start_soon(self._tell_ready, assembly.services.metadata, on_ready)
                    await self._stop_asked.wait()
                    # Before the listeners close: clients learn from this broker who leads its partitions now.
                    if self._failure is None:
                        with self._handing_over:
                            await assembly.run_controlled_shutdown()
                    await self._end_connections(acceptor)
                    connections.cancel_scope.cancel()
                await assembly.resign()
                background.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await assembly.stop()

    async def _start(self, assembly: Assembly) -> bool:
        """Start; returns False where a stop was asked for meanwhile, which ends the start. Raises StartError."""
        failure: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cancel_at_stop, nursery.cancel_scope)
                try:
                    await assembly.start(self._listen)
                except (KafkaError, LogStartError, OSError, SettingError) as error:
                    failure = error
                nursery.cancel_scope.cancel()
        finally:
            if not assembly.is_started:
                with trio.CancelScope(shield=True):
                    await assembly.abandon()
        if failure is not None:
            raise start_error(failure) from failure
        return assembly.is_started

    async def _listen(self) -> list[ListenerAddress]:
        """The advertised addresses, after binding the listeners that were set while the broker ran before."""
        await self._listener_changes.take_over()
        return self.endpoints

    async def _cancel_at_stop(self, scope: trio.CancelScope) -> None:
        await self._stop_asked.wait()
        scope.cancel()

    async def _tell_ready(self, metadata: MetadataCache, on_ready: Callable[[], None]) -> None:
        """Call ``on_ready`` once the controller has told this broker of the cluster, over a listener that is open already."""
        with trio.move_on_after(_JOIN_SECONDS) as waiting:
            await metadata.wait_initialized()
        if waiting.cancelled_caught:
            logger.warning("No controller has sent the cluster's state to this broker for %g s", _JOIN_SECONDS)
        on_ready()

    async def _end_connections(self, acceptor: Acceptor) -> None:
        """Accept no more connections, answer the requests in flight, and wait a moment for the responses to be sent."""
        self._is_accepting = False
        self._listeners.close()
        assert self.assembly is not None
        acceptor.stop()
        # Long polls and members of a rebalance would otherwise wait for others, and their connections with them.
        self.assembly.services.replicas.release_waiters()
        self.assembly.services.groups.stop()
        with trio.move_on_after(_LAST_RESPONSES_SECONDS):
            await acceptor.wait_empty()


def _make_metrics(server: BrokerServer, network: Network, clock: Clock, workers: Workers) -> Side:
    try:
        from .metrics.collector import BrokerCollector
        from .metrics.http import MetricsServer
        from .metrics.machine import MachineMetrics, parse_others
    except ImportError as error:
        raise missing_metrics(error) from None
    others = parse_others(server.settings.machine_metrics)
    machine = MachineMetrics(server.settings.node_id, others, workers) if others else None
    return MetricsServer(server, functools.partial(BrokerCollector, server), network, clock, workers, machine)


def missing_metrics(error: ImportError) -> StartError:
    """What a user is told where the part of the package for metrics is not installed."""
    return StartError(f"metrics need {how_to_install('metrics')}: {error}")


async def bind_side(name: str, listener: str, side: Side) -> None:
    """Bind a side to the address ``listener``, of the setting ``name``. Raises StartError."""
    try:
        host, port = split_host_port(listener)
    except ValueError as error:
        raise StartError(f"{name}: {error}") from None
    try:
        await side.bind(host, port)
    except OSError as error:
        refusal = CannotListenError(host, port, error, f"--{name.removesuffix('.listener')} or {name}")
        raise StartError(str(refusal), may_pass=refusal.may_pass) from None


def _make_no_console(server: BrokerServer, network: Network, clock: Clock, workers: Workers) -> Side:
    raise StartError("console.listener: the console is served by ottla serve only")


def check_distinct(data_dirs: Collection[str]) -> None:
    """Raises StartError where two log directories are one."""
    if len({os.path.realpath(path) for path in data_dirs}) < len(data_dirs):
        raise StartError("log.dirs names a directory twice")


def start_error(error: Exception) -> StartError:
    """What a user is told of an error that has ended a start."""
    may_pass = isinstance(error, LogStartError | CannotListenError) and error.may_pass
    return StartError(_why(error), may_pass=may_pass)


def _why(error: Exception) -> str:
    if isinstance(error, KafkaError):
        return error.message or error.code.name
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return explained(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
