"""What a handler may call: the parts of one running broker, put together by ``broker.server``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from ..base.config import Config
    from ..base.repeated_lines import RepeatedLines
    from ..base.seams import Clock, Workers
    from ..controller.zookeeper.acl_store import AclStore
    from ..controller.zookeeper.config_store import ConfigStore
    from ..controller.zookeeper.controller import Controller
    from ..controller.zookeeper.features import FinalizedFeatures
    from ..controller.zookeeper.store.session import BrokerSession
    from ..controller.zookeeper.token_store import DelegationTokens
    from ..controller.zookeeper.topic_writer import TopicWriter
    from ..group_coordinator.coordinator import GroupCoordinator
    from ..log.log_manager import LogManager
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
    from ..transaction_coordinator.producer_ids import ProducerIdSource
    from .table import ServedApis


@dataclasses.dataclass(slots=True)
class Services:
    """One broker's parts.

    ``broker_epoch`` gives that of its present registration, -1 before the first. ``is_alone``: the cluster's store is its own,
    so no other broker can be in the cluster. ``features`` are those of a cluster of several brokers, None for one that is alone.
    ``absent_topics`` decides which refusals to make a coordinator's topic have a line in the log.
    ``authorizer`` and ``acls`` are None where every client may do everything, ``delegation_tokens`` where they are disabled.
    ``large_decoding`` is held while a large request is decoded (``broker.large_requests``).
    ``served`` may be replaced while the broker runs; dispatch reads it with every request.
    """

    broker_id: int
    broker_epoch: Callable[[], int]
    is_alone: bool
    features: FinalizedFeatures | None
    cluster_id: str
    store_session: BrokerSession
    config: Config
    clock: Clock
    workers: Workers
    logs: LogManager
    replicas: ReplicaManager
    log_dir_moves: LogDirMoves
    fetch_sessions: FetchSessionCache
    fetchers: Fetchers
    metadata: MetadataCache
    controller: Controller
    topic_writer: TopicWriter
    configs: ConfigStore
    client_quotas: ClientQuotas
    delegation_tokens: DelegationTokens | None
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    transaction_entries: TransactionEntries
    end_markers: EndMarkers
    producer_ids: ProducerIdSource
    authorizer: Authorizer | None
    acls: AclStore | None
    served: ServedApis
    absent_topics: RepeatedLines
    large_decoding: trio.Lock = dataclasses.field(default_factory=trio.Lock)
