"""Makes the parts of one broker, each after those that it uses: controller, partitions, coordinators.

They do not run yet, and read nothing from the cluster's store: the ``Assembly`` starts them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..base.repeated_lines import RepeatedLines
from ..base.wording import counted
from ..controller.allocated_producer_ids import AllocatedProducerIds
from ..controller.settings import ControllerSettings
from ..controller.token_settings import DelegationTokenSettings
from ..controller.zookeeper.channels import BrokerChannel
from ..controller.zookeeper.config_store import TOPICS
from ..controller.zookeeper.context import LiveBroker
from ..controller.zookeeper.controller import Controller
from ..controller.zookeeper.producer_ids import ProducerIds
from ..controller.zookeeper.remote_channel import RemoteChannel
from ..controller.zookeeper.topic_writer import TopicWriter
from ..group_coordinator.coordinator import GroupCoordinator
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..group_coordinator.settings import GroupSettings
from ..handlers.services import Services
from ..handlers.table import guarded, without_transactions_v2
from ..log.settings import LogSettings
from ..replication.alter_partition import AlterPartitionManager
from ..replication.broker_client import BrokerClient
from ..replication.controller_channel import ControllerChannel
from ..replication.coordinator_partition_log import CoordinatorPartitionLog
from ..replication.end_markers import EndMarkers
from ..replication.fetch_session import FetchSessionCache
from ..replication.fetchers import Fetchers
from ..replication.inter_broker_protocol import inter_broker_protocol
from ..replication.log_dir_moves import LogDirMoves
from ..replication.marker_channels import SETTLING_SECONDS, MarkerChannels
from ..replication.metadata_cache import MetadataCache
from ..replication.peers import Peers
from ..replication.quotas import ReplicationQuotas
from ..replication.replica_manager import ReplicaManager
from ..replication.settings import QuotaSettings, ReplicationSettings
from ..security.authorizer_settings import AuthorizerSettings, super_users
from ..security.client_quotas import ClientQuotas
from ..security.quota_settings import ClientQuotaSettings
from ..transaction_coordinator.coordinator import TransactionCoordinator
from ..transaction_coordinator.entries import TransactionEntries
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ..transaction_coordinator.settings import TransactionSettings
from .foundation import Foundation
from .local_channel import LocalChannel
from .surroundings import Surroundings

if TYPE_CHECKING:
    from ..controller.zookeeper.acl_store import AclStore
    from ..controller.zookeeper.token_store import DelegationTokens
    from ..security.authorizer import Authorizer


class Parts:
    """All parts that need a ``Foundation``. ``services`` is what handlers see of them."""

    def __init__(self, around: Surroundings, foundation: Foundation, broker_epoch: Callable[[], int]) -> None:
        """``broker_epoch``: that of the present registration, -1 before the first."""
        self._around = around
        self._foundation = foundation
        self._broker_id = foundation.broker_id
        self._broker_epoch = broker_epoch
        self._protocol = inter_broker_protocol(
            around.config.settings(ReplicationSettings).inter_broker_protocol_version
        )
        self._metadata = MetadataCache(foundation.cluster_id, lambda: foundation.logs.has_logs)
        listener = around.inter_broker
        self.peers = Peers(around.network, self._broker_id, listener.name, self._metadata, listener.secure)
        self._controller = self._make_controller()
        self.isr_changes = AlterPartitionManager(
            self._broker_id, self.controller_channel("alter-partition"), broker_epoch
        )
        self._replicas = self._make_replicas()
        self.fetchers = self._replicas.fetchers = self._make_fetchers()
        self._end_markers = EndMarkers(self._replicas, around.clock)
        self._groups = self._make_groups()
        self._producer_ids = self._make_producer_ids()
        self._transactions = self._make_transactions()
        self._authorizer = self._make_authorizer()
        self.services = self._make_services()

    def controller_channel(self, purpose: str) -> ControllerChannel:
        """A channel to the broker that is the controller at the time."""
        return ControllerChannel(self._broker_id, self._metadata, self.peers, self._controller, purpose)

    def coordinators(self) -> dict[str, GroupCoordinator | TransactionCoordinator]:
        """The coordinators, by the topic that has their state."""
        return {OFFSETS_TOPIC: self._groups, TRANSACTIONS_TOPIC: self._transactions}

    def _make_controller(self) -> Controller:
        around = self._around
        return Controller(
            self._broker_id,
            self._foundation.session,
            self._foundation.configs,
            self._channel_to,
            around.config.settings(ControllerSettings),
            around.config.settings(LogSettings),
            around.clock,
            around.randomness,
            around.inter_broker.name,
        )

    def _channel_to(self, broker: LiveBroker) -> BrokerChannel:
        """The channel by which this broker, as the controller, sends its decisions to a broker."""
        registration = broker.registration
        if registration.broker_id == self._broker_id:
            return LocalChannel(self.services)
        around = self._around
        timeout = around.config.settings(ControllerSettings).controller_socket_timeout_ms / 1000
        return RemoteChannel(
            around.network,
            registration,
            around.control_plane.name,
            f"controller-{self._broker_id}",
            timeout,
            self._protocol,
            around.control_plane.secure,
        )

    def _make_replicas(self) -> ReplicaManager:
        config = self._around.config
        replicas = ReplicaManager(
            self._broker_id,
            self._foundation.logs,
            config.settings(LogSettings),
            functools.partial(self._foundation.configs.overrides, TOPICS),
            self._metadata,
            self.isr_changes,
            config.settings(ReplicationSettings).replica_lag_time_max_ms,
        )
        replicas.quotas = ReplicationQuotas(config.settings(QuotaSettings))
        return replicas

    def _make_fetchers(self) -> Fetchers:
        settings = self._around.config.settings(ReplicationSettings)
        timeout = settings.replica_socket_timeout_ms / 1000

        def connect(broker_id: int) -> BrokerClient:
            return self.peers.client(broker_id, "fetcher", timeout=timeout, max_in_flight=1)

        return Fetchers(self._broker_id, connect, settings, self._broker_epoch, self._replicas.quotas.follower)

    def _make_groups(self) -> GroupCoordinator:
        around = self._around
        log = self._coordinator_log(OFFSETS_TOPIC)
        groups = GroupCoordinator(log, around.config.settings(GroupSettings), around.clock, around.randomness)
        self._end_markers.owners[OFFSETS_TOPIC] = groups.end_transaction
        return groups

    def _make_producer_ids(self) -> ProducerIds | AllocatedProducerIds:
        if self._foundation.is_alone or not self._protocol.allocates_producer_ids:
            return ProducerIds(self._foundation.session, self._broker_id)
        return AllocatedProducerIds(self.controller_channel("forwarding"), self._broker_id, self._broker_epoch)

    def _make_transactions(self) -> TransactionCoordinator:
        settling_seconds = 0 if self._foundation.is_alone else SETTLING_SECONDS
        return TransactionCoordinator(
            self._coordinator_log(TRANSACTIONS_TOPIC),
            self._around.config.settings(TransactionSettings),
            self._around.clock,
            self._producer_ids,
            MarkerChannels(self._broker_id, self._metadata, self._end_markers, self.peers, settling_seconds),
        )

    def _coordinator_log(self, topic: str) -> CoordinatorPartitionLog:
        around = self._around
        return CoordinatorPartitionLog(topic, self._replicas, self._metadata, around.clock, around.workers)

    def _make_tokens(self) -> DelegationTokens | None:
        settings = self._around.config.settings(DelegationTokenSettings)
        if settings.secret is None:
            return None
        from ..controller.zookeeper.token_store import DelegationTokens  # slow to import, and few brokers need it

        return DelegationTokens(self._foundation.session, self._around.clock, settings, settings.secret)

    def _make_authorizer(self) -> Authorizer | None:
        """None where none is configured."""
        settings = self._around.config.settings(AuthorizerSettings)
        if not settings.authorizer_class_name:
            return None
        from ..security.acl_rules import AclRules  # likewise
        from ..security.audit import AuditLog
        from ..security.authorizer import Authorizer

        rules = AclRules(allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found)
        return Authorizer(rules, super_users(settings.super_users), AuditLog(self._around.clock.elapsed))

    def _make_acls(self) -> AclStore | None:
        if self._authorizer is None:
            return None
        from ..controller.zookeeper.acl_store import AclStore  # likewise

        return AclStore(self._foundation.session, self._around.clock, self._authorizer)

    def _make_services(self) -> Services:
        around, foundation, authorizer = self._around, self._foundation, self._authorizer
        served = without_transactions_v2(around.served) if foundation.is_on_zookeeper else around.served
        slots = around.config.settings(ReplicationSettings).max_incremental_fetch_session_cache_slots
        return Services(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch,
            is_alone=foundation.is_alone,
            features=foundation.features,
            cluster_id=foundation.cluster_id,
            store_session=foundation.session,
            config=around.config,
            clock=around.clock,
            workers=around.workers,
            logs=foundation.logs,
            replicas=self._replicas,
            log_dir_moves=LogDirMoves(self._replicas, foundation.logs, self._metadata),
            fetch_sessions=FetchSessionCache(slots, around.randomness),
            fetchers=self.fetchers,
            metadata=self._metadata,
            controller=self._controller,
            topic_writer=TopicWriter(foundation.session, around.config, around.randomness),
            configs=foundation.configs,
            client_quotas=ClientQuotas(around.config.settings(ClientQuotaSettings)),
            delegation_tokens=self._make_tokens(),
            groups=self._groups,
            transactions=self._transactions,
            transaction_entries=TransactionEntries(self._broker_id, self._metadata, self.peers, self._transactions),
            end_markers=self._end_markers,
            producer_ids=self._producer_ids,
            authorizer=authorizer,
            acls=self._make_acls(),
            served=served if authorizer is None else guarded(served),
            absent_topics=RepeatedLines(around.clock.elapsed, _still_absent),
        )


def _still_absent(count: int, topic: str, reason: str) -> str:
    """The line that counts the clients' requests for which a coordinator's topic could not be made."""
    return f"{topic} could not be created for {counted(count, 'more request')}: {reason}"
