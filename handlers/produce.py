"""Produce (key 0): append record batches.

Behaviour: each partition's records must be exactly one batch of format v2; it is validated and appended in one piece, and
one partition's error does not touch the others. Where ``flush.messages`` is reached the response waits for the flush. acks=1
answers after the append, acks=-1 once the high watermark has passed the records or the timeout is over, and then with
NOT_ENOUGH_REPLICAS_AFTER_APPEND if by then fewer than ``min.insync.replicas`` are in sync; acks=0 gets no answer at all:
there, an error closes the connection, as in Kafka. A repeated batch of an idempotent producer is answered with the offset
it was given the first time. A batch of a transaction needs the request's transactional id, which has no meaning without such a
batch, as in Kafka; where the transaction begins in a partition, its coordinator is asked (``transaction_partitions``). Only
clients with the id ``__admin_client`` can write to the coordinators' topics.

Differences from Kafka: errors have a text wherever there is something to say; null records are refused (Kafka never answers),
and so are records after the first batch when they are cut short (Kafka drops them and answers no error); a partition
that is named twice is appended to twice (Kafka forgets the first one); a record whose fields contradict each other is taken
(``log.validation`` says when, and which setting refuses it); a repeated batch of a CreateTime topic has no
append time (Kafka gives the time of its last record, which is not that of the others); requests of a connection that wait for
replicas wait together, where Kafka appends each when the one before it is answered; a header's largest timestamp is
used where it can be true (Kafka always uses the records'; ``log.validation`` says when that is done here); a leader that was
replaced without having learned of it finds no sequence number out of order (``replaced_leader``).

Version notes: 0-2 (old record formats) are advertised but refused; 7 is the first that may carry zstd; 8 adds the error
text and the index of the record at fault; 9 is flexible; 10 names the leader and its address when this broker does not lead
(KIP-951); 11 knows TRANSACTION_ABORTABLE; 12 is transactions V2: the leader adds the partition to the transaction (KIP-890); 13
names topics by id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..log.batch_preparation import LargeBatchError
from ..log.partition_log import AppendResult
from ..log.validation import RecordsRefusedError
from ..metadata.rules.topic_names import INTERNAL_TOPICS
from ..replication.leader import LeaderRole
from ..replication.partition import Partition
from ..security.acl import Operation
from ..wire.batch_layout import CODEC_MASK, TRANSACTIONAL_BIT, low_attributes
from ..wire.compression import ZSTD
from ..wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ..wire.records import RecordBatch
from .activity import MOST_PARTITIONS
from .call import Call, CloseConnection, PendingResponse
from .leader_hints import NotLeaderPartition, add_current_leaders
from .replaced_leader import refuse_where_replaced
from .rights import TOPIC, TRANSACTIONAL_ID, check, may, refusal
from .transaction_partitions import Entry, as_seen_by_producers, verify_partitions

_TURN_SECONDS = 0.003
"""After so long requests of other connections have a turn: a request may name thousands of partitions, and a partition's first
batch makes files. Of the 5 ms that a step of the loop may take the rest is for decoding and encoding.
"""
_ADMIN_CLIENT_ID = "__admin_client"
_FIRST_HINT_VERSION = 10
_FIRST_ABORTABLE_VERSION = 11
_FIRST_V2_VERSION = 12
_FIRST_ZSTD_VERSION = 7
_FIRST_TOPIC_ID_VERSION = 13
# Errors at which Kafka does not say where the log starts; at the others producers use it to tell lost state from old.
_WITHOUT_LOG_START = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
# Kafka's ReplicaManager.appendToLocalLog counts other errors as failed produces.
_EXPECTED = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)

Waiting = list[tuple[Partition, LeaderRole | None, AppendResult, PartitionProduceResponse]]
"""Each with the role in which the records were appended."""
Refusals = dict[tuple[str, int], KafkaError]
"""Why a batch of a transaction must not be appended, by topic and partition."""


async def handle(call: Call, request: ProduceRequest) -> ProduceResponse | PendingProduce | None:
    now_ms = call.broker.clock.now_ms()
    waiting: Waiting = []
    topics = []
    failed: PartitionProduceResponse | None = None
    not_in_transaction: Refusals = {}
    forbidden: Collection[str] = ()
    if call.version >= _FIRST_TOPIC_ID_VERSION:
        _name_topics(call, request)
    if call.broker.authorizer is not None:
        forbidden = _forbidden_topics(call, request)
    if request.transactional_id is not None:
        not_in_transaction = await _enter_transaction(call, request, request.transactional_id, forbidden)
    count, turn_began, elapsed = 0, 0.0, call.broker.clock.elapsed
    for topic_data in request.topic_data:
        name = topic_data.name
        answers = []
        for data in topic_data.partition_data:
            if count:
                now = elapsed()
                if count == 1:
                    turn_began = now
                elif now - turn_began >= _TURN_SECONDS:
                    await trio.lowlevel.checkpoint()
                    turn_began = elapsed()
            count += 1
            if forbidden and name in forbidden:
                answer = _refused(data.index, refusal(TOPIC), -1)
            elif not_in_transaction and (error := not_in_transaction.get((name, data.index))) is not None:
                answer = _refused(data.index, error, -1)
            else:
                try:
                    answer = _append(call, name, data, request, now_ms, waiting)
                except LargeBatchError as large:
                    answer = await _append_large(call, name, data, request, now_ms, waiting, large)
            if answer.error_code:
                failed = answer
                call.fail()
            answers.append(answer)
        if answers:
            topics.append(
                TopicProduceResponse(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=answers)
            )
    if request.acks == 0:
        if failed is not None:
            raise CloseConnection(
                f"a produce with acks=0 failed: {ErrorCode(failed.error_code).name} {failed.error_message}"
            )
        return None
    # With a quota the request waits here: dispatch charges a response when the handler returns it, and a pending one has none.
    if waiting and call.may_suspend and call.cost is None:
        return PendingProduce(call, request, topics, waiting)
    if waiting:
        await call.flush()
        await _wait(call, waiting, request, trio.current_time())
    response = ProduceResponse(responses=topics)
    if call.failed:
        await _add_leader_hints(call, response)
    return response


class PendingProduce(PendingResponse):
    """The response to a Produce whose records are not committed, or not flushed, yet."""

    __slots__ = ("_appended_at", "_call", "_has_failed", "_request", "_topics", "_waiting")

    def __init__(
        self, call: Call, request: ProduceRequest, topics: list[TopicProduceResponse], waiting: Waiting
    ) -> None:
        self._call = call
        self._request = request
        self._topics = topics
        self._waiting = waiting
        self._has_failed = call.failed  # then the response needs hints of the leader, and finding those may wait
        self._appended_at = trio.current_time()

    @property
    def is_ready(self) -> bool:
        return all(
            not result.flush_due and partition.has_committed(result.last_offset + 1, role)
            for partition, role, result, _ in self._waiting
        )

    def finish_now(self) -> ProduceResponse | None:
        return None if self._has_failed or not self.is_ready else ProduceResponse(responses=self._topics)

    async def finish(self) -> ProduceResponse:
        await _wait(self._call, self._waiting, self._request, self._appended_at, self._call.note_ready)
        response = ProduceResponse(responses=self._topics)
        if self._call.failed:
            await _add_leader_hints(self._call, response)
        return response


async def _add_leader_hints(call: Call, response: ProduceResponse) -> None:
    """Add to a response with errors what a client needs to find the leader."""
    await refuse_where_replaced(call, response)
    if call.version >= _FIRST_HINT_VERSION:
        response.node_endpoints = add_current_leaders(call, _not_led_here(response), LeaderIdAndEpoch, NodeEndpoint)


def _not_led_here(response: ProduceResponse) -> list[NotLeaderPartition]:
    return [
        NotLeaderPartition(topic.name, topic.topic_id, answer.index, answer)
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]


def _name_topics(call: Call, request: ProduceRequest) -> None:
    """Give the topics of a request the names of their ids, '' for an unknown id. This is done once, before rights are checked,
    because the topic of an id may change while the request waits.
    """
    for topic_data in request.topic_data:
        topic_data.name = call.broker.metadata.topic_name(topic_data.topic_id) or ""


def _forbidden_topics(call: Call, request: ProduceRequest) -> set[str]:
    """The topics that the client may not write to; each is looked at once. Raises KafkaError where the request as a whole is
    refused.

    Most requests have one batch, and plain loops cost such a one half of what sets and generators do.
    """
    if _has_transactional_batch(request):
        if request.transactional_id is None:
            raise refusal(TRANSACTIONAL_ID)
        check(call, Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    seen, forbidden = set(), set()
    for topic_data in request.topic_data:
        name = topic_data.name
        if name and name not in seen:
            seen.add(name)
            if not may(call, Operation.WRITE, TOPIC, name):
                forbidden.add(name)
    return forbidden


def _has_transactional_batch(request: ProduceRequest) -> bool:
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            records = data.records
            if isinstance(records, memoryview) and low_attributes(records) & TRANSACTIONAL_BIT:
                return True
    return False


async def _enter_transaction(
    call: Call, request: ProduceRequest, transactional_id: str, forbidden: Collection[str]
) -> Refusals:
    """Let the transaction begin in its partitions where it has not yet; returns those that must not be written to."""
    entries: dict[TopicPartition, Entry] = {}
    for topic_data in request.topic_data:
        name = topic_data.name
        if name in forbidden:
            continue
        for data in topic_data.partition_data:
            try:
                partition = call.broker.replicas.partition(name, data.index)
                partition.check_leader()
                batch = RecordBatch(data.records if isinstance(data.records, memoryview) else b"")
            except KafkaError:
                continue  # the append says what is wrong
            if batch.is_transactional and batch.producer_id >= 0:
                entries[TopicPartition(name, data.index)] = Entry(
                    partition, batch.producer_id, batch.producer_epoch, batch.base_sequence
                )
    refused = await verify_partitions(
        call,
        transactional_id,
        entries,
        adds=call.version >= _FIRST_V2_VERSION,
        knows_abortable=call.version >= _FIRST_ABORTABLE_VERSION,
    )
    return {name: as_seen_by_producers(reason) for name, reason in refused.items()}


async def _append_large(
    call: Call,
    name: str,
    data: PartitionProduceData,
    request: ProduceRequest,
    now_ms: int,
    waiting: Waiting,
    large: LargeBatchError,
) -> PartitionProduceResponse:
    """``_append`` of a batch that a worker has to look into."""
    partition = call.broker.replicas.partition(name, data.index)  # before a wait, in which the topic may be deleted
    await call.flush()
    try:
        prepared = await partition.log.prepare(large, now_ms)
    except KafkaError as error:
        return _failed(partition, data, error)
    return _append(call, name, data, request, now_ms, waiting, prepared)


def _append(
    call: Call,
    name: str,
    data: PartitionProduceData,
    request: ProduceRequest,
    now_ms: int,
    waiting: Waiting,
    prepared: RecordBatch | None = None,
) -> PartitionProduceResponse:
    """Append one partition's batch; returns its response, with or without an error. Raises LargeBatchError."""
    try:
        if not name and call.version >= _FIRST_TOPIC_ID_VERSION:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has this id")
        partition = call.broker.replicas.partition(name, data.index)
        records = data.records
        if records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "no records")
        assert isinstance(records, memoryview)
        attributes = low_attributes(records)
        if attributes & TRANSACTIONAL_BIT and request.transactional_id is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the request has no transactional id")
        if attributes & CODEC_MASK == ZSTD and call.version < _FIRST_ZSTD_VERSION:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7")
        if request.acks not in (-1, 0, 1):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}")
        if name in INTERNAL_TOPICS and call.client_id != _ADMIN_CLIENT_ID:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is the broker's own")
    except KafkaError as error:
        return _refused(data.index, error, -1)
    partition.produce_requests += prepared is None  # a large batch comes here twice
    try:
        result = partition.append(records, now_ms, acks=request.acks, prepared=prepared)
    except KafkaError as error:
        return _failed(partition, data, error)
    activity = call.activity
    if activity is not None:
        produced, key = activity.produced, (name, data.index)
        if len(produced) < MOST_PARTITIONS or key in produced:
            produced[key] = now_ms, result.first_offset, result.producer_id
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=result.first_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    if result.flush_due or (request.acks == -1 and partition.log.high_watermark <= result.last_offset):
        # The role belongs to the wait: a leader that is replaced and elected again may have cut these records off meanwhile.
        waiting.append((partition, partition.leader, result, answer))
    return answer


