"""The rules of the product that breakages replace: the one place that knows where each of them is enforced.

A rule that moves within the product is changed here, and nowhere else in the simulation.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ottla.controller.zookeeper.active import (
    controller_term,
    partition_state_machine,
    reassignment,
    topic_changes,
    topic_deletions,
    topics,
)
from ottla.controller.zookeeper.active.alter_partition import AlterPartitions
from ottla.controller.zookeeper.active.controller_term import ControllerTerm
from ottla.controller.zookeeper.active.known_brokers import KnownBrokers
from ottla.controller.zookeeper.active.partition_state_machine import PartitionStateMachine
from ottla.controller.zookeeper.active.topic_deletions import TopicDeletionManager
from ottla.controller.zookeeper.replica_requests import ReplicaRequests
from ottla.controller.zookeeper.state import (
    partition_states,
)
from ottla.log import follower_append
from ottla.replication import alter_partition, fetcher
from ottla.replication.fetch_watches import FetchWatches
from ottla.replication.leader import LeaderRole
from ottla.replication.replica_manager import ReplicaManager
from ottla.transaction_coordinator.coordinator import TransactionCoordinator


@dataclasses.dataclass(frozen=True)
class Rule:
    """A function or property of the product: ``name``, as each of ``owners`` (classes or modules) looks it up."""

    name: str
    owners: tuple[Any, ...]

    def __post_init__(self) -> None:
        found = {owner.__name__: getattr(owner, self.name, None) for owner in self.owners}
        missing = [name for name, rule in found.items() if not callable(rule) and not isinstance(rule, property)]
        assert not missing, f"{self.name} is no rule of {missing} any more"

    @property
    def function(self) -> Any:
        """The product's own, as the first owner has it."""
        return getattr(self.owners[0], self.name)

    def replace(self, patch: pytest.MonkeyPatch, function: Any) -> None:
        """Enforce ``function`` instead, until ``patch`` is undone."""
        for owner in self.owners:
            patch.setattr(owner, self.name, function)


# Replication
COMMITTED_END = Rule("committed_end", (LeaderRole,))
EXPANSION = Rule("expansion", (LeaderRole,))
FOLLOWER_OF_EPOCH = Rule("follower", (LeaderRole,))
FETCH_POSITION = Rule("position_of", (fetcher,))
EPOCH_TO_JOIN = Rule("_epoch_to_join", (alter_partition,))
APPENDED_EPOCHS = Rule("_checked", (follower_append,))
REQUESTS_OF_BROKER_EPOCH = Rule("check_broker_epoch", (ReplicaRequests,))
TOLD_OF_APPENDS = Rule("notify_followers", (FetchWatches,))
REMOVED_REPLICAS = Rule("_delete_removed", (ReplicaManager,))

# The controller
KNOWN_LEADER = Rule("_knows", (AlterPartitions,))
FENCED_WRITE = Rule("fenced_multi", (partition_states, topic_deletions, controller_term, topics, topic_changes))
REPLICAS_TO_DELETE = Rule("_replicas_of", (TopicDeletionManager,))
FAILED_BROKERS = Rule("_brokers_failed", (ControllerTerm,))
FAILED_OVER_STATE = Rule("failed_over_state", (partition_state_machine,))
FINISHED_MOVE = Rule("finished_state", (reassignment,))
TOLD_OF_MOVE = Rule("send_reassignment", (PartitionStateMachine,))
STAYED_BROKERS = Rule("stayed", (KnownBrokers,))

# Coordinators
CERTAIN_COORDINATOR = Rule("_confirm_state", (TransactionCoordinator,))
