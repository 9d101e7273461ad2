"""The services of a running broker that handlers call, put together by ``broker.server``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from .node_services import NodeServices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..base.repeated_lines import RepeatedLines
    from ..controller.cluster import ClusterAccess, ClusterCommands
    from ..controller.configs.broker_passwords import StoredPasswords
    from ..controller.zookeeper.replica_requests import ReplicaRequests
    from ..group_coordinator.coordinator import GroupCoordinator
    from ..log.log_manager import LogManager
    from ..replication.fetch_session import FetchSessionCache
    from ..replication.fetchers import Fetchers
    from ..replication.log_dir_moves import LogDirMoves
    from ..replication.metadata_cache import MetadataCache
    from ..replication.partition_ends import PartitionEnds
    from ..replication.replica_manager import ReplicaManager
    from ..replication.transaction_marker_writer import TransactionMarkerWriter
    from ..share_coordinator.client import ShareStateClient
    from ..share_coordinator.coordinator import ShareCoordinator
    from ..share_partitions.group_terms import GroupTerms
    from ..share_partitions.manager import SharePartitions
    from ..share_partitions.sessions import ShareSessions
    from ..transaction_coordinator.add_partitions_to_txn import AddPartitionsToTxnManager
    from ..transaction_coordinator.coordinator import TransactionCoordinator
    from ..wire.messages.describe_inside import DescribeInsideRequest, DescribeInsideResponse
    from .connection_context import ConnectionContext

    Inside = Callable[[ConnectionContext, DescribeInsideRequest], Awaitable[DescribeInsideResponse]]


@dataclasses.dataclass(slots=True, kw_only=True)
class Services(NodeServices):
    """One broker's parts."""

    metadata: MetadataCache
    logs: LogManager
    replicas: ReplicaManager
    log_dir_moves: LogDirMoves
    fetch_sessions: FetchSessionCache
    fetchers: Fetchers
    cluster: ClusterAccess
    """The broker's place in the cluster."""
    own_commands: ClusterCommands | None
    """What makes the changes that clients ask for; None where such requests are forwarded to a controller."""
    controller_requests: ReplicaRequests | None
    """What executes the requests of a controller of ZooKeeper mode; None elsewhere."""
    passwords: StoredPasswords
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    add_partitions_to_txn_manager: AddPartitionsToTxnManager
    share_coordinator: ShareCoordinator
    share_state: ShareStateClient
    """The states of share partitions, whichever broker keeps them."""
    share_terms: GroupTerms
    share_partitions: SharePartitions
    """Those of the partitions that this broker leads."""
    share_sessions: ShareSessions
    partition_ends: PartitionEnds
    end_markers: TransactionMarkerWriter
    inside: Inside | None = None
    """What tells other Ottla brokers of this one (``describe_inside``), once its console runs."""
    absent_topics: RepeatedLines
    """Decides which failures to make a coordinator's topic have a line in the log."""

    @property
    def commands(self) -> ClusterCommands:
        """``own_commands``, for handlers whose requests are not forwarded."""
        assert self.own_commands is not None, "the request would have been forwarded"
        return self.own_commands

    @property
    def replica_requests(self) -> ReplicaRequests:
        """``controller_requests``, for handlers that are served in ZooKeeper mode only."""
        assert self.controller_requests is not None, "the request would not have been served"
        return self.controller_requests
