"""The parts of a broker in a KRaft cluster: its registration, and its channels to the active controller."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import trio

from ..controller.cluster import ClusterCommands
from ..controller.configs.broker_passwords import ClearPasswords
from ..controller.producer_ids import AllocatedProducerIds, ProducerIdSource
from ..controller.quorum.channel import QuorumChannel
from ..controller.quorum.cluster import QuorumCluster
from ..controller.quorum.envelope import FORWARDED
from ..controller.quorum.lifecycle import BrokerLifecycle
from ..controller.quorum.metadata_version import finalized_level
from ..controller.quorum.placement import DirectoryAssignments
from ..controller.quorum.supported_features import SUPPORTED
from ..controller.zookeeper.replica_requests import ReplicaRequests
from ..handlers.forwarding import served_by_forwarding
from ..handlers.table import ServedApis
from ..metadata.types import VersionRange
from ..replication.log_dir_moves import MoveNotices
from ..replication.replica_publisher import ReplicaPublisher
from .components import BrokerComponents
from .dependencies import BrokerDependencies
from .quorum_broker_core import QuorumBrokerCore


class QuorumBrokerComponents(BrokerComponents):
    """See ``BrokerComponents``. ``nursery`` has the tasks that go on until the broker has stopped."""

    cluster: QuorumCluster

    def __init__(self, dependencies: BrokerDependencies, core: QuorumBrokerCore, nursery: trio.Nursery) -> None:
        self._quorum = core
        self._nursery = nursery
        # Before the others, which are made by ``super().__init__`` and include it (``_move_notices``).
        self._assignments = DirectoryAssignments(
            core.broker_id,
            self._controller_channel("directory-assignments"),
            self._broker_epoch,
            core.logs,
        )
        super().__init__(dependencies, core)
        core.broker_epoch = self._broker_epoch
        nursery.start_soon(self._assignments.run)
        self.cluster.replica_publisher = ReplicaPublisher(self._replicas, core.logs, self._assignments.placed)

    def _make_cluster(self) -> QuorumCluster:
        core = self._quorum
        assert core.driver is not None
        lifecycle = BrokerLifecycle(
            core.cluster_id,
            uuid.UUID(int=self._dependencies.randomness.getrandbits(128), version=4).bytes,
            self._controller_channel("heartbeat"),
            core.settings,
            SUPPORTED,
            core.directories,
            lambda: core.loader.loaded_offset - 1,
            core.previous_epoch,
            self._metadata_version,
        )
        core.loader.on_load = lifecycle.loaded
        return QuorumCluster(
            self._broker_id,
            self._metadata,
            core.loader,
            core.driver,
            lifecycle,
            self._controller_channel,
            self._nursery,
            core.settings.initial_registration_timeout_ms / 1000,
            is_alone=core.is_alone,
        )

    def _metadata_version(self) -> int:
        return finalized_level(self._metadata.image.features)

    def _make_producer_ids(self) -> ProducerIdSource:
        return AllocatedProducerIds(self._controller_channel("producer-ids"), self._broker_id, self._broker_epoch)

    def _controller_channel(self, purpose: str) -> QuorumChannel:
        return self._quorum.channel(purpose)

    def _served(self) -> ServedApis:
        return served_by_forwarding(self._dependencies.served, FORWARDED, self.cluster)

    def _supported_features(self) -> Mapping[str, VersionRange]:
        return SUPPORTED

    def _own_commands(self) -> ClusterCommands | None:
        return None

    def _controller_requests(self) -> ReplicaRequests | None:
        return None

    def _stored_passwords(self) -> ClearPasswords:
        return ClearPasswords()

    def _move_notices(self) -> MoveNotices:
        return self._assignments

    async def run_controlled_shutdown(self) -> None:
        # Set first: partitions that the controller takes this broker out of are not to be followed again.
        self._replicas.is_leaving = True
        await self.cluster.run_controlled_shutdown()
