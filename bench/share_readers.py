"""``python -m bench.share_readers HOST:PORT COUNT``: share consumers that do as little as they can, for ``share_groups``.

Each has a connection, and one request under way: a ShareFetch that accepts what the one before it has brought. Records are
counted and not looked at. The commands are those of ``ShareReaders.java``, the limits those of Java's consumers. Consumers fetch
what the assignor would give them; one member joins, so that the states are begun.
"""

from __future__ import annotations

import itertools
import secrets
import sys
import threading
import time
from collections.abc import Sequence

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.share_groups.wire_share import ShareGroup
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import AcknowledgementBatch, FetchPartition, FetchTopic, ShareFetchRequest

_VERSION = 2
_FIND_COORDINATOR = 4
_MOST_RECORDS = 500
_MOST_BYTES = 50 << 20
_WAIT_MS = 500
_ACCEPT = 1
_LAST = -1


class Reader:
    """One consumer. ``read`` in a thread of its own."""

    def __init__(self, bootstrap: str, group_id: str, topic_id: bytes, partitions: Sequence[int]) -> None:
        self._connection = Connection(bootstrap)
        self._group_id, self._topic_id, self._partitions = group_id, topic_id, partitions
        self._member_id = secrets.token_urlsafe(16)

    def read(self, count: _Count) -> None:
        """Read until all have read enough. RuntimeError where the broker refuses something."""
        acquired: dict[int, list[tuple[int, int]]] = {}
        for epoch in itertools.count():
            added = self._partitions if epoch == 0 else acquired
            response = self._connection.call(self._request(epoch, added, acquired), _VERSION)
            _check(response.error_code)
            acquired = {}
            for partition in (each for topic in response.responses for each in topic.partitions):
                _check(partition.error_code, partition.acknowledge_error_code)
                if partition.acquired_records:
                    acquired[partition.partition_index] = [
                        (each.first_offset, each.last_offset) for each in partition.acquired_records
                    ]
            count.add(sum(last - first + 1 for ranges in acquired.values() for first, last in ranges))
            if count.is_reached and not acquired:
                break
        request = ShareAcknowledgeRequest(group_id=self._group_id, member_id=self._member_id, share_session_epoch=_LAST)
        _check(self._connection.call(request, _VERSION).error_code)
        self._connection.close()

    def _request(
        self,
        epoch: int,
        partitions: Sequence[int] | dict[int, list[tuple[int, int]]],
        accepted: dict[int, list[tuple[int, int]]],
    ) -> ShareFetchRequest:
        named = [
            FetchPartition(
                partition_index=number,
                acknowledgement_batches=[
                    AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[_ACCEPT])
                    for first, last in accepted.get(number, ())
                ],
            )
            for number in partitions
        ]
        return ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=epoch,
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=_MOST_BYTES,
            max_records=_MOST_RECORDS,
            batch_size=_MOST_RECORDS,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=named)] if named else [],
        )


class _Count:
    """How many records all have read together."""

    def __init__(self, wanted: int) -> None:
        self.ended_at = 0.0
        self.total = 0
        self._wanted = wanted
        self._lock = threading.Lock()

    @property
    def is_reached(self) -> bool:
        return self.total >= self._wanted

    def add(self, records: int) -> None:
        with self._lock:
            self.total += records
            if self.is_reached and not self.ended_at:
                self.ended_at = time.perf_counter()


def _check(*error_codes: int) -> None:
    for code in error_codes:
        if code != ErrorCode.NONE:
            raise RuntimeError(f"the broker answers {ErrorCode(code).name}")


def joined(bootstrap: str, count: int, group_id: str, topic: str) -> list[Reader]:
    """So many consumers of a group, whose states are begun."""
    connection = Connection(bootstrap)
    connection.call(
        FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), _FIND_COORDINATOR
    )  # makes its topic
    group = ShareGroup(connection, group_id)
    group.initialize(topic)
    partitions = range(group.partition_count(topic))
    topic_id = group.names.id_of(topic)
    connection.close()
    each = [partitions[number::count] or [number % len(partitions)] for number in range(count)]
    return [Reader(bootstrap, group_id, topic_id, list(numbers)) for numbers in each]


def read(readers: Sequence[Reader], wanted: int) -> str:
    """Seconds, CPU seconds, and how many records they have read when they have read enough."""
    count, cpu, began = _Count(wanted), time.process_time(), time.perf_counter()
    threads = [threading.Thread(target=reader.read, args=(count,)) for reader in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{count.ended_at - began} {time.process_time() - cpu} {count.total}"


def main() -> None:
    bootstrap, count = sys.argv[1], int(sys.argv[2])
    readers: list[Reader] = []
    for line in sys.stdin:
        match line.split():
            case "join", group_id, topic:
                readers = joined(bootstrap, count, group_id, topic)
                print("ready", flush=True)
            case "read", wanted:
                print(read(readers, int(wanted)), flush=True)


if __name__ == "__main__":
    main()
