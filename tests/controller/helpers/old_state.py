"""A tree of nodes with something of everything that a broker of ZooKeeper mode keeps there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.controller.zookeeper.nodes import acl_znodes, token_znodes, znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Operation, Set
from ottla.controller.zookeeper.store.znode_tree import ZnodeTransaction, ZnodeTree
from ottla.metadata.types import LeaderState, ReplicaAssignment, TopicAssignment
from ottla.security import delegation
from ottla.security.acl import AclEntry, PatternType, Permission, ResourcePattern, ResourceType
from ottla.security.acl import Operation as AclOperation
from ottla.security.delegation import DelegationToken
from ottla.security.principal import Principal
from ottla.security.scram import ScramCredential, ScramMechanism

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
ALICE, BOB = Principal("User", "alice"), Principal("User", "bob:ä/%")
CREDENTIAL = ScramCredential(b"salt", b"stored key", b"server key", 4096)
LITERAL = ResourcePattern(ResourceType.TOPIC, "orders")
PREFIXED = ResourcePattern(ResourceType.GROUP, "team-", PatternType.PREFIXED)
ENTRIES = {
    LITERAL: [
        AclEntry("User:alice", Permission.ALLOW, "*", AclOperation.READ),
        AclEntry("User:bob", Permission.DENY, "10.0.0.1", AclOperation.WRITE),
    ],
    PREFIXED: [AclEntry("User:*", Permission.ALLOW, "*", AclOperation.ALL)],
}
TOKEN = DelegationToken("token-1", ALICE, BOB, (BOB,), 1_000, 9_000_000_000_000, 8_000_000_000_000)


class OldState:
    """``tree`` grows by each call; every call is a transaction."""

    def __init__(self) -> None:
        self.tree = ZnodeTree()
        self.transactions: list[ZnodeTransaction] = []
        self.write(*(Create(path) for path in znodes.PERSISTENT_PATHS))
        self.write(Create(znodes.CLUSTER_ID, znodes.encode_cluster_id(CLUSTER_ID)))

    def write(self, *operations: Operation) -> None:
        transaction = ZnodeTransaction(self.tree.zxid + 1, 0, 1_000, operations)
        self.tree.apply(transaction)
        self.transactions.append(transaction)

    def topic(
        self,
        name: str,
        topic_id: bytes,
        partitions: Mapping[int, Sequence[int]],
        configs: Mapping[str, str] | None = None,
        *,
        epochs: tuple[int, int] | None = (0, 0),
    ) -> None:
        """``epochs`` are the leader epoch and the partition epoch of all partitions; None: they have no state yet."""
        assignment = {number: ReplicaAssignment(tuple(replicas)) for number, replicas in partitions.items()}
        if configs is not None:
            self.write(Create(znodes.topic_config_path(name), znodes.encode_config(configs)))
        self.write(Create(znodes.topic_path(name), znodes.encode_topic(TopicAssignment(topic_id, assignment))))
        if epochs is None:
            return
        self.write(Create(znodes.partitions_path(name)))
        for number, replicas in partitions.items():
            path = znodes.state_path(name, number)
            state = znodes.encode_state(LeaderState(replicas[0], epochs[0], tuple(replicas), 1))
            self.write(Create(znodes.partition_path(name, number)), Create(path, state))
            for _ in range(epochs[1]):
                self.write(Set(path, state))

    def config(self, kind: str, node: str, values: Mapping[str, str]) -> None:
        """``node`` is the entity's, below that of its kind; nodes above it are made."""
        path = znodes.config_path(kind, node)
        parts = node.split("/")
        above = [znodes.config_path(kind, "/".join(parts[:length])) for length in range(1, len(parts))]
        data = znodes.encode_config(values)
        self.write(
            *(Create(each) for each in above if each not in self.tree.nodes),
            Set(path, data) if path in self.tree.nodes else Create(path, data),
        )

    def with_access(self) -> None:
        """Rules, credentials and a token."""
        self.write(*(Create(path) for path in acl_znodes.PATHS))
        for pattern, entries in ENTRIES.items():
            self.write(Create(acl_znodes.path(pattern), acl_znodes.encode_entries(entries)))
        self.write(*(Create(path) for path in token_znodes.TOKEN_PATHS))
        self.write(Create(f"{token_znodes.TOKENS}/{TOKEN.token_id}", delegation.encode_token(TOKEN)))
        stored = {ScramMechanism.SHA_256.sasl_name: CREDENTIAL.render(), "producer_byte_rate": "1000"}
        self.config("users", "bob%3A%C3%A4%2F%25", stored)

    def with_quotas(self) -> None:
        self.config("users", "<default>", {"consumer_byte_rate": "2000"})
        self.config("users", "alice/clients/app", {"request_percentage": "12.5"})
        self.config("clients", "c%2F1", {"producer_byte_rate": "3000"})
        self.config("ips", "10.0.0.1", {"connection_creation_rate": "7"})

    def with_producer_ids(self, first: int, last: int) -> None:
        self.write(Set(znodes.PRODUCER_ID_BLOCK, znodes.encode_producer_id_block(1, first, last)))


def topic_id(number: int) -> bytes:
    return b"topic-id-%07d" % number


def rich_state() -> OldState:
    """Of a lone broker with the id 1."""
    state = OldState()
    state.topic("orders", topic_id(1), {0: [1], 1: [1], 10: [1]}, {"retention.ms": "1000"}, epochs=(5, 3))
    state.topic("plain", topic_id(2), {0: [1]}, epochs=(0, 0))
    state.config("brokers", "1", {"log.cleaner.threads": "2"})
    state.config("brokers", "<default>", {"log.retention.ms": "5000"})
    state.with_access()
    state.with_quotas()
    state.with_producer_ids(4000, 4999)
    return state
