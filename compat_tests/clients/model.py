"""The interface of a driver: the operations that a test can perform with any client library.

A driver is a thin layer over one client's public API: it renames arguments and results and adds nothing of its own, so
that a failing test means that the client and the broker disagree. Offsets, partitions and timestamps (ms) are ints;
names of settings, configs and errors are Kafka's. Everything here is plain data that can be pickled: a driver may live in
another process, under another interpreter (see ``remote``), which is why this module imports the standard library only, as does
``security``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ottla.compat_tests.clients.security import Security

CREATE_TIME = 0
LOG_APPEND_TIME = 1
CONFIG_SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": 1,
    "DYNAMIC_BROKER_CONFIG": 2,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
    "STATIC_BROKER_CONFIG": 4,
    "DEFAULT_CONFIG": 5,
}
"""Where a config comes from: Kafka's names and the numbers on the wire."""

Headers = Sequence[tuple[str, "bytes | None"]]
Start = int | Literal["beginning", "end"]


class ClientFailure(Exception):
    """What a client reported instead of a result. ``code`` is Kafka's error code, None for a failure of the client."""

    def __init__(self, code: int | None, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Message:
    """A consumed record. ``timestamp_type`` is -1 where the client does not tell."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Delivery:
    """The acknowledgement of one record. With acks=0 the offset is -1."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Committed:
    """A group's committed position in one partition."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True)
class ProducerSettings:
    """``acks`` is 0, 1 or -1 (all); ``compression`` is Kafka's compression.type.

    With a ``transactional_id`` the producer fences its predecessors as soon as it is made.
    """

    acks: int = -1
    compression: str = "none"
    idempotent: bool = False
    linger_ms: int = 0
    max_request_size: int = 10 * 1024 * 1024
    delivery_timeout_ms: int = 60_000
    request_timeout_ms: int = 20_000
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000


@dataclass(frozen=True)
class Rebalance:
    """A client's report that partitions came or went: ``change`` is assigned, revoked, or lost, when they were gone before."""

    change: Literal["assigned", "revoked", "lost"]
    partitions: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class ConsumerSettings:
    """Short timeouts: a test of a rebalance is not a test of patience.

    With ``group_protocol`` consumer (KIP-848) session timeout and heartbeat interval are the broker's, and
    ``remote_assignor`` names one of its assignors.
    """

    group_id: str | None = None
    group_instance_id: str | None = None
    client_id: str = "ottla-compat"
    auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest"
    auto_commit: bool = False
    auto_commit_interval_ms: int = 200
    fetch_max_wait_ms: int = 100
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 300
    read_committed: bool = False
    group_protocol: Literal["classic", "consumer"] = "classic"
    remote_assignor: str | None = None
    max_poll_interval_ms: int = 300_000


@dataclass(frozen=True)
class TopicDescription:
    """``leaders`` holds the leader's broker id for each partition, by partition number; None: the client doesn't tell."""

    name: str
    leaders: dict[int, int | None]


@dataclass(frozen=True)
class ConfigEntry:
    """One described config; ``source`` is the number on the wire (1 topic, 4 static broker, 5 default, ...)."""

    value: str | None
    source: int
    read_only: bool
    sensitive: bool
    synonyms: tuple[tuple[str, str | None, int], ...] = ()


@dataclass(frozen=True)
class GroupDescription:
    """``members`` maps a member id to what it owns (empty until the client can decode it)."""

    group_id: str
    state: str
    protocol_type: str
    members: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterDescription:
    """``brokers`` maps a broker id to its host and port."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, tuple[str, int]]


class Producer(ABC):
    """Sends records; ``flush`` reports on all of them."""

    @abstractmethod
    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Queue one record."""

    @abstractmethod
    def flush(self) -> list[Delivery]:
        """Wait for everything queued since the last flush; the deliveries in sending order, or ClientFailure."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit it."""

    @abstractmethod
    def abort(self) -> None:
        """Abort it."""

    @abstractmethod
    def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: object) -> None:
        """Commit offsets in the transaction, for the group that ``Consumer.group`` stands for."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections and threads."""


