"""Writes records with their timestamps in Spark's tasks: Spark's own Kafka sink has no column for timestamps.

The client is confluent-kafka, which executors need, as they need this package. A record without a given partition goes
where the Java client would send it: by murmur2 of the key, or to any partition without a key.

A replay writes each source partition in transactions, and each of them also commits, to a group of that partition, the
source offset after the last record. A task first fences its predecessor of the same transactional id and reads that offset;
it omits records below it: whatever is repeated, no record is written twice.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .bootstrap_servers import confluent

if TYPE_CHECKING:
    import confluent_kafka
    import pyarrow

    from .query import Partition

PLAIN_COLUMNS = ("key", "value", "headers", "timestamp_ms", "target_partition")
COLUMNS = ("topic", "partition", "offset", *PLAIN_COLUMNS)
RESULT = "written LONG"
TIMEOUT_S = 60.0
_RETRY_S = 0.1


@dataclass(frozen=True)
class TopicDestination:
    """The topic to write to; for a replay also the first part of its groups' names, and records per second of each partition."""

    bootstrap_servers: str
    topic: str
    group_id: str = ""
    rate: float | None = None


class TopicProducer:
    """A producer to one topic."""

    def __init__(self, bootstrap_servers: str, topic: str, **settings: Any) -> None:
        import confluent_kafka

        self._topic = topic
        self._failures: list[str] = []
        self._offsets: list[int] = []
        self.producer = confluent_kafka.Producer(
            {
                **confluent(bootstrap_servers),
                "log_level": 0,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                # The broker's limits apply, not the client's.
                "message.max.bytes": 1_000_000_000,
                **settings,
            }
        )

    def send(self, batch: pyarrow.RecordBatch) -> list[int]:
        """Write rows of ``PLAIN_COLUMNS``, and wait until they are acknowledged.

        Returns their offsets, ascending in each partition. Raises RuntimeError with the brokers' error.
        """
        self._offsets = []
        for row in zip(*(batch[name].to_pylist() for name in PLAIN_COLUMNS), strict=True):
            self._send(*row)
        self.producer.flush(TIMEOUT_S)
        if self._failures or len(self.producer):
            why = self._failures[0] if self._failures else "records are not acknowledged"
            raise RuntimeError(f"{self._topic}: {why}")
        return self._offsets

    def _send(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: list[dict[str, Any]] | None,
        timestamp_ms: int | None,
        partition: int | None,
    ) -> None:
        record: dict[str, Any] = {"key": key, "value": value, "on_delivery": self._note}
        if headers:
            record["headers"] = [(header["key"], header["value"]) for header in headers]
        if timestamp_ms is not None:
            record["timestamp"] = timestamp_ms
        if partition is not None:
            record["partition"] = partition
        while True:
            try:
                self.producer.produce(self._topic, **record)
                return
            except BufferError:
                self.producer.poll(0.1)

    def _note(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failures.append(error.str())
        else:
            self._offsets.append(message.offset())


class Transactions:
    """Writes records to one topic in transactions, each of which also commits an offset of ``place``, a partition, to a group.

    Once it is made, the offset cannot change any more: the producer that had the transactional id before is fenced, and its
    open transaction is aborted. Errors are confluent-kafka's KafkaException.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, transactional_id: str, group_id: str, place: Partition
    ) -> None:
        import confluent_kafka

        self._place = place
        self._sender = TopicProducer(bootstrap_servers, topic, **{"transactional.id": transactional_id})
        # Before ``committed`` is asked: afterwards, a task that this one replaces cannot commit any more.
        self._sender.producer.init_transactions(TIMEOUT_S)
        self._group = confluent_kafka.Consumer(
            {
                **confluent(bootstrap_servers),
                "log_level": 0,
                "group.id": group_id,
                "enable.auto.commit": False,
            }
        )

    def committed(self) -> confluent_kafka.TopicPartition:
        """The group's offset, below zero when there is none, and its metadata.

        The request is repeated while the group's coordinator is loading.
        """
        import confluent_kafka

        error = confluent_kafka.KafkaError
        again = (error.NOT_COORDINATOR, error.COORDINATOR_NOT_AVAILABLE, error.COORDINATOR_LOAD_IN_PROGRESS)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                (found,) = self._group.committed([confluent_kafka.TopicPartition(*self._place)], TIMEOUT_S)
                if found.error is not None:
                    raise confluent_kafka.KafkaException(found.error)
                return found
            except confluent_kafka.KafkaException as failure:
                if failure.args[0].code() not in again or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)

    def send(self, batch: pyarrow.RecordBatch) -> list[int]:
        """Begin a transaction with rows of ``PLAIN_COLUMNS``; as ``TopicProducer.send``."""
        self._sender.producer.begin_transaction()
        return self._sender.send(batch)

    def commit(self, offset: int, metadata: str = "") -> None:
        """Commit the transaction, with the group's next offset."""
        from confluent_kafka import TopicPartition

        producer = self._sender.producer
        place = TopicPartition(*self._place, offset, metadata)
        producer.send_offsets_to_transaction([place], self._group.consumer_group_metadata(), TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)

    def close(self) -> None:
        """Close the producer. An open transaction is aborted by the next task, or by the brokers after a minute."""
        self._group.close()


def write(batches: Iterator[pyarrow.RecordBatch], destination: TopicDestination) -> Iterator[pyarrow.RecordBatch]:
    """For ``mapInArrow``: write every row. A repeated task writes its records again."""
    import pyarrow

    sender, written = TopicProducer(destination.bootstrap_servers, destination.topic), 0
    for batch in batches:
        sender.send(batch)
        written += batch.num_rows
    yield pyarrow.RecordBatch.from_pydict({"written": [written]})


def write_once(batches: Iterator[pyarrow.RecordBatch], destination: TopicDestination) -> Iterator[pyarrow.RecordBatch]:
    """For ``mapInArrow``: write rows of whole source partitions, by offset, that have not been written before."""
    import pyarrow

    written = 0
    current: Partition | None = None
    partition: _SourcePartition | None = None
    try:
        for batch in batches:
            for where, part in _by_partition(batch):
                if partition is None or where != current:
                    if partition is not None:
                        partition.close()
                    current, partition = where, _SourcePartition(destination, *where)
                written += partition.write(part)
    finally:
        if partition is not None:
            partition.close()
    yield pyarrow.RecordBatch.from_pydict({"written": [written]})


def _by_partition(batch: pyarrow.RecordBatch) -> Iterator[tuple[Partition, pyarrow.RecordBatch]]:
    start = 0
    places = zip(batch["topic"].to_pylist(), batch["partition"].to_pylist(), strict=True)
    for where, rows in groupby(places):
        count = sum(1 for _ in rows)
        yield where, batch.slice(start, count)
        start += count


class _SourcePartition:
    """One source partition, written by one task."""

    def __init__(self, destination: TopicDestination, topic: str, partition: int) -> None:
        self._rate = destination.rate
        name = f"{destination.group_id}-{topic}-{partition}"
        self._transactions = Transactions(
            destination.bootstrap_servers, destination.topic, name, group_id=name, place=(destination.topic, 0)
        )
        self._next_offset = max(int(self._transactions.committed().offset), 0)

    def write(self, batch: pyarrow.RecordBatch) -> int:
        """Write records from the committed offset on, in portions of a second if there is a rate. Returns their number."""
        # A repeated task gets the same records: those before the committed offset are written already.
        batch = batch.slice(bisect_left(batch["offset"].to_pylist(), self._next_offset))
        step = batch.num_rows if self._rate is None else max(1, int(self._rate))
        for start in range(0, batch.num_rows, step or 1):
            began = time.monotonic()
            part = batch.slice(start, step)
            self._write(part)
            if self._rate is not None:
                time.sleep(max(0.0, part.num_rows / self._rate - (time.monotonic() - began)))
        return int(batch.num_rows)

    def _write(self, batch: pyarrow.RecordBatch) -> None:
        self._transactions.send(batch)
        self._next_offset = batch["offset"][batch.num_rows - 1].as_py() + 1
        self._transactions.commit(self._next_offset)

    def close(self) -> None:
        """As ``Transactions.close``."""
        self._transactions.close()
