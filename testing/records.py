"""Reads the records of a topic from the broker's logs, without a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import NamedTuple

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..log.transaction_index import AbortedTxn
from ..log.transactional_reads import aborted_between
from ..replication.partition import Partition
from ..wire.records import RecordBatch, iter_batches

_READ_BYTES = 1 << 20
_LOOK_AGAIN_SECONDS = 0.02
_MOST_NAMES = 20

__tracebackhide__ = True  # a failure points at the caller's line


class KafkaRecord(NamedTuple):
    """A record as a read_committed consumer gets it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """In ms since the epoch."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


async def wait_for_records(
    find_partitions: Callable[[], Awaitable[list[Partition]]], topic: str, count: int, timeout: float
) -> list[KafkaRecord]:
    """The committed records of ``topic`` in the order of partitions and offsets, once there are at least ``count``.

    ``find_partitions`` returns the topic's partitions at their leaders. For a topic that does not exist it raises
    ``unknown_topic``; if ``count`` is not 0 the topic is waited for. ``timeout`` in seconds. Raises TimeoutError, KafkaError.
    """
    found: list[KafkaRecord] = []
    unknown: KafkaError | None = None
    with trio.move_on_after(timeout):
        while True:
            partitions: list[Partition] = []
            unknown = None
            try:
                partitions = await find_partitions()
            except KafkaError as error:
                if count == 0 or error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                unknown = error
            found = [record for partition in partitions for record in _read(partition)]
            if unknown is None and len(found) >= count:
                return found
            await _wait_for_more(partitions)
    if unknown is not None:
        raise unknown
    raise TimeoutError(f"{topic} has {counted(len(found), 'committed record')}, not {count}, after {timeout} s")


def unknown_topic(topic: str, known: Iterable[str]) -> KafkaError:
    """The error of asking for a topic that does not exist; it names those that do, except for Kafka's own."""
    names = sorted(name for name in known if not name.startswith("__"))
    more = f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else ""
    others = f"; there are: {', '.join(names[:_MOST_NAMES])}{more}" if names else ", nor any other"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}{others}")


async def _wait_for_more(partitions: list[Partition]) -> None:
    watch = _CommittedRecords()
    for partition in partitions:
        partition.fetches.consumers.add(watch)
    try:
        # With a timeout: the topic may not exist yet, or get more partitions.
        with trio.move_on_after(_LOOK_AGAIN_SECONDS):
            await watch.came.wait()
    finally:
        for partition in partitions:
            partition.fetches.consumers.discard(watch)


class _CommittedRecords:
    """A ``FetchWatch`` for committed records."""

    is_waiting = reads_committed = True
    uncounted = 0

    def __init__(self) -> None:
        self.came = trio.Event()
        """Set when a partition has more of them, or was removed."""

    @property
    def owner(self) -> object:
        return self

    def on_change(self, visible: int) -> bool:
        if visible > 0:
            self.came.set()
        return True

    def on_end(self) -> None:
        self.came.set()


def _read(partition: Partition) -> Iterator[KafkaRecord]:
    log = partition.log
    offset, end = log.log_start_offset, partition.fetchable_end(isolation_level=1)
    aborted = aborted_between(log.segments, offset, end)
    while offset < end:
        found = partition.read(offset, _READ_BYTES, end, at_least_one=True)
        if found is None:
            return
        try:
            data = found.read()
        finally:
            found.release()
        for batch in iter_batches(data):
            if not batch.is_control and not (batch.is_transactional and _is_aborted(batch, aborted)):
                for record in batch.records():
                    if record.offset >= offset:
                        yield KafkaRecord(
                            partition.topic,
                            log.partition,
                            record.offset,
                            record.timestamp,
                            record.key,
                            record.value,
                            record.headers,
                        )
            offset = batch.next_offset


def _is_aborted(batch: RecordBatch, aborted: list[AbortedTxn]) -> bool:
    return any(
        entry.producer_id == batch.producer_id and entry.first_offset <= batch.base_offset <= entry.last_offset
        for entry in aborted
    )
