"""The context of an operation on the controller's state: active brokers, effective configs, partition changes.

A context is made for one operation and dropped with it. It changes nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from ....metadata.image import ClusterImage, TopicImage
from ....metadata.rules.striped_placement import UsableBroker
from ....metadata.types import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionRegistration,
    QuorumBroker,
)
from ....security.entities import DEFAULT
from ....wire.metadata_records import VersionedRecord
from .. import metadata_version
from .image_index import ImageIndex
from .partition_changes import PartitionRules, PartitionTarget, partition_change
from .state import ControllerState

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


@dataclasses.dataclass(frozen=True)
class ActiveSettings:
    """What the file of a controller says. All durations in ms."""

    node_id: int
    cluster_id: str
    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    session_timeout_ms: int = 9_000
    """``broker.session.timeout.ms``: after so long without a heartbeat a broker is fenced."""
    imbalance_check_interval_ms: int | None = 300_000
    """None: preferred leaders are elected on request only (``auto.leader.rebalance.enable``)."""
    unclean_election_interval_ms: int = 300_000
    """``unclean.leader.election.interval.ms``."""


class OperationContext:
    """One state and the settings. Who is alive is what registrations say; heartbeats decide when these change."""

    def __init__(self, state: ControllerState, settings: ActiveSettings) -> None:
        self.state = state
        self.settings = settings
        self.level = metadata_version.finalized_level(state.image.features)
        features = state.image.features
        self.has_elr = features is not None and features.levels.get(metadata_version.ELR, 0) > 0
        self._topic_rules: dict[str, tuple[int, bool]] = {}

    @property
    def image(self) -> ClusterImage:
        return self.state.image

    @property
    def index(self) -> ImageIndex:
        return self.state.index

    # --- brokers ------------------------------------------------------------------------------------------------------

    def broker(self, broker_id: int) -> QuorumBroker | None:
        """A broker that is registered."""
        return self.image.quorum_brokers.newest().get(broker_id)

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is neither fenced nor in controlled shutdown."""
        broker = self.broker(broker_id)
        return broker is not None and not broker.is_fenced and not broker.is_shutting_down

    def usable_brokers(self) -> Iterable[UsableBroker]:
        """The brokers that may get new replicas. One that shuts down gets none, nor one whose directories are all cordoned."""
        for broker_id, broker in self.image.quorum_brokers.newest().items():
            is_cordoned = (
                broker.cordoned is not None
                and broker.directories
                and not (set(broker.directories) - set(broker.cordoned))
            )
            if not broker.is_shutting_down and not is_cordoned:
                endpoints = broker.registration.endpoints
                machine = endpoints[0].host if endpoints else None
                yield UsableBroker(broker_id, broker.registration.rack, broker.is_fenced, machine)

    def default_directory(self, broker_id: int) -> bytes:
        """Where a broker puts a new replica: its only directory, UNASSIGNED where it has the choice (KIP-858)."""
        if not metadata_version.has_directories(self.level):
            return MIGRATING_DIRECTORY
        broker = self.broker(broker_id)
        if broker is None:
            return UNASSIGNED_DIRECTORY
        if not broker.directories:
            return MIGRATING_DIRECTORY
        return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED_DIRECTORY

    def has_online_directory(self, broker_id: int, directory: bytes) -> bool:
        """Whether a broker is registered and the directory works; one that is not told yet counts as working (DirectoryId)."""
        broker = self.broker(broker_id)
        if broker is None or directory == LOST_DIRECTORY:
            return False
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY) or not broker.directories:
            return True
        return directory in broker.directories

    # --- topics -------------------------------------------------------------------------------------------------------

    def topic(self, topic_id: bytes) -> TopicImage | None:
        return self.image.topics_by_id.newest().get(topic_id)

    def topic_named(self, name: str) -> TopicImage | None:
        return self.image.topics.newest().get(name)

    def min_isr(self, topic: TopicImage) -> int:
        """The effective ``min.insync.replicas``: never above the number of replicas of the first partition, as in Kafka."""
        return self._rules(topic)[0]

    def allows_unclean_election(self, topic: TopicImage) -> bool:
        return self._rules(topic)[1]

    def _rules(self, topic: TopicImage) -> tuple[int, bool]:
        rules = self._topic_rules.get(topic.name)
        if rules is None:
            min_isr = self._config(topic.name, MIN_ISR) or self.settings.min_insync_replicas
            unclean = self._config(topic.name, UNCLEAN_ELECTION)
            rules = self._topic_rules[topic.name] = (
                min(int(min_isr), len(topic.partitions[0].replicas)),
                self.settings.unclean_leader_election if unclean is None else unclean.lower() == "true",
            )
        return rules

    def _config(self, topic: str, name: str) -> str | None:
        """A topic's own, else this node's, else that of all brokers (Kafka's KafkaConfigSchema)."""
        for configs in (
            self.image.topic_config(topic),
            self.image.broker_config(str(self.settings.node_id)),
            self.image.broker_config(DEFAULT),
        ):
            if name in configs:
                return configs[name]
        return None

    # --- partitions ---------------------------------------------------------------------------------------------------

    def change(
        self,
        topic: TopicImage,
        number: int,
        target: PartitionTarget,
        is_alive: Callable[[int], bool] | None = None,
    ) -> VersionedRecord | None:
        """The record that makes a partition into its target; None where nothing changes. By default active brokers may lead."""
        partition = topic.partitions[number]
        alive = self.is_active if is_alive is None else is_alive

        def may_lead(broker_id: int) -> bool:
            return alive(broker_id) and self.has_online_directory(broker_id, directory_of(partition, broker_id))

        rules = PartitionRules(may_lead, self.default_directory, self.level, self.min_isr(topic), self.has_elr)
        return partition_change(topic.topic_id, number, partition, target, rules)


def directory_of(partition: PartitionRegistration, broker_id: int) -> bytes:
    """The directory of a replica; UNASSIGNED of one that is only about to be."""
    for replica, directory in zip(partition.replicas, partition.directories, strict=True):
        if replica == broker_id:
            return directory
    return UNASSIGNED_DIRECTORY
