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
    """A broker that is alive: where it is reached, and where it stands.

    ``version`` is that of the form in which it registered, 5 since Kafka 2.7 (KIP-584).
    """

    broker_id: int
    endpoints: tuple[AdvertisedListener, ...]
    rack: str | None = None
    version: int = REGISTRATION_VERSION

    def endpoint(self, listener: str) -> AdvertisedListener | None:
        """Where the listener of this name is reached, if the broker has one."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class VersionRange(NamedTuple):
    """The levels of a feature that a node supports, both included (KIP-584)."""

    lowest: int
    highest: int


@dataclasses.dataclass(frozen=True)
class QuorumBroker:
    """A broker that is registered at a quorum, alive or not (KIP-631).

    ``epoch`` is the offset of its registration in the metadata log. ``directories`` are the ids of its log directories that work;
    those that are ``cordoned`` get no new replicas, None until the broker has told.
    """

    registration: BrokerRegistration
    epoch: int
    incarnation_id: bytes
    features: Mapping[str, VersionRange]
    is_fenced: bool = True
    is_shutting_down: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned: tuple[bytes, ...] | None = None
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

    During a move (KIP-455) these are the ones wanted, in their order, and then those to be removed; ``adding`` and
    ``removing`` say which are new, and which are to be removed.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

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
    """Who leads a partition and who is in sync, as a controller has written it; leader -1 is none.

    ``is_recovering``: the leader was not in sync when it was elected, and has not confirmed its recovery yet (KIP-704).
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    is_recovering: bool = False


class PartitionRegistration(NamedTuple):
    """What a controller has decided of a partition.

    ``leader`` may be NO_LEADER. ``leader_epoch`` grows with every election, ``partition_epoch`` with every change.
    ``adding`` and ``removing`` are the replicas of a reassignment under way (KIP-455). ``is_recovering``: the leader was
    elected although it was out of sync (KIP-704). ``is_new``: the replicas have no log yet. ``offline``: the replicas that their
    brokers have in a log directory that has failed. ``directories`` are those of the replicas, in their order; in ZooKeeper mode
    nobody tells. ``elr`` are replicas that left the ISR and have everything committed, ``last_known_elr`` those of which that may
    be true (KIP-966).
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    is_recovering: bool = False
    is_new: bool = False
    offline: tuple[int, ...] = ()
    directories: tuple[bytes, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


UNKNOWN_EPOCH = -1
"""Of the features, where whoever keeps the metadata has none yet."""


class LogPosition(NamedTuple):
    """The last batch of the metadata log that an image has: its last offset, its leader epoch, when it was appended (ms)."""

    offset: int
    epoch: int
    timestamp: int


class FinalizedFeatures(NamedTuple):
    """The features that the cluster has finalized, each with its level, and the epoch that clients are told (KIP-584)."""

    epoch: int
    levels: Mapping[str, int] = {}
