"""Other replicas for a partition (KIP-455): what may be asked for, and what is under way. Pure.

A target that is what the partition has already is no work. Replicas are not moved between brokers yet, so nothing is ever
under way but what an Apache Kafka controller has begun.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..base.errors import ErrorCode, KafkaError
from .context import PartitionState


def check_reassignment(partition: PartitionState, replicas: Sequence[int] | None, live: Collection[int]) -> None:
    """Refuse ``replicas`` (None: end what is under way) unless they are what the partition has. Raises KafkaError."""
    if replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    if not replicas:
        raise _invalid("Empty replica list specified in partition reassignment.")
    if len(set(replicas)) < len(replicas):
        raise _invalid(f"Duplicate replica ids in partition reassignment replica list: {list(replicas)}")
    if min(replicas) < 0:
        raise _invalid(f"Invalid broker id in replica list: {list(replicas)}")
    current = partition.assignment.replicas
    added = [broker_id for broker_id in replicas if broker_id not in current]
    if not set(added) <= set(live):
        raise _invalid(f"Replica assignment has brokers that are not alive: {added}, live brokers: {sorted(live)}")
    if tuple(replicas) != current:
        raise _invalid("Replicas are not moved between brokers.")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def is_under_way(partition: PartitionState) -> bool:
    return bool(partition.assignment.adding or partition.assignment.removing)
