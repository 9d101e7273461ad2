"""What a handler may call: the parts of one running broker, put together by ``broker.server``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from ..base.config import Config
    from ..base.repeated_lines import RepeatedLines
    from ..base.seams import Clock, Workers
    from ..controller.broker_passwords import StoredPasswords
    from ..controller.cluster import Cluster, ClusterCommands
    from ..controller.token_passwords import TokenPasswords
    from ..controller.zookeeper.replica_requests import ReplicaRequests
    from ..group_coordinator.coordinator import GroupCoordinator
    from ..log.log_manager import LogManager
    from ..metadata.types import VersionRange
    from ..replication.end_markers import EndMarkers
    from ..replication.fetch_session import FetchSessionCache
    from ..replication.fetchers import Fetchers
    from ..replication.log_dir_moves import LogDirMoves
    from ..replication.metadata_cache import MetadataCache
    from ..replication.replica_manager import ReplicaManager
    from ..security.authorizer import Authorizer
    from ..security.client_quotas import ClientQuotas
    from ..transaction_coordinator.coordinator import TransactionCoordinator
    from ..transaction_coordinator.entries import TransactionEntries
    from .table import ServedApis


@dataclasses.dataclass(slots=True)
class Services:
    """One broker's parts.

    ``metadata`` is what is known of the cluster, ``cluster`` the broker's place in it. ``own_commands`` carry out what clients
    want changed, None where such requests are forwarded to a controller. ``controller_requests`` has what a controller
    of ZooKeeper mode says, None elsewhere.
    ``absent_topics`` decides which refusals to make a coordinator's topic have a line in the log.
    ``authorizer`` is None where every client may do everything, ``token_passwords`` where there are no delegation tokens.
    ``large_decoding`` is held while a large request is decoded (``broker.large_requests``).
    ``served`` may be replaced while the broker runs; dispatch reads it with every request.
    """

    broker_id: int
    cluster_id: str
    config: Config
    clock: Clock
    workers: Workers
    logs: LogManager
    replicas: ReplicaManager
    log_dir_moves: LogDirMoves
    fetch_sessions: FetchSessionCache
    fetchers: Fetchers
    metadata: MetadataCache
    cluster: Cluster
    own_commands: ClusterCommands | None
    controller_requests: ReplicaRequests | None
    passwords: StoredPasswords
    client_quotas: ClientQuotas
    token_passwords: TokenPasswords | None
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    transaction_entries: TransactionEntries
    end_markers: EndMarkers
    authorizer: Authorizer | None
    served: ServedApis
    absent_topics: RepeatedLines
    supported_features: Mapping[str, VersionRange] = dataclasses.field(default_factory=dict)
    """Those that a broker of KRaft tells of, each with its levels."""
    large_decoding: trio.Lock = dataclasses.field(default_factory=trio.Lock)
    early_answers: list[Callable[[], None]] = dataclasses.field(default_factory=list)
    """What answers requests whose wait has just ended, before their tasks go on (``Call``)."""

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
