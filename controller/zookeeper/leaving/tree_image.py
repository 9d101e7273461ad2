"""Conversion of the metadata in ZooKeeper into the first metadata image of a KRaft cluster.

It is for a cluster that leaves ZooKeeper mode while none of its brokers runs. Rules:

- Partitions keep their leader epoch, their partition epoch (the version of the state's node) and their in-sync replicas, so that
  nobody who knows a partition finds it younger than it was. The leader stays where ``broker_id`` says that it is the only
  broker there is. Else there is none, and the first of the in-sync replicas that is back is elected.
- A node that is not understood raises ``UnmovableStateError``: a cluster that went on without it would have lost something.
  ZooKeeper mode passes over such a node, but leaves it where it is.
- What is set on a topic that does not exist is left behind, since a later topic of that name must not have it.
- A topic that is being deleted is not in the image, and ``ConvertedImage.deleted`` names it.
- With eligible leader replicas (KIP-966) ``min.insync.replicas`` is set on all brokers and on none.

Nothing here is I/O. The ids that nodes do not have are random: those of access rules, and those of old topics.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from ....base.partitions import NO_LEADER, TopicPartition
from ....base.wording import listed
from ....metadata.delta import ClusterDelta, TopicDelta
from ....metadata.image import ClusterImage
from ....metadata.types import (
    MIGRATING_DIRECTORY,
    FinalizedFeatures,
    LeaderState,
    PartitionRegistration,
    ReplicaAssignment,
    TopicAssignment,
)
from ....security import delegation
from ....security.acl import RESOURCE_TYPES, AclBinding, AclEntry, PatternType, ResourcePattern
from ....security.delegation import DelegationToken
from ....security.entities import BROKERS, CLIENTS, DEFAULT, TOPICS, USERS, Entity
from ....security.quota_keys import read_limits
from ....security.scram import StoredCredentials, UnusableCredential, read_credentials
from ....wire.schema import ZERO_UUID
from ...quorum.metadata_version import ELR, KRAFT_VERSION
from ...random_uuids import random_uuid
from ..nodes import acl_znodes, znodes
from ..nodes.decoding import NOT_UNDERSTOOD
from ..nodes.token_znodes import TOKENS
from ..store.znode_tree import ZnodeTree

T = TypeVar("T")

_MIN_ISR = "min.insync.replicas"


class UnmovableStateError(Exception):
    """The tree cannot become the metadata of a cluster of KRaft. ``str()`` says why in one line."""


@dataclasses.dataclass(frozen=True)
class MoveRules:
    """What the tree does not say."""

    levels: Mapping[str, int]
    """The levels of features that the new cluster begins with."""
    broker_id: int | None = None
    """The only broker of the cluster; None where there are several."""
    clear: Callable[[str, Mapping[str, str]], Mapping[str, str]] = lambda broker, stored: stored
    """What is set on a broker with its passwords in the clear, without those that cannot be decrypted."""
    may_delete_topics: bool = True
    known_id: Callable[[str], bytes | None] = lambda topic: None
    """The id of a topic that the log directories know and the tree does not."""
    directory_of: Callable[[TopicPartition], bytes] = lambda partition: MIGRATING_DIRECTORY
    """The id of the log directory that ``broker_id`` has a partition in; reserved ids stand for what is not known."""


@dataclasses.dataclass(frozen=True)
class ConvertedImage:
    """The image, and what else follows from the tree."""

    image: ClusterImage
    deleted: Mapping[str, bytes]
    """The topics whose deletion was under way, each with its id. Only their logs are left."""
    left_behind: tuple[str, ...]
    """What the image does not have although the tree does: a line for people each."""


def knows_topics(tree: ZnodeTree) -> bool:
    """Whether a broker has ever used the tree. Without that, the log directories may have topics that it does not know of."""
    return znodes.TOPICS in tree.nodes


def cluster_id_of(tree: ZnodeTree) -> str | None:
    """The cluster's id. Raises UnmovableStateError."""
    return _decoded(tree, znodes.CLUSTER_ID, znodes.decode_cluster_id)


def tree_image(tree: ZnodeTree | None, rules: MoveRules, randomness: random.Random) -> ConvertedImage:
    """The image, without a position; that of a cluster with nothing in it where there is no tree. Raises UnmovableStateError."""
    return _ImageConversion(tree or ZnodeTree(), rules, randomness).run()


