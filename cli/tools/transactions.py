"""``ottla transactions list | describe | producers | find-hanging | abort``, as kafka-transactions has them (KIP-664)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import kafka.errors
from kafka import TopicPartition
from kafka.admin import AbortTransactionSpec

from .client import Admin, ClusterConnection
from .cluster_view import chosen_partitions, find_topics
from .nearest import absent, transactional_ids
from .output import OutputColumn, print_rows
from .running import ToolError, UsageError

LIST_COLUMNS = (
    OutputColumn("transactional_id"),
    OutputColumn("coordinator", is_number=True),
    OutputColumn("producer_id", is_number=True),
    OutputColumn("state"),
)
DESCRIBE_COLUMNS = (
    OutputColumn("coordinator", is_number=True),
    OutputColumn("transactional_id"),
    OutputColumn("producer_id", is_number=True),
    OutputColumn("producer_epoch", is_number=True),
    OutputColumn("state"),
    OutputColumn("timeout_ms", is_number=True),
    OutputColumn("start_time_ms", is_number=True),
    OutputColumn("duration_ms", is_number=True),
    OutputColumn("partitions"),
)
PRODUCER_COLUMNS = (
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("producer_id", is_number=True),
    OutputColumn("producer_epoch", is_number=True),
    OutputColumn("coordinator_epoch", is_number=True),
    OutputColumn("last_sequence", is_number=True),
    OutputColumn("last_timestamp", is_number=True),
    OutputColumn("start_offset", is_number=True),
)
HANGING_COLUMNS = (
    OutputColumn("topic"),
    OutputColumn("partition", is_number=True),
    OutputColumn("producer_id", is_number=True),
    OutputColumn("producer_epoch", is_number=True),
    OutputColumn("coordinator_epoch", is_number=True),
    OutputColumn("start_offset", is_number=True),
    OutputColumn("last_timestamp", is_number=True),
    OutputColumn("duration_min", is_number=True),
)


def list_transactions(
    connection: ClusterConnection, *, states: Sequence[str] | None, producer_ids: Sequence[int] | None, as_json: bool
) -> None:
    """A row for each transactional id that a coordinator knows. Raises KafkaError."""
    with closing(connection.admin()) as admin:
        found = admin.list_transactions(state_filters=states, producer_id_filters=producer_ids)
    rows = [
        (listing.transactional_id, coordinator, listing.producer_id, listing.state.value)
        for coordinator, listings in found.items()
        for listing in listings
    ]
    print_rows(LIST_COLUMNS, sorted(rows), as_json=as_json)


def describe(connection: ClusterConnection, ids: Sequence[str], *, as_json: bool) -> None:
    """A row for each transactional id. Raises ToolError for one that no coordinator knows."""
    rows = []
    with closing(connection.admin()) as admin:
        for transactional_id in dict.fromkeys(ids):
            told = _description(admin, transactional_id)
            if told is None:
                known, others = transactional_ids(admin), "'ottla transactions list' shows all ids"
                raise absent("transactional id", transactional_id, known, others, "TRANSACTIONAL_ID_NOT_FOUND")
            rows.append(_described(transactional_id, told))
    print_rows(DESCRIBE_COLUMNS, rows, as_json=as_json)


def _description(admin: Admin, transactional_id: str) -> Any:
    """What the coordinator knows of it; None for nothing."""
    try:
        return admin.describe_transactions([transactional_id])[transactional_id]
    except kafka.errors.TransactionalIdNotFoundError:
        return None


def _described(transactional_id: str, told: Any) -> tuple[Any, ...]:
    started = told.transaction_start_time_ms if told.transaction_start_time_ms >= 0 else None
    return (
        told.coordinator_id,
        transactional_id,
        told.producer_id,
        told.producer_epoch,
        told.state.value,
        told.transaction_timeout_ms,
        started,
        None if started is None else max(0, _now_ms() - started),
        sorted(f"{where.topic}-{where.partition}" for where in told.topic_partitions),
    )


def _now_ms() -> int:
    return round(time.time() * 1000)


class KnownProducer(NamedTuple):
    """A producer that a partition remembers, with a transaction open there or without."""

    where: TopicPartition
    producer: Any

    def hanging_row(self) -> tuple[Any, ...]:
        """Its transaction, as ``HANGING_COLUMNS`` have it."""
        producer = self.producer
        minutes = (_now_ms() - producer.last_timestamp) // 60_000
        return (
            *self.where,
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.current_transaction_start_offset,
            producer.last_timestamp,
            minutes,
        )


def list_producers(connection: ClusterConnection, topics: Sequence[str], *, broker: int | None, as_json: bool) -> None:
    """A row for each idempotent or transactional producer that partitions remember: their leaders, or this broker's replicas.

    Raises KafkaError, ToolError.
    """
    with closing(connection.admin()) as admin:
        rows = [
            (
                *where,
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.last_sequence,
                producer.last_timestamp,
                None if producer.current_transaction_start_offset < 0 else producer.current_transaction_start_offset,
            )
            for where, producer in _producers(admin, topics, broker)
        ]
    print_rows(PRODUCER_COLUMNS, rows, as_json=as_json)


def _producers(admin: Admin, topics: Sequence[str], broker: int | None) -> list[KnownProducer]:
    """Of all these partitions, or of all there are."""
    if topics:
        chosen = chosen_partitions(admin, topics)
    else:
        chosen = [(topic, p) for topic in find_topics(admin, None) for p in topic.partitions if p.leader is not None]
    wanted = [TopicPartition(topic.name, p.number) for topic, p in chosen if broker is None or broker in p.replicas]
    told = admin.describe_producers(wanted, broker_id=broker)
    return [KnownProducer(where, producer) for where in sorted(told) for producer in told[where].active_producers]


def find_hanging(
    connection: ClusterConnection, topics: Sequence[str], *, broker: int | None, max_timeout_min: int, as_json: bool
) -> None:
    """A row for each transaction that its coordinator will not end any more.

    These are open longer than any transaction may be, and their coordinator does not know the producer, or not the partition.
    """
    with closing(connection.admin()) as admin:
        latest = _now_ms() - max_timeout_min * 60_000
        candidates = [
            found
            for found in _producers(admin, topics, broker)
            if found.producer.current_transaction_start_offset >= 0 and found.producer.last_timestamp < latest
        ]
        ended_by = _partitions_with_coordinator(admin, {found.producer.producer_id for found in candidates})
    hanging = [found for found in candidates if found.where not in ended_by.get(found.producer.producer_id, ())]
    print_rows(HANGING_COLUMNS, [found.hanging_row() for found in hanging], as_json=as_json)


def _partitions_with_coordinator(admin: Admin, producer_ids: set[int]) -> Mapping[int, set[TopicPartition]]:
    """By producer id, the partitions in which its coordinator will yet end a transaction."""
    if not producer_ids:
        return {}
    found: dict[int, set[TopicPartition]] = {}
    for listings in admin.list_transactions(producer_id_filters=sorted(producer_ids)).values():
        for listing in listings:
            told = _description(admin, listing.transactional_id)
            if told is not None:
                found.setdefault(listing.producer_id, set()).update(told.topic_partitions)
    return found


@dataclasses.dataclass(frozen=True)
class Producer:
    """Whose transaction to abort: where it begins, or who it is."""

    start_offset: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    coordinator_epoch: int | None = None

    def check(self) -> None:
        """Raises UsageError unless it is said in one of the two ways."""
        named = (self.producer_id, self.producer_epoch, self.coordinator_epoch)
        if self.start_offset is not None:
            if any(number is not None for number in named):
                raise UsageError("--start-offset says which transaction: --producer-id and the epochs don't go with it")
        elif any(number is None for number in named):
            raise UsageError(
                "say which transaction: --start-offset, or all of --producer-id, --producer-epoch and --coordinator-epoch"
            )


def abort(connection: ClusterConnection, topic: str, partition: int, producer: Producer) -> None:
    """Write an abort marker to a partition (WriteTxnMarkers). Raises KafkaError, ToolError."""
    producer.check()
    where = TopicPartition(topic, partition)
    with closing(connection.admin()) as admin:
        chosen_partitions(admin, [f"{topic}:{partition}"])
        if producer.start_offset is not None:
            producer = _beginning_at(admin, where, producer.start_offset)
        # One that hangs before its first end has no coordinator's epoch yet; Kafka's tool sends the lowest there is, too.
        epoch = max(0, producer.coordinator_epoch or 0)
        admin.abort_transaction(AbortTransactionSpec(where, producer.producer_id, producer.producer_epoch, epoch))
    print(f"Aborted the transaction of producer {producer.producer_id} in {topic}-{partition}.")


def _beginning_at(admin: Admin, where: TopicPartition, offset: int) -> Producer:
    for found in admin.describe_producers([where])[where].active_producers:
        if found.current_transaction_start_offset == offset:
            return Producer(None, found.producer_id, found.producer_epoch, found.coordinator_epoch)
    raise ToolError(
        f"Could not find any open transactions starting at offset {offset} on partition {where.topic}-{where.partition}"
    )
