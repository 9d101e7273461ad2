"""The parts of one broker put together: logs, cluster store, controller, partitions, coordinators.

``start`` brings them up in the order they need each other, ``run_in`` starts their background loops, ``stop`` takes them
down in the reverse order, ending with the clean marks of the data folders.

Which store the cluster's state is in is the ``ClusterHome``'s to say. When a data folder fails that is the store's home, or
every folder has failed, the broker cannot go on: ``on_failure`` is told why. Otherwise the controller is told of a failed
folder as Kafka's ZooKeeper mode does it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence

import trio

from ..base.config import Config
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..controller.allocated_producer_ids import AllocatedProducerIds
from ..controller.broker_configs import BrokerConfigs
from ..controller.channels import BrokerChannel
from ..controller.config_store import ConfigStore
from ..controller.context import LiveBroker
from ..controller.controller import Controller
from ..controller.membership import Membership
from ..controller.producer_ids import ProducerIds
from ..controller.registration import ensure_cluster, report_failed_folder
from ..controller.remote_channel import RemoteChannel
from ..controller.session import BrokerSession
from ..controller.settings import ControllerSettings
from ..controller.store import ClusterStore, SessionExpiredError, StoreError
from ..controller.topic_writer import TopicWriter
from ..controller.znodes import BrokerEndpoint, BrokerRegistration
from ..group_coordinator.coordinator import GroupCoordinator
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..group_coordinator.settings import GroupSettings
from ..handlers.auto_creation import coordinator_topics
from ..handlers.services import Services
from ..handlers.table import ServedApis
from ..log.data_folders import LogStartError
from ..log.disk import Disk
from ..log.log_folder import LogFolder
from ..log.log_manager import LogManager
from ..log.settings import LogCleanerSettings, LogManagerSettings, LogSettings
from ..replication.alter_partition import AlterPartitionManager
from ..replication.broker_client import BrokerClient
from ..replication.controller_channel import ControllerChannel
from ..replication.coordinator_partition_log import CoordinatorPartitionLog
from ..replication.end_markers import EndMarkers
from ..replication.fetch_session import FetchSessionCache
from ..replication.fetchers import Fetchers
from ..replication.log_dir_moves import LogDirMoves
from ..replication.marker_channels import SETTLING_SECONDS, MarkerChannels
from ..replication.metadata_cache import MetadataCache
from ..replication.peers import Peers
from ..replication.replica_manager import ReplicaManager
from ..replication.settings import ReplicationSettings
from ..transaction_coordinator.coordinator import TransactionCoordinator
from ..transaction_coordinator.entries import TransactionEntries
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ..transaction_coordinator.settings import TransactionSettings
from .adoption import adopt_logs
from .cluster_home import ClusterHome
from .controlled_shutdown import hand_over
from .listeners import Endpoint
from .local_channel import LocalChannel
from .settings import BrokerSettings

logger = logging.getLogger(__name__)

_LEAVE_SECONDS = 5.0
"""How long a stop waits for a store that does not answer; it ends the session by itself in the end."""


class Assembly:
    """One broker's parts; ``services`` is what handlers see of them, there once it ``is_started``."""

    services: Services

    def __init__(
        self,
        config: Config,
        broker_id: int,
        data_dirs: Sequence[str],
        disk: Disk,
        clock: Clock,
        workers: Workers,
        randomness: random.Random,
        on_failure: Callable[[str], None],
        served: ServedApis,
        home: ClusterHome,
        network: Network,
        inter_broker_listener: str,
    ) -> None:
        self._config = config
        self._broker_id = broker_id
        self._clock = clock
        self._workers = workers
        self._randomness = randomness
        self._on_failure = on_failure
        self._served = served
        self._home = home
        self._network = network
        self._inter_broker_listener = inter_broker_listener
        self._folder_failed = trio.Event()
        self.cluster_id = ""
        self.is_started = False
        self._session: BrokerSession | None = None
        self._member: Membership | None = None
        self._peers: Peers | None = None
        self._loads: trio.Nursery | None = None
        self._early_loads: list[tuple[str, int, int]] = []
        self.logs = LogManager(
            disk,
            data_dirs,
            config.settings(LogSettings),
            config.settings(LogManagerSettings),
            clock,
            workers,
            randomness,
            config.settings(LogCleanerSettings),
        )
        self.logs.offline_listeners.append(self._note_failed_folder)

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Bring everything up. Raises KafkaError, OSError, SettingError; ``abandon`` then lets go of the data folders."""
        await self.logs.start(self._broker_id)
        store = await self._open_store()
        self.cluster_id = await ensure_cluster(store, self._randomness, self.logs.cluster_id or None)
        await self.logs.set_cluster_id(self.cluster_id)
        configs = ConfigStore(store, self._clock)
        await configs.start()
        config = self._config
        BrokerConfigs(config, configs, self._broker_id).follow()
        metadata = MetadataCache(self.cluster_id)
        self._peers = Peers(self._network, self._broker_id, self._inter_broker_listener, metadata)
        controller = Controller(
            self._broker_id,
            store,
            configs,
            self._channel_to,
            config.settings(ControllerSettings),
            config.settings(LogSettings),
            self._clock,
            self._randomness,
            self._inter_broker_listener,
        )
        to_controller = self._controller_channel(metadata, controller, "alter-partition")
        self._isr_changes = AlterPartitionManager(self._broker_id, to_controller, self._broker_epoch)
        replicas = ReplicaManager(
            self._broker_id,
            self.logs,
            config.settings(LogSettings),
            configs.topic_overrides,
            metadata,
            self._isr_changes,
            config.settings(ReplicationSettings).replica_lag_time_max_ms,
        )
        self._fetchers = replicas.fetchers = self._make_fetchers(self._peers)
        log_dir_moves = LogDirMoves(replicas, self.logs, metadata)
        log = CoordinatorPartitionLog(OFFSETS_TOPIC, replicas, metadata, self._clock, self._workers)
        groups = GroupCoordinator(log, config.settings(GroupSettings), self._clock, self._randomness)
        producer_ids = self._producer_ids(store, metadata, controller)
        end_markers = EndMarkers(replicas, self._clock)
        end_markers.owners[OFFSETS_TOPIC] = groups.end_transaction
        transactions = TransactionCoordinator(
            CoordinatorPartitionLog(TRANSACTIONS_TOPIC, replicas, metadata, self._clock, self._workers),
            config.settings(TransactionSettings),
            self._clock,
            producer_ids,
            MarkerChannels(
                self._broker_id, metadata, end_markers, self._peers, 0 if self._is_alone else SETTLING_SECONDS
            ),
        )
        slots = config.settings(ReplicationSettings).max_incremental_fetch_session_cache_slots
        self.services = Services(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch,
            is_alone=self._is_alone,
            cluster_id=self.cluster_id,
            store_session=store,
            config=config,
            clock=self._clock,
            workers=self._workers,
            logs=self.logs,
            replicas=replicas,
            log_dir_moves=log_dir_moves,
            fetch_sessions=FetchSessionCache(slots, self._randomness),
            fetchers=self._fetchers,
            metadata=metadata,
            controller=controller,
            topic_writer=TopicWriter(store, config, self._randomness),
            configs=configs,
            groups=groups,
            transactions=transactions,
            transaction_entries=TransactionEntries(self._broker_id, metadata, self._peers, transactions),
            end_markers=end_markers,
            producer_ids=producer_ids,
            served=self._served,
        )
        configs.on_topic_config.append(self._topic_config_changed)
        self._settings_changed()
        config.on_change.append(self._settings_changed)
        replicas.leadership_listeners.append(self._leadership_changed)
        metadata.deletion_listeners.append(lambda topic: groups.delete_topics({topic}))
        self._member = Membership(store, self._registration(endpoints), configs, controller, self._clock)
        await self._member.join()
        await self._finish_early_loads()
        self.is_started = True

    @property
    def knows_controller(self) -> bool:
        """Whether somebody is the controller, as far as this broker was told."""
        return self.is_started and self.services.metadata.controller_id >= 0

    @property
    def _is_alone(self) -> bool:
        """Whether the cluster's store is the broker's own, so that no other broker can be in the cluster."""
        return self._home.state_folder(self.logs.folders) is not None

    def _broker_epoch(self) -> int:
        return -1 if self._member is None else self._member.broker_epoch

    def _producer_ids(
        self, store: ClusterStore, metadata: MetadataCache, controller: Controller
    ) -> ProducerIds | AllocatedProducerIds:
        if self._is_alone:
            return ProducerIds(store, self._broker_id)
        channel = self._controller_channel(metadata, controller, "forwarding")
        return AllocatedProducerIds(channel, self._broker_id, self._broker_epoch)

    def _controller_channel(self, metadata: MetadataCache, controller: Controller, purpose: str) -> ControllerChannel:
        assert self._peers is not None
        return ControllerChannel(self._broker_id, metadata, self._peers, controller, purpose)

    def _make_fetchers(self, peers: Peers) -> Fetchers:
        settings = self._config.settings(ReplicationSettings)
        timeout = settings.replica_socket_timeout_ms / 1000

        def connect(broker_id: int) -> BrokerClient:
            return peers.client(broker_id, "fetcher", timeout=timeout, max_in_flight=1)

        return Fetchers(self._broker_id, connect, settings, self._broker_epoch)

    def _channel_to(self, broker: LiveBroker) -> BrokerChannel:
        """How this broker, as the controller, tells a broker what it decides."""
        registration = broker.registration
        if registration.broker_id == self._broker_id:
            return LocalChannel(self.services)
        timeout = self._config.settings(ControllerSettings).controller_socket_timeout_ms / 1000
        return RemoteChannel(
            self._network, registration, self._inter_broker_listener, f"controller-{self._broker_id}", timeout
        )

    async def _open_store(self) -> BrokerSession:
        folders = self.logs.folders
        state_folder = self._home.state_folder(folders)
        if state_folder is not None and state_folder.is_offline:
            why = f"{state_folder.path} has the cluster's state and cannot be used: {state_folder.failure}"
            raise LogStartError(why)
        await self._home.open(folders)
        session = self._session = BrokerSession(self._home.connect, await self._home.connect())
        if state_folder is not None:
            # Such a store is this broker's alone, and knows no topics when another broker has filled the folder.
            topics = coordinator_topics(self._config, most_replicas=1)
            configs = {name: topic.configs for name, topic in topics.items()}
            await adopt_logs(session, self._broker_id, self.logs.logs(), configs, self._randomness)
        return session

    def _note_failed_folder(self, folder: LogFolder) -> None:
        if self.logs.is_offline:
            self._on_failure(f"every data folder has failed, {folder.path} with: {folder.failure}")
        elif folder is self._home.state_folder(self.logs.folders):
            self._on_failure(f"{folder.path}, which has the cluster's state, has failed: {folder.failure}")
        self._folder_failed.set()

    async def _report_failed_folders(self) -> None:
        """Tell the controller, whoever that is, of each failed folder."""
        assert self._session is not None
        while True:
            await self._folder_failed.wait()
            self._folder_failed = trio.Event()
            try:
                await report_failed_folder(self._session, self._broker_id)
            except SessionExpiredError:
                pass  # it hears when the broker registers again, because it then asks for all of its replicas
            except StoreError as error:
                logger.error("The controller cannot be told of a failed data folder: %s", error)

    def _registration(self, endpoints: Sequence[Endpoint]) -> BrokerRegistration:
        return BrokerRegistration(
            self._broker_id,
            tuple(BrokerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in endpoints),
            self._config.settings(BrokerSettings).rack,
        )

    def _topic_config_changed(self, topic: str, overrides: Mapping[str, str]) -> None:
        self.services.replicas.update_topic_settings(topic)

    def _settings_changed(self) -> None:
        """Settings were changed while the broker runs: tell those who do not ask each time."""
        config, settings = self._config, self._config.settings(LogSettings)
        self.logs.update_settings(settings, config.settings(LogManagerSettings), config.settings(LogCleanerSettings))
        self.services.replicas.update_settings(settings)
        self.services.controller.update_log_settings(settings)

    def _leadership_changed(self, topic: str, partition: int, leader_epoch: int | None) -> None:
        """A partition of a coordinator came or went."""
        coordinator = self._coordinators().get(topic)
        if coordinator is None:
            return
        if leader_epoch is None:
            coordinator.unload(partition)
        elif self._loads is None:
            self._early_loads.append((topic, partition, leader_epoch))
        else:
            self._loads.start_soon(coordinator.load, partition, leader_epoch)

    def _coordinators(self) -> dict[str, GroupCoordinator | TransactionCoordinator]:
        """By the topic they keep their state in."""
        return {OFFSETS_TOPIC: self.services.groups, TRANSACTIONS_TOPIC: self.services.transactions}

    async def _finish_early_loads(self) -> None:
        """Load what the start itself made this broker the leader of, before the first client comes."""
        early, self._early_loads = self._early_loads, []
        for topic, partition, leader_epoch in early:
            await self._coordinators()[topic].load(partition, leader_epoch)

    def run_in(self, nursery: trio.Nursery) -> None:
        """Start the background loops; if one of them dies, the broker stops loudly."""
        self._loads = nursery
        nursery.start_soon(self.logs.run)
        nursery.start_soon(self.services.log_dir_moves.run)
        nursery.start_soon(self.services.replicas.run)
        nursery.start_soon(self._fetchers.run)
        nursery.start_soon(self._isr_changes.run)
        nursery.start_soon(self._report_failed_folders)
        nursery.start_soon(self.services.configs.run)
        nursery.start_soon(self.services.controller.run)
        assert self._member is not None
        nursery.start_soon(self._member.run)
        if isinstance(self.services.producer_ids, AllocatedProducerIds):
            nursery.start_soon(self.services.producer_ids.run)
        nursery.start_soon(self.services.groups.run)
        nursery.start_soon(self.services.transactions.run)

    async def hand_over(self) -> None:
        """Before the stop, while everything works still: have other brokers lead instead of this one."""
        if not self._is_alone:
            settings, metadata = self._config.settings(BrokerSettings), self.services.metadata
            channel = self._controller_channel(metadata, self.services.controller, "controlled-shutdown")
            await hand_over(channel, metadata, self._broker_id, self._broker_epoch(), settings)

    async def stop(self) -> None:
        """Flush, mark the data folders clean, and let go of everything.

        The broker leaves the cluster last (KafkaServer ``shutdown``); a store of its own ends before the folder that it is in.
        """
        self._loads = None
        self.services.groups.stop()
        self.services.transactions.stop()
        if self._peers is not None:
            self._peers.close()
        if self._is_alone:
            await self._leave()
            await self.logs.stop()
        else:
            await self.logs.stop()
            await self._leave()

    async def _leave(self) -> None:
        """End the session at the cluster's store: the broker is not registered any more."""
        if self._session is not None:
            with trio.move_on_after(_LEAVE_SECONDS):
                await self._session.close()
        self._home.close()

    async def abandon(self) -> None:
        """After a start that failed: let go of what was taken, marking nothing clean."""
        if self._session is not None:
            await self._session.close()
        self._home.close()
        await self.logs.stop()
