"""Fetch (key 1): read record batches, waiting for some when there are none.

Behaviour: partitions are read in the order of the request, or of the session; at most ``max_bytes`` in all and
``partition_max_bytes`` each, but the first batch found is returned whole even when it is larger (KIP-74). An offset
inside a batch returns the whole batch. With less than ``min_bytes`` the answer waits for ``max_wait_ms``, unless a
partition has an error, diverges or filled its own limit; then everything is read once more. Unknown partitions do not
end the wait of the others, or consumers of a deleted topic would ask without a pause. A read_committed consumer
(isolation level 1) reads up to the last stable offset, and gets the aborted transactions that overlap the records. One
partition's error never fails the others. Records leave as slices of the log's files. A broker's fetch is
NOT_LEADER_OR_FOLLOWER: nobody replicates from this broker.

Other than Kafka: an answer ends with a whole batch, and bytes that are left go to the next partition (Kafka sends a part
of a batch, of which clients can't use anything). A negative limit counts as 0 and an isolation level that does not exist
is INVALID_REQUEST (Kafka: UNKNOWN_SERVER_ERROR). A topic that was deleted is UNKNOWN_TOPIC_ID by its id, in a session
too, where Kafka goes by the name it knew.

Version notes: 4 is the first without old formats and adds the isolation level; 5 the log start offset; 7 fetch
sessions; 9 the leader epoch check; 10 allows zstd (older versions get UNSUPPORTED_COMPRESSION_TYPE only from a broker
that converts; Ottla returns what is stored); 11 a preferred replica; 12 is flexible and detects diverging epochs; 13
names topics by id; 15 moves the replica id into a tagged field; 16 adds node endpoints; 17-18 are of use to KRaft.
"""

from __future__ import annotations

import trio

from ..base.errors import ErrorCode, KafkaError
from ..log.partition_log import PartitionLog
from ..log.segment import SegmentSlice
from ..log.transactional_reads import aborted_transactions
from ..replication.fetch_session import FetchedPartition, FetchSession, requested_partitions
from ..replication.partition import Partition
from ..replication.settings import ReplicationSettings
from ..replication.waiters import FetchWaiter
from ..wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from .call import Call

_FINAL_EPOCH = -1
_INITIAL_EPOCH = 0
_FIRST_TOPIC_ID_VERSION = 13
_EMPTY = b""
_UNKNOWN_PARTITION = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


async def handle(call: Call, request: FetchRequest) -> FetchResponse:
    if request.isolation_level not in (0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"isolation level {request.isolation_level}")
    by_id = call.version >= _FIRST_TOPIC_ID_VERSION
    sessions = call.broker.fetch_sessions
    session: FetchSession | None = None
    if request.session_epoch in (_FINAL_EPOCH, _INITIAL_EPOCH):
        sessions.close(request.session_id)
        asked = requested_partitions(request, by_id)
        if request.session_epoch == _INITIAL_EPOCH and call.version >= 7:
            session = sessions.create(by_id, asked)
        incremental = False
        fetched = list(asked.values())
    else:
        session = sessions.resume(request, by_id)
        if session is None:
            return FetchResponse()
        incremental = True
        fetched = list(session.partitions.values())
    reads = Reads(call, request)
    reads.read_all(fetched)
    if not reads.enough and request.max_wait_ms > 0 and any(state.partition is not None for state in fetched):
        await _wait_for_more(call, request, reads, fetched)
    return _response(reads, fetched, session, incremental, by_id)


async def _wait_for_more(call: Call, request: FetchRequest, reads: Reads, fetched: list[FetchedPartition]) -> None:
    """Wait for the bytes that are missing, then read everything again."""
    waiter = FetchWaiter(reads.min_bytes - reads.total, read_committed=request.isolation_level == 1)
    reads.release()
    registered = [state.partition for state in fetched if state.partition is not None]
    for partition in registered:
        partition.fetch_waiters.add(waiter)
    try:
        await call.flush()
        with trio.move_on_after(request.max_wait_ms / 1000):
            await waiter.event.wait()
    finally:
        for partition in registered:
            partition.fetch_waiters.discard(waiter)
    reads.read_all(fetched)


