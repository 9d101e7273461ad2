"""The work of a mirror task: it writes the records of one source partition, each Arrow batch in a transaction.

A task has the records of one partition, in order: Spark makes one task for each partition of a micro-batch unless it is
configured to split them, which this job does not do. The transactional id belongs to the partition, so a new task ends the
transaction of a task that died, and fences one that only seemed dead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..producing import Transactions
from .offsets import MirrorOffsetMap

if TYPE_CHECKING:
    import pyarrow

COLUMNS = (
    *("topic", "partition", "offset", "key", "value", "headers"),
    "unix_millis(timestamp) AS timestamp_ms",
    "partition AS target_partition",
)


@dataclass(frozen=True)
class MirrorDestination:
    """Where to: the target's brokers, the mirror's group there, and the ids of the source's topics by name."""

    bootstrap_servers: str
    group_id: str
    prefix: str
    topic_ids: dict[str, str]


def write(batches: Iterator[pyarrow.RecordBatch], destination: MirrorDestination) -> Iterator[pyarrow.RecordBatch]:
    """Write the records that are not there yet; yields one row with their number. Errors of the client are raised."""
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
    """One partition of the target, during one task."""

    def __init__(self, destination: MirrorDestination, source_topic: str, partition: int) -> None:
        topic = destination.prefix + source_topic
        self._transactions = Transactions(
            destination.bootstrap_servers,
            topic,
            f"{destination.group_id}-{topic}-{partition}",
            group_id=destination.group_id,
            place=(topic, partition),
        )
        found = self._transactions.committed()
        topic_id = destination.topic_ids[source_topic]
        self._map = MirrorOffsetMap.parse(found.metadata) if found.offset >= 0 else MirrorOffsetMap(topic_id)

    def write(self, batch: pyarrow.RecordBatch) -> int:
        """Write the records of the batch that are not there yet and the map of their offsets, atomically. Returns how many."""
        done = bisect_left(batch["offset"].to_pylist(), self._map.next_source)
        batch = batch.slice(done)
        if not batch.num_rows:
            return 0
        offsets = self._transactions.send(batch)
        self._map.add(batch["offset"].to_pylist(), offsets[0], offsets[-1])
        self._transactions.commit(offsets[-1] + 1, self._map.text())
        return int(batch.num_rows)

    def close(self) -> None:
        """As ``Transactions.close``."""
        self._transactions.close()
