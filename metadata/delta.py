"""The delta of a cluster's metadata: the changes that are published to its brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .types import (
    BrokerRegistration,
    FinalizedFeatures,
    LogPosition,
    PartitionRegistration,
    QuorumBroker,
    QuorumController,
)

if TYPE_CHECKING:
    from ..security.acl import AclBinding, AclEntry, ResourcePattern
    from ..security.delegation import DelegationToken
    from ..security.entities import Entity
    from ..security.scram import StoredCredentials


class TopicDelta(NamedTuple):
    """The changes of one topic."""

    name: str
    topic_id: bytes
    """ZERO_UUID where whoever tells of the topic knows no id."""
    partitions: Mapping[int, PartitionRegistration | None]
    """The partitions that have changed, by number; None where one is gone."""


class ClusterDelta(NamedTuple):
    """Each field has what changed of one kind of metadata, and by default nothing.

    Values replace what was known of their key as a whole; an empty one removes it.
    """

    controller_id: int | None = None
    """-1 where no broker is controller."""
    brokers: Sequence[BrokerRegistration] | None = None
    """All that are alive, changed or not."""
    topics: Sequence[TopicDelta] = ()
    configs: Mapping[Entity, Mapping[str, str]] = {}
    """Everything set on a topic, or on one broker or all, by property; passwords are encrypted."""
    quotas: Mapping[Entity, Mapping[str, float]] = {}
    """Everything set on a user, a client id, both, or an IP address, by the quota's key."""
    scram: Mapping[str, StoredCredentials] = {}
    """All credentials of a user, by mechanism."""
    acls: Mapping[ResourcePattern, frozenset[AclEntry]] = {}
    tokens: Mapping[str, DelegationToken | None] = {}
    """By the token's id."""
    features: FinalizedFeatures | None = None
    next_producer_id: int | None = None
    """The first producer id that no broker has been given (KIP-730)."""
    quorum_brokers: Mapping[int, QuorumBroker | None] = {}
    """By id; the rest is known of clusters of KRaft only."""
    quorum_controllers: Mapping[int, QuorumController | None] = {}
    """By id."""
    acl_ids: Mapping[bytes, AclBinding | None] = {}
    """The rules of ``acls`` by the ids of their records."""
    position: LogPosition | None = None
    """Up to where in the metadata log this delta reaches."""