class Reads:
    """The results of reading the partitions of one fetch; ``min_bytes`` is never more than its limit."""

    __slots__ = ("_call", "_is_replica", "_isolation_level", "_limit", "enough", "min_bytes", "results", "total")

    def __init__(self, call: Call, request: FetchRequest) -> None:
        self._call = call
        replica_state = request.replica_state
        self._is_replica = (request.replica_id if replica_state is None else replica_state.replica_id) >= 0
        self._isolation_level = request.isolation_level
        limit = call.broker.config.settings(ReplicationSettings).fetch_max_bytes
        self._limit = min(request.max_bytes, limit)
        self.min_bytes = min(request.min_bytes, self._limit)
        self.results: list[PartitionData] = []
        self.total = 0
        self.enough = False

    def release(self) -> None:
        """Let go of the slices that were read."""
        for result in self.results:
            if result.records:
                result.records.release()  # type: ignore[union-attr]
        self.results = []
        self.total = 0

    def read_all(self, fetched: list[FetchedPartition]) -> None:
        """Read each partition within the limits; ``enough`` when the answer needs no waiting."""
        self.enough = False
        remaining = self._limit
        for state in fetched:
            try:
                result, size = self._read(state, remaining)
            except KafkaError as error:
                state.partition = None
                self._call.fail(error.message)
                result = _error(state.number, error)
                size = 0
                # Of a partition that is not here nothing can be said that would make an answer urgent.
                self.enough |= error.code not in _UNKNOWN_PARTITION
            self.results.append(result)
            self.total += size
            remaining -= size
        if self.total >= self.min_bytes:
            self.enough = True

    def _partition(self, state: FetchedPartition) -> Partition:
        """The partition a state stands for, looked up anew when it is not the one that was found before."""
        broker = self._call.broker
        if self._is_replica:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no broker replicates from this one")
        topic = state.topic
        if self._call.version >= _FIRST_TOPIC_ID_VERSION:
            topic = broker.metadata.topic_name(state.topic_id) or ""
            if not topic:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        partition = broker.replicas.partition(topic, state.number)
        partition.check_leader(state.current_leader_epoch)
        state.partition = partition
        return partition

    def _read(self, state: FetchedPartition, remaining: int) -> tuple[PartitionData, int]:
        partition = self._partition(state)
        log = partition.log
        if state.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(state.last_fetched_epoch)
            if end_offset < 0:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"no epoch at or below {state.last_fetched_epoch}")
            if epoch < state.last_fetched_epoch or end_offset < state.fetch_offset:
                diverging = EpochEndOffset(epoch=epoch, end_offset=end_offset)
                self.enough = True
                return self._result(partition, state, None, diverging), 0
        up_to = partition.fetchable_end(self._isolation_level)
        records: SegmentSlice | None = None
        size = 0
        max_bytes = min(state.max_bytes, remaining)
        if max_bytes > 0 or self.total == 0:
            records = partition.read(state.fetch_offset, max(max_bytes, 0), up_to, at_least_one=self.total == 0)
            if records is not None:
                size = records.nbytes
                if size >= state.max_bytes:
                    self.enough = True
        elif not log.log_start_offset <= state.fetch_offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {state.fetch_offset} is not in the log")
        return self._result(partition, state, records, None), size

    def _result(
        self,
        partition: Partition,
        state: FetchedPartition,
        records: SegmentSlice | None,
        diverging: EpochEndOffset | None,
    ) -> PartitionData:
        log = partition.log
        result = PartitionData(
            partition_index=state.number,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=_EMPTY if records is None else records,
        )
        if self._isolation_level and diverging is None:
            result.aborted_transactions = _aborted(log, state.fetch_offset, records)
        if diverging is not None:
            result.diverging_epoch = diverging
        return result


def _aborted(log: PartitionLog, offset: int, records: SegmentSlice | None) -> list[AbortedTransaction]:
    """The aborted transactions a read_committed consumer is to leave out of ``records``."""
    if records is None:
        return []
    found = aborted_transactions(log, offset, records)
    return [AbortedTransaction(producer_id=entry.producer_id, first_offset=entry.first_offset) for entry in found]


def _error(number: int, error: KafkaError) -> PartitionData:
    """What is answered for a partition; without the list of transactions when there is none to make a list of."""
    return PartitionData(
        partition_index=number,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=[] if error.code in _UNKNOWN_PARTITION else None,
        records=_EMPTY,
    )


def _response(
    reads: Reads, fetched: list[FetchedPartition], session: FetchSession | None, incremental: bool, by_id: bool
) -> FetchResponse:
    """Group the results by topic; of an incremental fetch only what is news."""
    topics: list[FetchableTopicResponse] = []
    current: FetchableTopicResponse | None = None
    served = []
    for state, result in zip(fetched, reads.results, strict=True):
        if result.records:
            _count(state, result.records)
        if session is not None:
            has_data = len(result.records) > 0 if isinstance(result.records, bytes) else result.records is not None
            if incremental and not has_data and not _is_news(state, result):
                continue
            state.sent_high_watermark = result.high_watermark
            state.sent_last_stable_offset = result.last_stable_offset
            state.sent_log_start_offset = result.log_start_offset
            state.sent_error = result.error_code
            if has_data:
                served.append(state)
        if current is None or (current.topic_id != state.topic_id if by_id else current.topic != state.topic):
            current = FetchableTopicResponse(topic=state.topic, topic_id=state.topic_id)
            topics.append(current)
        current.partitions.append(result)
    if session is None:
        return FetchResponse(responses=topics)
    if incremental:
        session.move_to_end(served)
    return FetchResponse(session_id=session.session_id, responses=topics)


def _count(state: FetchedPartition, records: object) -> None:
    assert state.partition is not None
    assert isinstance(records, SegmentSlice)
    state.partition.bytes_out += records.nbytes


def _is_news(state: FetchedPartition, result: PartitionData) -> bool:
    return (
        result.error_code != 0
        or state.sent_error != 0
        or result.high_watermark != state.sent_high_watermark
        or result.last_stable_offset != state.sent_last_stable_offset
        or result.log_start_offset != state.sent_log_start_offset
        or result.diverging_epoch is not None
    )


def error_response(request: FetchRequest, error: KafkaError) -> FetchResponse:
    if error.code in SESSION_ERRORS:
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        error_code=error.code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_error(asked.partition, error) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )
