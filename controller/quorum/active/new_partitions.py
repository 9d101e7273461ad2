"""New partitions: the checks of their replicas, and the records that create them.

Replicas that a client names must be registered, and one of them active. Source: Kafka's ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ....base.errors import ErrorCode, KafkaError
from ....metadata.types import PartitionRegistration
from ....wire.metadata_records import VersionedRecord
from ..snapshot_records import partition_record
from .context import OperationContext
from .partition_changes import Replicas


def check_replicas(context: OperationContext, replicas: Sequence[int], factor: int | None) -> None:
    """Replicas that a client names: registered brokers, each once, and ``factor`` of them. Raises INVALID_REPLICA_ASSIGNMENT."""
    if not replicas:
        raise bad_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        if context.broker(broker_id) is None:
            raise bad_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == previous:
            raise bad_assignment(f"The manual partition assignment includes the broker {broker_id} more than once.")
        previous = broker_id
    if factor is not None and len(replicas) != factor:
        raise bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )


def check_active(context: OperationContext, number: int, replicas: Iterable[int]) -> None:
    if not any(map(context.is_active, replicas)):
        raise bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {number} are fenced or in "
            "controlled shutdown."
        )


def check_one_active(context: OperationContext, placed: Iterable[Replicas], factor: int) -> None:
    for replicas in placed:
        if not any(map(context.is_active, replicas)):
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently fenced or in controlled "
                "shutdown.",
            )


def partition_records_of(
    context: OperationContext, topic_id: bytes, placed: Mapping[int, Replicas]
) -> list[VersionedRecord]:
    """New partitions: the active brokers are in sync, and the first of them leads."""
    records = []
    for number, replicas in placed.items():
        isr = tuple(filter(context.is_active, replicas))
        directories = tuple(map(context.default_directory, replicas))
        partition = PartitionRegistration(isr[0], 0, 0, isr, replicas, directories=directories)
        records.append(partition_record(topic_id, number, partition, context.level, has_elr=context.has_elr))
    return records


def bad_assignment(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
