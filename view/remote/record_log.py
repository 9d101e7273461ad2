"""A partition of a remote cluster as a ``RecordLog``, read by Fetch without a session and without a group.

Fetch tells of aborted transactions only a reader of committed records, and only where each begins. So what is before the last
stable offset is read as such a reader does, and where an aborted transaction ends is found as such a reader finds it: at its
producer's next marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import trio

from ...base.errors import ErrorCode, KafkaError, known_code
from ...base.network import Part
from ...base.partitions import TopicPartition
from ...base.seams import Workers
from ...log.transaction_index import AbortedTxn
from ...wire.messages.fetch import AbortedTransaction as BegunTransaction
from ...wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ...wire.records import RecordBatch, iter_complete_batches
from ..record_log import Batches
from .cluster_client import READING, ClusterClient, of_each
from .topic_requests import EARLIEST, LATEST, ClusterState, Offset, cluster_state, offsets

NEWEST_WITH_NAMES = 12
"""The version of Fetch after which topics have ids in place of names."""
_MAX_WAIT_MS = 100
_ATTEMPTS = 5
_PAUSE = 0.2
_MOVED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)


class FetchedLog:
    """One partition, by its leader; where the leader has moved, it is looked for."""

    def __init__(self, client: ClusterClient, workers: Workers, key: TopicPartition, leader: int) -> None:
        self.start = self.end = self.last_stable = 0
        self._client = client
        self._workers = workers
        self._topic, self.number = key
        self._leader: int | None = leader

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self._topic, self.number)

    def take(self, start: int, end: int, last_stable: int) -> None:
        """Know where the log starts and ends."""
        self.start, self.end, self.last_stable = start, end, last_stable

    async def refresh(self) -> None:
        leader = await self._find_leader()
        await _see_ends(self._client, leader, [self])

    async def read(self, start: int, end: int, max_bytes: int) -> Batches | None:
        # Only a read_committed response lists aborted transactions; from the last stable offset on, it has no records.
        found = await self._fetch(start, max_bytes, is_committed=start < self.last_stable)
        if not found.records and start < self.last_stable:  # which may have been before its answer
            found = await self._fetch(start, max_bytes, is_committed=False)
        if not found.records:
            return None
        batches = await self._workers.run(fetched_batches, found.records)
        return Batches(batches, aborted_in(batches, found.aborted_transactions or ()))

    async def offset_at(self, time_ms: int) -> int | None:
        leader = await self._find_leader()
        found = await _asked(self._client, leader, [self.key], time_ms)
        return found[self.key].offset if self.key in found and found[self.key].offset >= 0 else None

    async def _fetch(self, start: int, max_bytes: int, *, is_committed: bool) -> PartitionData:
        """Raises KafkaError, OSError."""
        partition = FetchPartition(partition=self.number, fetch_offset=start, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=int(is_committed),
            topics=[FetchTopic(topic=self._topic, partitions=[partition])],
        )
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                leader = await self._find_leader()
                response: FetchResponse = await self._client.ask(leader, request, NEWEST_WITH_NAMES, READING)
            except OSError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                code = response.error_code or response.responses[0].partitions[0].error_code
                if not code:
                    found = response.responses[0].partitions[0]
                    self.take(max(found.log_start_offset, self.start), found.high_watermark, found.last_stable_offset)
                    return found
                if known_code(code) not in _MOVED or attempt == _ATTEMPTS:
                    raise KafkaError(known_code(code))
            self._leader = None
            await trio.sleep(_PAUSE)
        raise AssertionError("the last attempt returns or raises")

    async def _find_leader(self) -> int:
        """Raises KafkaError (LEADER_NOT_AVAILABLE), OSError."""
        if self._leader is None:
            state = await cluster_state(self._client, [self._topic])
            leaders = [*state.leaders([self.key])]
            if not leaders:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{self._topic}-{self.number} has no leader")
            self._leader = leaders[0]
        return self._leader


async def fetched_logs(
    client: ClusterClient, workers: Workers, cluster: ClusterState, topic: str, numbers: Iterable[int]
) -> list[FetchedLog]:
    """The partitions whose leaders answer, by number, with where they end now.

    Raises KafkaError, OSError where none of the leaders answers.
    """
    by_leader = {
        leader: [FetchedLog(client, workers, key, leader) for key in keys]
        for leader, keys in cluster.leaders([TopicPartition(topic, number) for number in numbers]).items()
    }
    failures: dict[int, Exception] = {}
    await of_each(by_leader, lambda leader: _see_ends(client, leader, by_leader[leader]), failures.__setitem__)
    if failures and len(failures) == len(by_leader):
        raise next(iter(failures.values()))
    found = (log for leader, logs in by_leader.items() if leader not in failures for log in logs)
    return sorted(found, key=lambda log: log.number)


async def _see_ends(client: ClusterClient, leader: int, logs: Sequence[FetchedLog]) -> None:
    """Three requests to one leader. Raises KafkaError, OSError."""
    keys = [log.key for log in logs]
    starts = await _asked(client, leader, keys, EARLIEST)
    ends = await _asked(client, leader, keys, LATEST)
    stable = await _asked(client, leader, keys, LATEST, is_committed=True)
    for log in logs:
        if log.key in starts and log.key in ends:
            end = ends[log.key].offset
            log.take(starts[log.key].offset, end, min(stable[log.key].offset, end) if log.key in stable else end)


async def _asked(
    client: ClusterClient, leader: int, keys: Sequence[TopicPartition], timestamp: int, *, is_committed: bool = False
) -> dict[TopicPartition, Offset]:
    """Raises KafkaError, OSError."""

    failures: dict[int, Exception] = {}
    found = await offsets(client, {leader: keys}, timestamp, failures.__setitem__, is_committed=is_committed)
    if failures:
        raise failures[leader]
    return found


def fetched_batches(data: Part) -> list[RecordBatch]:
    """The whole batches of a response. Raises KafkaError."""
    assert isinstance(data, bytes | bytearray | memoryview)
    return list(iter_complete_batches(data))


def aborted_in(batches: Sequence[RecordBatch], begun: Iterable[BegunTransaction]) -> list[AbortedTxn]:
    """The aborted transactions with their ends, as far as these batches go.

    ``begun`` are those that reach into them. A producer has one transaction at a time, and after the first offset of an
    aborted one its next marker is that one's.
    """
    if not begun:
        return []
    last = batches[-1].last_offset
    markers: dict[int, list[int]] = {}
    for batch in batches:
        if batch.is_control:
            markers.setdefault(batch.producer_id, []).append(batch.base_offset)
    found = []
    for each in begun:
        ends = [offset for offset in markers.get(each.producer_id, ()) if offset > each.first_offset]
        end = ends[0] if ends else last
        found.append(AbortedTxn(each.producer_id, each.first_offset, end, last + 1))
    return found