def _decoded(tree: ZnodeTree, path: str, decode: Callable[[bytes], T]) -> T | None:
    node = tree.nodes.get(path)
    if node is None:
        return None
    try:
        return decode(node.data)
    except NOT_UNDERSTOOD as error:
        raise UnmovableStateError(f"{path} is not understood: {error!r}") from None


class _ImageConversion:
    def __init__(self, tree: ZnodeTree, rules: MoveRules, randomness: random.Random) -> None:
        self._tree = tree
        self._rules = rules
        self._randomness = randomness
        self._left_behind: list[str] = []

    def run(self) -> ConvertedImage:
        assignments = dict(self._assignments())
        deleted = {name: assignments.pop(name).topic_id for name in self._deletions() if name in assignments}
        self._check_moves(assignments)
        topics = [self._topic(name, assignment) for name, assignment in assignments.items()]
        configs, quotas, scram = self._settings(assignments.keys())
        bindings = {random_uuid(self._randomness): binding for binding in self._bindings()}
        entries: dict[ResourcePattern, frozenset[AclEntry]] = {}
        for pattern, entry in bindings.values():
            entries[pattern] = entries.get(pattern, frozenset()) | {entry}
        levels = {name: level for name, level in sorted(self._rules.levels.items()) if level and name != KRAFT_VERSION}
        delta = ClusterDelta(
            topics=topics,
            configs=configs,
            quotas=quotas,
            scram=scram,
            acls=entries,
            acl_ids=bindings,
            tokens=self._tokens(),
            next_producer_id=self._next_producer_id(),
            features=FinalizedFeatures(-1, levels),
        )
        return ConvertedImage(ClusterImage().apply(delta), deleted, tuple(self._left_behind))

    def _children(self, path: str) -> list[str]:
        return sorted(self._tree.nodes[path].children) if path in self._tree.nodes else []

    # --- topics -------------------------------------------------------------------------------------------------------

    def _assignments(self) -> Iterator[tuple[str, TopicAssignment]]:
        for name in self._children(znodes.TOPICS):
            assignment = _decoded(self._tree, znodes.topic_path(name), znodes.decode_topic)
            assert assignment is not None, "a child exists"
            if assignment.topic_id == ZERO_UUID:
                topic_id = self._rules.known_id(name) or random_uuid(self._randomness)
                assignment = assignment._replace(topic_id=topic_id)
            yield name, assignment

    def _deletions(self) -> list[str]:
        """The topics that are being deleted. Where nothing may be deleted ZooKeeper mode gives that up (TopicDeletionManager)."""
        marked = self._children(znodes.DELETE_TOPICS) if self._rules.may_delete_topics else []
        if marked and self._rules.broker_id is None:
            raise UnmovableStateError(f"topics are being deleted ({', '.join(marked)}): let that end first")
        return marked

    def _check_moves(self, assignments: Mapping[str, TopicAssignment]) -> None:
        moving = [
            f"{name}-{number}"
            for name, assignment in assignments.items()
            for number, replicas in assignment.partitions.items()
            if replicas.is_moving
        ]
        wanted = _decoded(self._tree, znodes.REASSIGN_PARTITIONS, znodes.decode_reassignments) or {}
        moving += [f"{topic}-{number}" for topic, number in wanted if f"{topic}-{number}" not in moving]
        if moving:
            shown = listed(moving, 10)
            raise UnmovableStateError(f"replicas are being moved ({shown}): let that end first, or cancel it")

    def _topic(self, name: str, assignment: TopicAssignment) -> TopicDelta:
        partitions = {
            number: self._partition(TopicPartition(name, number), replicas)
            for number, replicas in assignment.partitions.items()
        }
        return TopicDelta(name, assignment.topic_id, partitions)

    def _partition(self, key: TopicPartition, assignment: ReplicaAssignment) -> PartitionRegistration:
        path, own = znodes.state_path(*key), self._rules.broker_id
        replicas = assignment.replicas
        state = _decoded(self._tree, path, znodes.decode_state)
        if state is None:  # the topic was made, and nobody has elected a leader yet: there is nothing in its logs
            state, partition_epoch = LeaderState(replicas[0], 0, replicas, 0), 0
        else:
            partition_epoch = self._tree.nodes[path].version
        return PartitionRegistration(
            leader=state.leader if state.leader == own else NO_LEADER,
            leader_epoch=state.leader_epoch,
            partition_epoch=partition_epoch,
            isr=state.isr,
            replicas=replicas,
            is_recovering=state.is_recovering,
            directories=tuple(
                self._rules.directory_of(key) if replica == own else MIGRATING_DIRECTORY for replica in replicas
            ),
        )

    def _next_producer_id(self) -> int | None:
        """A node that is not understood could name ids that are in use."""
        node = self._tree.nodes.get(znodes.PRODUCER_ID_BLOCK)
        if node is None or not node.data:
            return None
        block = _decoded(self._tree, znodes.PRODUCER_ID_BLOCK, znodes.decode_producer_id_block)
        return None if block is None else block[1] + 1

    # --- configs, quotas, credentials ---------------------------------------------------------------------------------

    def _entities(self) -> Iterator[tuple[Entity, Mapping[str, str]]]:
        """What something is set on, and what; nodes at which nothing can be set are passed over, as ever."""
        for kind in znodes.ENTITY_KINDS:
            for node in self._children(znodes.config_path(kind)):
                names = [node]
                if kind is USERS:
                    clients = self._children(znodes.config_path(USERS, f"{node}/{CLIENTS}"))
                    names += [f"{node}/{CLIENTS}/{client}" for client in clients]
                for name in names:
                    values = _decoded(self._tree, znodes.config_path(kind, name), znodes.decode_config)
                    if values:
                        yield Entity(kind, znodes.entity_name(kind, name)), values

    def _settings(
        self, topics: Collection[str]
    ) -> tuple[dict[Entity, Mapping[str, str]], dict[Entity, Mapping[str, float]], dict[str, StoredCredentials]]:
        configs: dict[Entity, Mapping[str, str]] = {}
        quotas: dict[Entity, Mapping[str, float]] = {}
        scram: dict[str, StoredCredentials] = {}
        for entity, values in self._entities():
            kind, name = entity
            if kind is TOPICS:
                if name in topics:
                    configs[entity] = values
            elif kind is BROKERS:
                configs[entity] = self._in_the_clear(znodes.entity_node(*entity), values)
            else:
                quotas[entity] = read_limits(entity, values)
                if kind is USERS and isinstance(name, str):
                    scram[name] = self._credentials(name, values)
        if self._rules.levels.get(ELR, 0):
            self._unite_min_isr(configs)
        return configs, quotas, scram

    def _in_the_clear(self, broker: str, values: Mapping[str, str]) -> Mapping[str, str]:
        clear = self._rules.clear(broker, values)
        self._left_behind += [
            f"{name} of broker {broker}, which password.encoder.secret does not decrypt"
            for name in sorted(values.keys() - clear.keys())
        ]
        return clear

    def _credentials(self, user: str, values: Mapping[str, str]) -> StoredCredentials:
        """Those with which the user could log in."""
        found = read_credentials(values)
        usable = {each: value for each, value in found.items() if not isinstance(value, UnusableCredential)}
        self._left_behind += [
            f"the {mechanism.sasl_name} credential of user {user}, which is damaged"
            for mechanism in found.keys() - usable.keys()
        ]
        return usable

    def _unite_min_isr(self, configs: dict[Entity, Mapping[str, str]]) -> None:
        """Set ``min.insync.replicas`` on all brokers to what holds for the only one there is. That of one among several goes."""
        own = None if self._rules.broker_id is None else Entity(BROKERS, str(self._rules.broker_id))
        for entity in [entity for entity, values in configs.items() if entity.kind is BROKERS and _MIN_ISR in values]:
            if entity.name is DEFAULT:
                continue
            rest = dict(configs[entity])
            value = rest.pop(_MIN_ISR)
            configs[entity] = rest
            if entity == own:
                everyone = Entity(BROKERS, DEFAULT)
                configs[everyone] = {**configs.get(everyone, {}), _MIN_ISR: value}
            else:
                self._left_behind.append(f"{_MIN_ISR} of broker {entity.name}, which is one value for all brokers now")

    # --- access -------------------------------------------------------------------------------------------------------

    def _bindings(self) -> Iterator[AclBinding]:
        for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
            for resource_type in RESOURCE_TYPES:
                for name in self._children(acl_znodes.folder(pattern_type, resource_type)):
                    pattern = ResourcePattern(resource_type, name, pattern_type)
                    entries = _decoded(self._tree, acl_znodes.path(pattern), acl_znodes.decode_entries)
                    yield from (AclBinding(pattern, entry) for entry in sorted(entries or ()))

    def _tokens(self) -> dict[str, DelegationToken]:
        tokens = {}
        for token_id in self._children(TOKENS):
            token = _decoded(self._tree, f"{TOKENS}/{token_id}", delegation.decode_token)
            if token is not None and token.token_id == token_id:
                tokens[token_id] = token
        return tokens
