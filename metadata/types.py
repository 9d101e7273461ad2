"""The values of a cluster's metadata: brokers, assignments of replicas, and states of partitions.

They are immutable and know nothing of where they are kept: in ZooKeeper's nodes, in the requests of a
controller, or in records of a metadata log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

REGISTRATION_VERSION = 5
"""Of the form in which a broker registers, in which it tells its features (KIP-584)."""


SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""The numbers of listeners' protocols, as requests and records have them."""
PROTOCOL_NAMES = {number: name for name, number in SECURITY_PROTOCOLS.items()}

UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
LOST_DIRECTORY = bytes(15) + b"\x02"
MIGRATING_DIRECTORY = bytes(16)
"""In place of the id of a replica's log directory: it is not known yet, has failed, or was never told (KIP-858)."""
LAST_RESERVED_DIRECTORY = bytes(15) + b"\x64"
"""No log directory has an id up to this."""


class AdvertisedListener(NamedTuple):
    """Where clients reach one listener of a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


@dataclasses.dataclass(frozen=True)
class BrokerRegistration:
    """A broker that is alive: where it is reached, and where it stands."""

    broker_id: int
    endpoints: tuple[AdvertisedListener, ...]
    rack: str | None = None
    version: int = REGISTRATION_VERSION
    """That of the form in which it registered, 5 since Kafka 2.7 (KIP-584)."""

    def endpoint(self, listener: str) -> AdvertisedListener | None:
        """Where the listener of this name is reached, if the broker has one."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class VersionRange(NamedTuple):
    """The levels of a feature that a node supports, both included (KIP-584)."""

    lowest: int
    highest: int


@dataclasses.dataclass(frozen=True)
class QuorumBroker:
    """A broker that is registered at a quorum, alive or not (KIP-631)."""

    registration: BrokerRegistration
    epoch: int
    """The offset of its registration in the metadata log."""
    incarnation_id: bytes
    features: Mapping[str, VersionRange]
    is_fenced: bool = True
    is_shutting_down: bool = False
    directories: tuple[bytes, ...] = ()
    """The ids of its log directories that work."""
    cordoned: tuple[bytes, ...] | None = None
    """Those that get no new replicas; None until the broker has told."""
    is_migrating: bool = False
    """Whether it was in ZooKeeper mode when it registered (KIP-866)."""


@dataclasses.dataclass(frozen=True)
class QuorumController:
    """A controller that is registered at a quorum (KIP-919)."""

    controller_id: int
    incarnation_id: bytes
    endpoints: tuple[AdvertisedListener, ...]
    features: Mapping[str, VersionRange]
    is_ready_to_migrate: bool = False


class ReplicaAssignment(NamedTuple):
    """Where the replicas of one partition are, the preferred leader first.

    During a move (KIP-455) these are the ones wanted, in their order, and then those to be removed.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    """Those of the replicas that are new."""
    removing: tuple[int, ...] = ()
    """Those of the replicas that are to be removed."""

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas when the move has ended."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the move; their order may differ, because it is not stored anywhere."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    def moved_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """A move to ``target``, in place of the one under way if there is one."""
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        adding = tuple(replica for replica in replicas if replica not in origin)
        return ReplicaAssignment(replicas, adding, tuple(replica for replica in replicas if replica not in target))


class TopicAssignment(NamedTuple):
    """A topic's id, and its partitions by number."""

    topic_id: bytes
    partitions: Mapping[int, ReplicaAssignment]


class LeaderState(NamedTuple):
    """Who leads a partition and who is in sync, as a controller has written it."""

    leader: int
    """-1 for none."""
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    is_recovering: bool = False
    """The leader was not in sync when it was elected, and has not confirmed its recovery yet (KIP-704)."""


class PartitionRegistration(NamedTuple):
    """What a controller has decided of a partition."""

    leader: int
    """NO_LEADER for none."""
    leader_epoch: int
    """Grows with every election."""
    partition_epoch: int
    """Grows with every change."""
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    """New replicas of a reassignment under way (KIP-455)."""
    removing: tuple[int, ...] = ()
    """Replicas that a reassignment under way is to remove."""
    is_recovering: bool = False
    """The leader was elected although it was out of sync (KIP-704)."""
    is_new: bool = False
    """The replicas have no log yet."""
    offline: tuple[int, ...] = ()
    """The replicas whose log directory has failed."""
    directories: tuple[bytes, ...] = ()
    """The ids of the replicas' log directories, in the order of ``replicas``; empty in ZooKeeper mode, where nobody tells."""
    elr: tuple[int, ...] = ()
    """Replicas that left the ISR and have everything committed (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    """Replicas of which that may be true."""


UNKNOWN_EPOCH = -1
"""Of the features, where whoever keeps the metadata has none yet."""


class LogPosition(NamedTuple):
    """The last batch of the metadata log that an image has."""

    offset: int
    """Its last offset."""
    epoch: int
    """Its leader epoch."""
    timestamp: int
    """When it was appended, in ms."""


class FinalizedFeatures(NamedTuple):
    """The features that the cluster has finalized (KIP-584)."""

    epoch: int
    """The epoch that clients are told; UNKNOWN_EPOCH for none."""
    levels: Mapping[str, int] = {}
    """The level of each feature by its name."""
