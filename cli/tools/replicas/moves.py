"""Moves of replicas between brokers: listed, begun and cancelled by ordinary admin requests (KIP-455)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ....balance.answers import ReportedPartition, brokers_out_of_sync
from ....balance.machines import racks_or_machines
from ....base.wording import listed
from ....wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ..client import Admin
from ..cluster_view import Key, TopicPartitionInfo, find_topics
from ..running import ToolError, refusal
from ..wire_request import WireRequest
from .replica_plan import Racks, Replicas

_VERSIONS = (0, 1)
_MOST_NAMED = 3


@dataclasses.dataclass(frozen=True)
class PartitionReassignment:
    """A partition that gets other replicas."""

    replicas: Replicas
    """All that it has meanwhile, the future ones first."""
    adding: Replicas
    removing: Replicas

    @property
    def target(self) -> Replicas:
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def sources(self) -> Replicas:
        """Those that have the data."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)


def planned(current: Replicas, target: Replicas) -> PartitionReassignment:
    """The move that makes ``target`` of ``current``."""
    adding = tuple(replica for replica in target if replica not in current)
    removing = tuple(replica for replica in current if replica not in target)
    return PartitionReassignment((*target, *removing), adding, removing)


class ClusterLayout:
    """Where all replicas are, with what is under way, and the brokers that are alive with their racks, or machines."""

    def __init__(self, admin: Admin) -> None:
        """Raises ToolError."""
        _check_version(admin)
        brokers = admin.describe_cluster()["brokers"]
        self.racks: Racks = racks_or_machines({each["broker_id"]: (each["rack"], each["host"]) for each in brokers})
        self.moves = under_way(admin)
        self.partitions: dict[Key, TopicPartitionInfo] = {
            (topic.name, partition.number): partition
            for topic in find_topics(admin, None)
            for partition in topic.partitions
        }
        self.targets: dict[Key, Replicas] = {
            key: self.moves[key].target if key in self.moves else partition.replicas
            for key, partition in self.partitions.items()
        }

    @property
    def receiving(self) -> Racks:
        """The brokers to choose from for new replicas: not those that are in sync nowhere, which may be about to stop."""
        partitions = [
            ReportedPartition(self.targets[key], partition.replicas, partition.leader, partition.isr)
            for key, partition in self.partitions.items()
        ]
        out_of_sync = brokers_out_of_sync(self.racks, partitions)
        return {broker: rack for broker, rack in self.racks.items() if broker not in out_of_sync}

    def move_to(self, key: Key, target: Replicas) -> PartitionReassignment:
        """What is to be done with a partition, be it on its way elsewhere or not."""
        move = self.moves.get(key)
        return planned(self.partitions[key].replicas if move is None else move.sources, target)


def under_way(admin: Admin) -> dict[Key, PartitionReassignment]:
    """Every move under way in the cluster. Raises ToolError."""
    return {
        (where.topic, where.partition): PartitionReassignment(
            tuple(found["replicas"]), tuple(found["adding_replicas"]), tuple(found["removing_replicas"])
        )
        for where, found in admin.list_partition_reassignments().items()
    }


def submit(admin: Admin, targets: Mapping[Key, Replicas | None]) -> None:
    """Have the controller begin moves, or with None cancel them. Raises ToolError with what it refuses; the rest is begun."""
    grouped: dict[str, list[ReassignablePartition]] = {}
    for (topic, number), replicas in sorted(targets.items()):
        asked = ReassignablePartition(partition_index=number, replicas=None if replicas is None else list(replicas))
        grouped.setdefault(topic, []).append(asked)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=partitions) for topic, partitions in grouped.items()]
    )
    answer = admin.ask_controller(WireRequest(request, *_VERSIONS))
    if answer.error_code:
        raise ToolError(refusal(answer.error_code, answer.error_message))
    refused = [
        f"{topic.name}-{partition.partition_index}: {refusal(partition.error_code, partition.error_message)}"
        for topic in answer.responses
        for partition in topic.partitions
        if partition.error_code
    ]
    if refused:
        more = f"; and {len(refused) - _MOST_NAMED} more" if len(refused) > _MOST_NAMED else ""
        raise ToolError("; ".join(refused[:_MOST_NAMED]) + more)


def named(keys: list[Key]) -> str:
    """A few partitions, for people."""
    return listed([f"{topic}-{number}" for topic, number in keys], _MOST_NAMED)


def _check_version(admin: Admin) -> None:
    if not admin.knows(WireRequest(AlterPartitionReassignmentsRequest(topics=[]), *_VERSIONS)):
        raise ToolError("these brokers are too old to move replicas, which Kafka can since 2.4")
