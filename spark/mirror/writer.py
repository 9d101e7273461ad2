"""What a task of the mirror does: writes the records of one source partition, each Arrow batch in a transaction.

A task has records of one partition, ascending: Spark makes one for each partition of a micro-batch unless it is told to
split them, which this job does not. The transactional id belongs to the partition, so a task that begins ends the
transaction of a task that died, and fences off one that was only believed dead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..producing import TIMEOUT_S, committed
from .offsets import OffsetMap

if TYPE_CHECKING:
    import pyarrow

COLUMNS = ("topic", "partition", "offset", "unix_millis(timestamp) AS timestamp_ms", "key", "value", "headers")
RESULT = "written LONG"


@dataclass(frozen=True)
class Destination:
    """Where to: the target's brokers, the mirror's group there, and the ids of the source's topics by name."""

    bootstrap_servers: str
    group_id: str
    prefix: str
    topic_ids: dict[str, str]


def write(batches: Iterator[pyarrow.RecordBatch], destination: Destination) -> Iterator[pyarrow.RecordBatch]:
    """Write what is not there yet; one row with the number of records written. Any error of the client is raised."""
    import pyarrow

    written = 0
    target = None
    try:
        for batch in batches:
            if batch.num_rows:
                target = target or TargetPartition(
                    destination, batch["topic"][0].as_py(), batch["partition"][0].as_py()
                )
                written += target.write(batch)
    finally:
        if target is not None:
            target.close()
    yield pyarrow.RecordBatch.from_pydict({"written": [written]})


class TargetPartition:
    """One partition of the target, open for one task."""

    def __init__(self, destination: Destination, source_topic: str, partition: int) -> None:
        import confluent_kafka as client

        self._topic, self._partition = destination.prefix + source_topic, partition
        common = {"bootstrap.servers": destination.bootstrap_servers, "log_level": 0}
        self._producer = client.Producer(
            {
                **common,
                "transactional.id": f"{destination.group_id}-{self._topic}-{partition}",
                # The broker's own limits decide, not the client's.
                "message.max.bytes": 1_000_000_000,
                "queue.buffering.max.messages": 0,
            }
        )
        self._producer.init_transactions(TIMEOUT_S)
        self._group = client.Consumer({**common, "group.id": destination.group_id, "enable.auto.commit": False})
        self._map = self._read_map(destination.topic_ids[source_topic])
        self._ends: list[int] = []

    def _read_map(self, topic_id: str) -> OffsetMap:
        """What is committed: as of now, because no predecessor can commit any more."""
        found = committed(self._group, self._topic, self._partition)
        return OffsetMap.parse(found.metadata) if found.offset >= 0 else OffsetMap(topic_id)

    def write(self, batch: pyarrow.RecordBatch) -> int:
        """Write the batch's records from the first that is not there yet, and where they are, or neither; their number."""
        from confluent_kafka import TopicPartition

        done = bisect_left(batch["offset"].to_pylist(), self._map.next_source)
        batch = batch.slice(done)
        if not batch.num_rows:
            return 0
        self._producer.begin_transaction()
        self._produce(batch)
        first, last = self._ends
        self._map.add(batch["offset"].to_pylist(), first, last)
        place = TopicPartition(self._topic, self._partition, last + 1, self._map.text())
        self._producer.send_offsets_to_transaction([place], self._group.consumer_group_metadata(), TIMEOUT_S)
        self._producer.commit_transaction(TIMEOUT_S)
        return int(batch.num_rows)

    def _produce(self, batch: pyarrow.RecordBatch) -> None:
        """Send them all, and wait until they are written."""
        self._ends = []
        last = batch.num_rows - 1
        columns = (batch[name].to_pylist() for name in ("key", "value", "timestamp_ms", "headers"))
        for index, (key, value, timestamp_ms, headers) in enumerate(zip(*columns, strict=True)):
            record: dict[str, Any] = {
                "key": key,
                "value": value,
                "partition": self._partition,
                "timestamp": timestamp_ms,
            }
            if headers:
                record["headers"] = [(header["key"], header["value"]) for header in headers]
            if index in (0, last):
                record["on_delivery"] = self._note_end
            self._send(record)
        self._producer.flush(TIMEOUT_S)
        if last == 0:
            self._ends *= 2
        if len(self._ends) != 2:
            raise RuntimeError(f"{self._topic}-{self._partition}: the target does not acknowledge records")

    def _send(self, record: dict[str, Any]) -> None:
        while True:
            try:
                self._producer.produce(self._topic, **record)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _note_end(self, error: Any, message: Any) -> None:
        if error is not None:
            raise RuntimeError(f"{self._topic}-{self._partition}: {error.str()}")
        self._ends.append(message.offset())

    def close(self) -> None:
        """Let go. What was not committed is aborted by the next task, or by the brokers after a minute."""
        self._group.close()
