"""The plan of a migration to KRaft: the state found on a node and in ZooKeeper, and the differences afterwards.

Both are in lines for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...base.config import Config
from ...base.wording import counted
from ...controller.quorum.metadata_version import ELR, FEATURE, release_of
from ...controller.quorum.settings import BROKER_ROLE, CONTROLLER_ROLE, QuorumSettings
from ...controller.zookeeper.leaving.leaving_cluster import LeavingCluster
from ...controller.zookeeper.leaving.old_state import KEPT_PREFIX
from ...controller.zookeeper.leaving.tree_image import ConvertedImage
from ...controller.zookeeper.store.zookeeper_settings import ZooKeeperSettings
from ...log.checkpoints import META_PROPERTIES, MetaProperties
from ...log.log_directories import metadata_log_dir_of
from ...security.entities import BROKERS, TOPICS
from ...wire.schema import ZERO_UUID
from ..identity import log_directories
from ..settings import BrokerSettings
from .format_directories import Formatting, levels_of
from .found_logs import FoundLog

KEPT_META = KEPT_PREFIX + META_PROPERTIES

_SHOWN = 10


class MigrationError(Exception):
    """The node cannot be moved, or not back. ``str()`` says why in one line."""


@dataclass(frozen=True)
class MigratingNode:
    """One node, by its server.properties before and after the migration."""

    old: Config
    """With zookeeper.connect."""
    new: Config
    """With process.roles."""

    def check(self) -> None:
        """Raises MigrationError, SettingError."""
        if self.old.settings(ZooKeeperSettings).connect is None:
            raise MigrationError("the previous file has no zookeeper.connect")
        if self.new.settings(ZooKeeperSettings).connect is not None:
            raise MigrationError("the new file has zookeeper.connect, which a node of KRaft has not")
        quorum = self.new.settings(QuorumSettings)
        if not quorum.process_roles:
            raise MigrationError("the new file has no process.roles")
        if not self.new.is_given("node.id"):
            raise MigrationError("the new file has no node.id")
        if not self.new.settings(BrokerSettings).controller_listener_names:
            raise MigrationError("the new file has no controller.listener.names")
        if quorum.voters:
            raise MigrationError(
                "the new file has controller.quorum.voters: with these, a node without the metadata could be elected. Name the "
                "controllers in controller.quorum.bootstrap.servers instead"
            )
        if self.is_broker and {*log_directories(self.old)} != {*log_directories(self.new)}:
            raise MigrationError("log.dirs is not the same in both files")

    @property
    def node_id(self) -> int:
        return self.new.settings(BrokerSettings).node_id

    @property
    def is_controller(self) -> bool:
        return CONTROLLER_ROLE in self.new.settings(QuorumSettings).process_roles

    @property
    def is_broker(self) -> bool:
        return BROKER_ROLE in self.new.settings(QuorumSettings).process_roles

    @property
    def metadata_directory(self) -> str:
        return metadata_log_dir_of(self.new.settings(QuorumSettings).metadata_log_dir, log_directories(self.new))

    @property
    def directories(self) -> list[str]:
        return [*dict.fromkeys((*log_directories(self.new), self.metadata_directory))]


@dataclass(frozen=True)
class Difference:
    """What a migration does to a node and its cluster, a line for people each."""

    stays: Sequence[str]
    """What is kept as it is."""
    changes: Sequence[str]
    """What is different afterwards."""
    left_behind: Sequence[str]
    """What is lost."""


@dataclass(frozen=True)
class MigrationPlan:
    """The plan for one node."""

    node: MigratingNode
    cluster: LeavingCluster
    is_first: bool
    """Whether this node begins the quorum, with the cluster's metadata."""
    wanted: Formatting
    moved: ConvertedImage
    found: Sequence[FoundLog]
    """The logs in the node's log directories."""
    metas: Mapping[str, MetaProperties | None]
    """By directory, whose it is; None for one that says nothing."""

    @property
    def is_done(self) -> bool:
        """Whether the node is one of KRaft already; the directory of the metadata log says so last."""
        meta = self.metas[self.node.metadata_directory]
        return meta is not None and meta.version == 1

    def difference(self) -> Difference:
        stays, changes, left_behind = [*self._stays()], [*self._changes()], [*self._left_behind()]
        return Difference(stays, changes, left_behind)

    def _stays(self) -> Iterator[str]:
        image = self.moved.image
        partitions = sum(len(topic.partitions) for topic in image.topics.values())
        yield f"cluster {self.wanted.cluster_id}, node {self.node.node_id}"
        if self.found:
            yield f"{counted(len(self.found), 'log')} of this node, with every record in it"
        if not self.is_first:
            return
        topics = f"{counted(len(image.topics), 'topic')} with {counted(partitions, 'partition')}"
        yield f"{topics}: ids, replicas, in-sync replicas, epochs"
        configs = [entity for entity, values in image.configs.items() if values]
        for kind, what in ((TOPICS, "topic"), (BROKERS, "broker")):
            if number := sum(entity.kind is kind for entity in configs):
                yield f"settings of {counted(number, what)}"
        for number, what in (
            (sum(1 for limits in image.quotas.values() if limits), "quota entity"),
            (sum(len(credentials) for credentials in image.scram.values()), "SCRAM credential"),
            (len(image.acl_ids), "access rule"),
            (len(image.tokens), "delegation token"),
        ):
            if number:
                yield counted(number, what, "quota entities" if what == "quota entity" else None)
        if image.next_producer_id is not None:
            yield f"producer ids below {image.next_producer_id} are used"

    def _changes(self) -> Iterator[str]:
        if self.is_done:
            return
        if self.is_first:
            if names := self.cluster.topics_without_id:
                yield f"{counted(len(names), 'topic')} without an id get one: {_some(names)}"
            if features := self.cluster.features:
                yield f"features finalized in ZooKeeper mean nothing any more: {_some(features)}"
            yield f"{FEATURE} is {release_of(levels_of(self.wanted)[FEATURE])}"
            yield f"{ELR} is 0, and can be raised by 'ottla cluster upgrade' once every broker has started"
            yield "every partition has no leader until an in-sync replica of it has started"
            if self.cluster.fence is None:
                yield "no broker of ZooKeeper mode starts any more on directories of this cluster"
        for directory, meta in self.metas.items():
            if meta is None:
                yield f"{directory} is formatted"
            elif meta.version == 0:
                yield f"{directory}: {META_PROPERTIES} gets version 1; the previous file is kept as {KEPT_META}"
        yield f"node {self.node.node_id} {'is the first voter' if self.is_first else 'follows the quorum'}"

    def _left_behind(self) -> Iterator[str]:
        if self.is_first:
            yield from self.moved.left_behind
            if groups := self.cluster.old_groups:
                yield f"offsets that consumers before Kafka 0.9 keep in ZooKeeper: {_some(groups)}"
        if strays := [*self._strays()]:
            yield f"logs that no topic of the cluster has on this node, which the start sets aside: {_some(strays)}"

    def _strays(self) -> Iterator[str]:
        for log in self.found:
            topic = self.moved.image.topics.get(log.partition.topic)
            partition = None if topic is None else topic.partitions.get(log.partition.partition)
            is_known = topic is not None and log.topic_id in (None, topic.topic_id, ZERO_UUID)
            if partition is None or not is_known or self.node.node_id not in partition.replicas:
                yield log.name


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_SHOWN]) + (f", and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")