def _failed(partition: Partition, data: PartitionProduceData, error: KafkaError) -> PartitionProduceResponse:
    assert isinstance(data.records, memoryview)
    _count_failure(partition, error, len(data.records))
    return _refused(data.index, error, -1 if error.code in _WITHOUT_LOG_START else partition.log.log_start_offset)


def _count_failure(partition: Partition, error: KafkaError, size: int) -> None:
    if error.code in _TOO_LARGE:
        partition.bytes_rejected += size
    elif error.code not in _EXPECTED:
        partition.failed_produce_requests += 1


def _refused(index: int, error: KafkaError, log_start_offset: int) -> PartitionProduceResponse:
    record_errors = []
    if isinstance(error, RecordsRefusedError):
        record_errors = [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=why) for at, why in error.record_errors
        ]
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=log_start_offset,
        record_errors=record_errors,
        error_message=error.message,
    )


async def _wait(
    call: Call,
    waiting: Waiting,
    request: ProduceRequest,
    appended_at: float,
    on_reached: Callable[[], None] | None = None,
) -> None:
    """Wait until appends are on disk (flush.messages) and committed (acks=-1); the others are answered with an error."""
    deadline = appended_at + max(request.timeout_ms, 0) / 1000
    for partition, role, result, answer in waiting:
        try:
            if result.flush_due:
                await partition.log.flush()
            if request.acks == -1:
                seconds = deadline - trio.current_time()
                await partition.wait_for_high_watermark(
                    result.last_offset + 1, seconds, role=role, on_reached=on_reached
                )
        except KafkaError as error:
            call.fail()
            answer.error_code = error.code
            answer.error_message = error.message
            answer.base_offset = -1


def error_response(request: ProduceRequest, error: KafkaError) -> ProduceResponse | None:
    if request.acks == 0:
        raise CloseConnection(f"a produce with acks=0 failed: {error}")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=data.index, error_code=error.code, base_offset=-1, error_message=error.message
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
