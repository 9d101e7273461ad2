"""The parts of a broker in ZooKeeper mode, among them its controller."""

from __future__ import annotations

from ..controller.cluster import ClusterCommands
from ..controller.configs.broker_passwords import BrokerPasswords
from ..controller.producer_ids import AllocatedProducerIds, ProducerIdSource
from ..controller.settings import ControllerSettings
from ..controller.zookeeper.active.channels import BrokerChannel
from ..controller.zookeeper.active.controller import ZooKeeperController
from ..controller.zookeeper.active.remote_channel import RemoteChannel
from ..controller.zookeeper.cluster import ZooKeeperCluster
from ..controller.zookeeper.producer_ids import ProducerIds
from ..controller.zookeeper.replica_requests import ReplicaRequests
from ..controller.zookeeper.state.context import LiveBroker
from ..handlers.table import ServedApis, without_newer_groups, without_transactions_v2
from ..log.settings import LogSettings
from ..replication.controller_channel import ControllerChannel
from ..replication.inter_broker_protocol import inter_broker_protocol
from ..replication.settings import ReplicationSettings
from .components import BrokerComponents
from .controlled_shutdown import run_controlled_shutdown
from .dependencies import BrokerDependencies
from .settings import BrokerSettings
from .zookeeper_broker_core import ZooKeeperBrokerCore


class ZooKeeperBrokerComponents(BrokerComponents):
    """See ``BrokerComponents``."""

    cluster: ZooKeeperCluster

    def __init__(self, dependencies: BrokerDependencies, core: ZooKeeperBrokerCore) -> None:
        self._store = core
        self._protocol = inter_broker_protocol(
            dependencies.config.settings(ReplicationSettings).inter_broker_protocol_version
        )
        super().__init__(dependencies, core)

    def _own_commands(self) -> ClusterCommands | None:
        return self.cluster

    def _controller_requests(self) -> ReplicaRequests | None:
        return ReplicaRequests(self._replicas, self._metadata, self._broker_epoch, self.cluster.refresh_topic_configs)

    def _stored_passwords(self) -> BrokerPasswords:
        return BrokerPasswords(self._dependencies.config)

    def _served(self) -> ServedApis:
        served = without_newer_groups(self._dependencies.served)
        return without_transactions_v2(served) if self._store.is_on_zookeeper else served

    def _controller_channel(self, purpose: str) -> ControllerChannel:
        return ControllerChannel(self._broker_id, self._metadata, self.peers, self.cluster, purpose)

    async def run_controlled_shutdown(self) -> None:
        settings = self._dependencies.config.settings(BrokerSettings)
        self._replicas.is_leaving = True
        channel = self._controller_channel("controlled-shutdown")
        await run_controlled_shutdown(channel, self._metadata, self._broker_id, self.cluster.broker_epoch, settings)

    def _make_cluster(self) -> ZooKeeperCluster:
        dependencies, core = self._dependencies, self._store
        controller = ZooKeeperController(
            self._broker_id,
            core.session,
            core.configs,
            self._channel_to,
            dependencies.config.settings(ControllerSettings),
            dependencies.config.settings(LogSettings),
            dependencies.clock,
            dependencies.randomness,
            dependencies.inter_broker.name,
        )
        return ZooKeeperCluster(
            self._broker_id,
            core.session,
            self._metadata,
            core.configs,
            controller,
            core.features,
            dependencies.config,
            dependencies.clock,
            dependencies.randomness,
            has_acls=self._authorizer is not None,
        )

    def _channel_to(self, broker: LiveBroker) -> BrokerChannel:
        """The channel by which this broker, as the controller, sends its decisions to a broker."""
        registration = broker.registration
        if registration.broker_id == self._broker_id:
            return self.services.replica_requests
        dependencies = self._dependencies
        timeout = dependencies.config.settings(ControllerSettings).controller_socket_timeout_ms / 1000
        return RemoteChannel(
            dependencies.network,
            registration,
            dependencies.control_plane.name,
            f"controller-{self._broker_id}",
            timeout,
            self._protocol,
            dependencies.control_plane.secure,
        )

    def _make_producer_ids(self) -> ProducerIdSource:
        if not self._protocol.allocates_producer_ids:
            return ProducerIds(self._store.session, self._broker_id, self._metadata)
        return AllocatedProducerIds(self._controller_channel("forwarding"), self._broker_id, self._broker_epoch)