class Consumer(ABC):
    """Reads records, by assignment or as a member of a group."""

    @abstractmethod
    def assign(self, starts: Mapping[tuple[str, int], Start]) -> None:
        """Read these partitions from these places."""

    @abstractmethod
    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group."""

    @abstractmethod
    def subscribe_pattern(self, pattern: str) -> None:
        """Join the group with every topic that matches a regular expression, which starts with ``^``."""

    def subscribe_broker_pattern(self, pattern: str) -> None:
        """Join the group with every topic that the broker finds to match (RE2), for clients of the consumer protocol."""
        raise NotImplementedError

    def rebalances(self) -> list[Rebalance]:
        """What the client told of partitions that came and went, oldest first, for clients of the consumer protocol."""
        raise NotImplementedError

    @abstractmethod
    def poll(self, timeout_s: float) -> list[Message]:
        """What has arrived; waits up to ``timeout_s`` when nothing has."""

    @abstractmethod
    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue reading there."""

    @abstractmethod
    def position(self, topic: str, partition: int) -> int:
        """The offset of the record that would be read next."""

    @abstractmethod
    def assignment(self) -> frozenset[tuple[str, int]]:
        """What this consumer owns now."""

    @abstractmethod
    def commit(self, offsets: Mapping[tuple[str, int], Committed]) -> None:
        """Commit, and wait for the answer."""

    @abstractmethod
    def committed(self, topic: str, partition: int) -> Committed | None:
        """What the group has committed, None when nothing."""

    @abstractmethod
    def group(self) -> object:
        """The group, and this consumer's membership where the client knows how to pass it on to a producer."""

    @abstractmethod
    def watermarks(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset and the one after the last."""

    @abstractmethod
    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset whose timestamp is at least ``timestamp_ms``, None when there is none."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group (a static member stays in it) and let go of connections and threads."""


class Admin(ABC):
    """Operates the cluster. What not every client offers is not abstract: see the table in ``registry``."""

    @abstractmethod
    def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create one topic."""

    @abstractmethod
    def delete_topic(self, name: str) -> None:
        """Delete one topic."""

    @abstractmethod
    def list_topics(self) -> set[str]:
        """All names."""

    @abstractmethod
    def describe_topic(self, name: str) -> TopicDescription:
        """Partitions and leaders."""

    @abstractmethod
    def create_partitions(self, topic: str, total: int) -> None:
        """Grow a topic to ``total`` partitions."""

    @abstractmethod
    def describe_configs(self, kind: Literal["topic", "broker"], name: str) -> dict[str, ConfigEntry]:
        """Every config of one resource."""

    def alter_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Replace the overrides of a topic (AlterConfigs)."""
        raise NotImplementedError

    def incremental_alter_configs(self, topic: str, changes: Iterable[tuple[str, str, str | None]]) -> None:
        """Change overrides one by one: (operation, name, value), operation one of set, delete, append, subtract."""
        raise NotImplementedError

    @abstractmethod
    def list_groups(self) -> set[str]:
        """All group ids."""

    def describe_group(self, group_id: str) -> GroupDescription:
        """State and members."""
        raise NotImplementedError

    def delete_group(self, group_id: str) -> None:
        """Delete a group without members."""
        raise NotImplementedError

    def group_offsets(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """All that a group has committed."""
        raise NotImplementedError

    def alter_group_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        """Set offsets for a group without members."""
        raise NotImplementedError

    @abstractmethod
    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        """Delete records below an offset; the new first offset."""

    def list_offset(self, topic: str, partition: int, spec: int) -> int:
        """ListOffsets with a timestamp or -1 latest, -2 earliest, -3 max timestamp."""
        raise NotImplementedError

    @abstractmethod
    def describe_cluster(self) -> ClusterDescription:
        """Brokers, controller, cluster id."""

    def describe_log_dirs(self, topic: str) -> dict[int, int]:
        """Size in bytes of each partition of a topic, by partition."""
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Let go of connections and threads."""


class Client(ABC):
    """A client library, bound to a broker's address."""

    @abstractmethod
    def version(self) -> str:
        """The library's own version."""

    @abstractmethod
    def secure(self, security: Security) -> None:
        """Have the clients that are made from now on get in this way; until then it is PLAINTEXT."""

    @abstractmethod
    def producer(self, settings: ProducerSettings) -> Producer:
        """A connected producer."""

    @abstractmethod
    def consumer(self, settings: ConsumerSettings) -> Consumer:
        """A connected consumer."""

    @abstractmethod
    def admin(self) -> Admin:
        """A connected admin client."""

    def has_ended(self) -> bool:
        """Whether the process that the client lives in is no more."""
        return False

    def close(self) -> None:
        """Let go of what all three share."""
        return None
