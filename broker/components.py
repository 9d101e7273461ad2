"""Builds the parts of one broker in dependency order: its place in the cluster, partitions, coordinators.

They do not run yet, and know nothing of the cluster: the ``Assembly`` starts them. What depends on the kind of cluster is
made by a subclass: ``ZooKeeperBrokerComponents``, ``QuorumBrokerComponents``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..base.errors import ErrorCode, KafkaError
from ..base.loop_turns import LoopTurns
from ..base.repeated_lines import RepeatedLines
from ..base.wording import counted
from ..controller.cluster import ClusterCommands, ClusterMember
from ..controller.configs.broker_passwords import StoredPasswords
from ..controller.producer_ids import ProducerIdSource
from ..group_coordinator.consumer_group_settings import ConsumerGroupSettings
from ..group_coordinator.coordinator import GroupCoordinator
from ..group_coordinator.group_configs import group_times
from ..group_coordinator.group_context import GroupContext
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..group_coordinator.settings import GroupSettings
from ..group_coordinator.share_group_settings import ShareGroupSettings
from ..group_coordinator.topics import TopicSizes
from ..handlers.auto_creation import create_coordinator_topic
from ..handlers.services import Services
from ..handlers.table import ServedApis, guarded
from ..log.settings import LogSettings
from ..metadata.types import VersionRange
from ..replication.alter_partition import AlterPartitionManager
from ..replication.broker_client import BrokerClient
from ..replication.controller_channel import RequestChannel
from ..replication.coordinator_partition_log import CoordinatorPartitionLog
from ..replication.fetch_session import FetchSessionCache
from ..replication.fetchers import Fetchers
from ..replication.log_dir_moves import LogDirMoves, MoveNotices
from ..replication.partition import Partition
from ..replication.partition_ends import PartitionEnds
from ..replication.peers import Peers
from ..replication.quotas import ReplicationQuotas
from ..replication.replica_manager import ReplicaManager
from ..replication.settings import QuotaSettings, ReplicationSettings
from ..replication.transaction_marker_channels import SETTLING_SECONDS, TransactionMarkerChannelManager
from ..replication.transaction_marker_writer import TransactionMarkerWriter
from ..security.client_quotas import ClientQuotas
from ..security.quota_settings import ClientQuotaSettings
from ..share_coordinator.client import ShareStateClient
from ..share_coordinator.coordinator import ShareCoordinator
from ..share_coordinator.settings import TOPIC as SHARE_STATE_TOPIC
from ..share_coordinator.settings import ShareCoordinatorSettings
from ..share_partitions.group_terms import GroupTerms
from ..share_partitions.manager import SharePartitions
from ..share_partitions.sessions import ShareSessions
from ..transaction_coordinator.add_partitions_to_txn import AddPartitionsToTxnManager
from ..transaction_coordinator.coordinator import TransactionCoordinator
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ..transaction_coordinator.settings import TransactionSettings
from .auth.access import make_authorizer, make_token_passwords
from .broker_core import BrokerCore
from .dependencies import BrokerDependencies

if TYPE_CHECKING:
    from ..controller.zookeeper.replica_requests import ReplicaRequests


class BrokerComponents(ABC):
    """All parts that need a ``BrokerCore``. ``services`` is what handlers see of them."""

    def __init__(self, dependencies: BrokerDependencies, core: BrokerCore) -> None:
        self._dependencies = dependencies
        self._core = core
        self._broker_id = core.broker_id
        self._metadata = core.metadata
        listener = dependencies.inter_broker
        self.peers = Peers(dependencies.network, self._broker_id, listener.name, self._metadata, listener.secure)
        self._authorizer = make_authorizer(dependencies.config, dependencies.clock)
        self.cluster = self._make_cluster()
        self.isr_changes = AlterPartitionManager(
            self._broker_id, self._controller_channel("alter-partition"), self._broker_epoch
        )
        self._replicas = self._make_replicas()
        self.fetchers = self._replicas.fetchers = self._make_fetchers()
        self._end_markers = TransactionMarkerWriter(self._replicas, dependencies.clock)
        self._share_coordinator = self._make_share_coordinator()
        self._share_state = ShareStateClient(
            self._broker_id, self._metadata, self.peers, self._share_coordinator, self._create_share_state_topic
        )
        self._groups = self._make_groups()
        self.cluster.producer_ids = self._make_producer_ids()
        self._transactions = self._make_transactions()
        self._share_terms = GroupTerms(dependencies.config, self._metadata, dependencies.clock)
        self._share_partitions = SharePartitions(
            self._partition_by_id, self._share_state, self._share_terms.terms, self._share_terms.start_of
        )
        self.services = self._make_services()

    # --- what depends on the kind of cluster --------------------------------------------------------------------------

    @abstractmethod
    def _make_cluster(self) -> ClusterMember: ...

    @abstractmethod
    def _make_producer_ids(self) -> ProducerIdSource: ...

    @abstractmethod
    def _controller_channel(self, purpose: str) -> RequestChannel:
        """A channel to whichever node is the controller at the time."""

    @abstractmethod
    def _served(self) -> ServedApis: ...

    def _supported_features(self) -> Mapping[str, VersionRange]:
        """Those that clients are told of where some are finalized."""
        return {}

    @abstractmethod
    def _own_commands(self) -> ClusterCommands | None:
        """None where clients' changes are forwarded."""

    @abstractmethod
    def _controller_requests(self) -> ReplicaRequests | None:
        """None where no controller sends any."""

    @abstractmethod
    def _stored_passwords(self) -> StoredPasswords: ...

    def _move_notices(self) -> MoveNotices | None:
        """None where the cluster does not know of log directories."""
        return None

    @abstractmethod
    async def run_controlled_shutdown(self) -> None:
        """Before a stop: have other brokers lead what this one leads."""

    # --- the rest -----------------------------------------------------------------------------------------------------

    def coordinators(self) -> dict[str, GroupCoordinator | TransactionCoordinator | ShareCoordinator]:
        """The coordinators, by the topic that has their state."""
        return {
            OFFSETS_TOPIC: self._groups,
            TRANSACTIONS_TOPIC: self._transactions,
            SHARE_STATE_TOPIC: self._share_coordinator,
        }

    def _broker_epoch(self) -> int:
        return self.cluster.broker_epoch

    def _make_replicas(self) -> ReplicaManager:
        config = self._dependencies.config
        replicas = ReplicaManager(
            self._broker_id,
            self._core.logs,
            config.settings(LogSettings),
            lambda topic: self._metadata.image.topic_config(topic),
            self._metadata,
            self.isr_changes,
            config.settings(ReplicationSettings).replica_lag_time_max_ms,
        )
        replicas.quotas = ReplicationQuotas(config.settings(QuotaSettings))
        return replicas

    def _make_fetchers(self) -> Fetchers:
        settings = self._dependencies.config.settings(ReplicationSettings)
        timeout = settings.replica_socket_timeout_ms / 1000

        def connect(broker_id: int) -> BrokerClient:
            return self.peers.client(broker_id, "fetcher", timeout=timeout, max_in_flight=1)

        return Fetchers(self._broker_id, connect, settings, self._broker_epoch, self._replicas.quotas.follower)

    def _make_groups(self) -> GroupCoordinator:
        dependencies = self._dependencies
        log = self._coordinator_log(OFFSETS_TOPIC)
        topics = TopicSizes(self._metadata.image)
        self._metadata.publishers.append(topics.publish)
        config = dependencies.config
        context = GroupContext(
            config.settings(ConsumerGroupSettings),
            group_times(config, self._metadata, ConsumerGroupSettings),
            config.settings(ShareGroupSettings),
            group_times(config, self._metadata, ShareGroupSettings),
            topics,
        )
        groups = GroupCoordinator(
            log,
            config.settings(GroupSettings),
            context,
            dependencies.clock,
            dependencies.randomness,
            dependencies.workers,
            self._share_state,
        )
        self._end_markers.owners[OFFSETS_TOPIC] = groups.end_transaction
        return groups

    def _make_transactions(self) -> TransactionCoordinator:
        settling_seconds = 0 if self._core.is_alone else SETTLING_SECONDS
        return TransactionCoordinator(
            self._coordinator_log(TRANSACTIONS_TOPIC),
            self._dependencies.config.settings(TransactionSettings),
            self._dependencies.clock,
            self.cluster,
            TransactionMarkerChannelManager(
                self._broker_id, self._metadata, self._end_markers, self.peers, settling_seconds
            ),
        )

    def _make_share_coordinator(self) -> ShareCoordinator:
        dependencies, metadata = self._dependencies, self._metadata

        def partition_count(topic_id: bytes) -> int:
            topic = metadata.topic_by_id(topic_id)
            return 0 if topic is None else len(topic.partitions)

        log = self._coordinator_log(SHARE_STATE_TOPIC)
        settings = dependencies.config.settings(ShareCoordinatorSettings)
        return ShareCoordinator(log, settings, dependencies.clock, partition_count)

    def _partition_by_id(self, topic_id: bytes, number: int) -> Partition:
        """Raises KafkaError."""
        name = self._metadata.topic_name(topic_id)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        partition = self._replicas.partition(name, number)
        if partition.topic_id != topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, "the log is of another topic of that name")
        return partition

    async def _create_share_state_topic(self) -> None:
        await create_coordinator_topic(self.services, SHARE_STATE_TOPIC)

    def _coordinator_log(self, topic: str) -> CoordinatorPartitionLog:
        dependencies = self._dependencies
        return CoordinatorPartitionLog(topic, self._replicas, self._metadata, dependencies.clock, dependencies.workers)

    def _make_services(self) -> Services:
        dependencies, core, authorizer = self._dependencies, self._core, self._authorizer
        served = self._served()
        slots = dependencies.config.settings(ReplicationSettings).max_incremental_fetch_session_cache_slots
        return Services(
            node_id=self._broker_id,
            cluster_id=core.cluster_id,
            config=dependencies.config,
            clock=dependencies.clock,
            workers=dependencies.workers,
            logs=core.logs,
            group_turns=LoopTurns(dependencies.clock.elapsed),
            replicas=self._replicas,
            log_dir_moves=LogDirMoves(self._replicas, core.logs, self._metadata, self._move_notices()),
            fetch_sessions=FetchSessionCache(slots, dependencies.randomness),
            fetchers=self.fetchers,
            metadata=self._metadata,
            cluster=self.cluster,
            own_commands=self._own_commands(),
            controller_requests=self._controller_requests(),
            passwords=self._stored_passwords(),
            client_quotas=ClientQuotas(dependencies.config.settings(ClientQuotaSettings)),
            token_passwords=make_token_passwords(dependencies.config, self._metadata, dependencies.clock),
            groups=self._groups,
            transactions=self._transactions,
            add_partitions_to_txn_manager=AddPartitionsToTxnManager(
                self._broker_id, self._metadata, self.peers, self._transactions
            ),
            share_coordinator=self._share_coordinator,
            share_state=self._share_state,
            share_terms=self._share_terms,
            share_partitions=self._share_partitions,
            share_sessions=ShareSessions(
                self._share_partitions, dependencies.config.settings(ShareGroupSettings).max_share_sessions
            ),
            partition_ends=PartitionEnds(self._broker_id, self._metadata, self.peers, self._replicas),
            end_markers=self._end_markers,
            authorizer=authorizer,
            served=served if authorizer is None else guarded(served),
            absent_topics=RepeatedLines(dependencies.clock.elapsed, _still_absent),
            supported_features=self._supported_features(),
        )


def _still_absent(count: int, topic: str, reason: str) -> str:
    """The line that counts the clients' requests for which a coordinator's topic could not be made."""
    return f"{topic} could not be created for {counted(count, 'more request')}: {reason}"
