"""Transactions request by request, in both generations of the protocol: what stock clients rarely or never get to see."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import NO_V2, NewName
from ottla.compat_tests.raw.transactional import (
    CLASSIC_END,
    CLASSIC_PRODUCE,
    STARTING,
    V2_END,
    V2_PRODUCE,
    RawProducer,
    committed_offset,
    end_offset,
    fetch,
    values_in,
)
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, connect
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

pytestmark = pytest.mark.client("wire")
NONE = ErrorCode.NONE
TRY_AGAIN = ErrorCode.NOT_ENOUGH_REPLICAS

NewProducer = Callable[..., RawProducer]


@pytest.fixture
def connection(wire: Connection) -> Connection:
    """The connection of all in the test."""
    return wire


@pytest.fixture
def new_producer(connection: Connection, new_transactional_id: NewName) -> NewProducer:
    """Makes started producers; with no name each has a transactional id of its own."""

    def make(name: str | None = None, **options: int) -> RawProducer:
        return RawProducer(connection, name or new_transactional_id()).start(**options)

    return make


@pytest.mark.capability("transactions: commit and abort, classic protocol")
def test_classic(connection: Connection, new_producer: NewProducer, topic: str) -> None:
    producer = new_producer()
    assert (producer.epoch, producer.producer_id >= 0) == (0, True)
    producer.begin(topic)
    assert producer.send(topic, b"a", b"b") == NONE
    assert (end_offset(connection, topic), end_offset(connection, topic, committed=False)) == (0, 2)
    part = fetch(connection, topic)
    assert (values_in(part), part.last_stable_offset, part.high_watermark) == ([], 0, 2)
    assert values_in(fetch(connection, topic, committed=False)) == [b"a", b"b"]
    assert producer.end(commit=True) == NONE
    eventually(lambda: end_offset(connection, topic) == 3)
    part = fetch(connection, topic)
    assert (values_in(part, with_control=True), part.aborted_transactions) == ([b"a", b"b", b"*"], [])

    producer.begin(topic)
    assert producer.send(topic, b"c") == NONE
    assert producer.end(commit=False) == NONE
    eventually(lambda: end_offset(connection, topic) == 5)
    part = fetch(connection, topic)
    aborted = [(each.producer_id, each.first_offset) for each in part.aborted_transactions]
    assert aborted == [(producer.producer_id, 3)]
    assert values_in(part, with_control=True) == [b"a", b"b", b"*", b"c", b"*"]
    assert fetch(connection, topic, committed=False).aborted_transactions in (None, [])
    assert producer.end(commit=False) == NONE, "asked for again"
    assert producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE
    assert producer.epoch == 0


@pytest.mark.capability("transactions: aborted transactions of the whole range that is read")
def test_overlapping_transactions(connection: Connection, new_producer: NewProducer, topic: str) -> None:
    first, second, third = (new_producer() for _ in range(3))
    for producer in (first, second, third):
        producer.begin(topic)
    assert first.send(topic, b"1a") == NONE  # 0
    assert second.send(topic, b"2a") == NONE  # 1
    assert third.send(topic, b"3a") == NONE  # 2
    assert second.end(commit=False) == NONE  # 3
    eventually(lambda: end_offset(connection, topic, committed=False) == 4)
    assert first.send(topic, b"1b") == NONE  # 4
    assert end_offset(connection, topic) == 0, "the first transaction is still open"
    assert first.end(commit=False) == NONE  # 5
    eventually(lambda: end_offset(connection, topic) == 2)
    part = fetch(connection, topic)
    assert values_in(part) == [b"1a", b"2a"]
    assert sorted((each.producer_id, each.first_offset) for each in part.aborted_transactions) == sorted(
        [(first.producer_id, 0), (second.producer_id, 1)]
    )
    assert third.end(commit=True) == NONE  # 6
    eventually(lambda: end_offset(connection, topic) == 7)
    part = fetch(connection, topic, offset=4)
    assert values_in(part) == [b"1b"]
    assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions] == [(first.producer_id, 0)]


@pytest.mark.capability("transactions: V2")
@pytest.mark.one_broker(NO_V2)
def test_v2(connection: Connection, new_producer: NewProducer, topic: str) -> None:
    producer = new_producer(version=5)
    assert producer.send(topic, b"a", version=V2_PRODUCE) == NONE
    assert producer.send(topic, b"b", version=V2_PRODUCE) == NONE
    assert producer.end(commit=True, version=V2_END) == NONE
    assert producer.epoch == 1, "every transaction has an epoch of its own"
    eventually(lambda: end_offset(connection, topic) == 3)

    producer.epoch = 0
    assert producer.end(commit=True, version=V2_END) == NONE, "the answer was lost, and the request repeated"
    assert producer.epoch == 1
    producer.epoch = 0
    assert producer.end(commit=False, version=V2_END) == ErrorCode.INVALID_TXN_STATE
    producer.epoch = 1
    assert producer.end(commit=True, version=V2_END) == ErrorCode.INVALID_TXN_STATE, "there is nothing to commit"
    assert producer.end(commit=False, version=V2_END) == NONE, "but the client may not know that"
    assert producer.epoch == 2

    producer.retried(lambda: producer.send(topic, b"c", version=V2_PRODUCE))
    assert producer.end(commit=False, version=V2_END) == NONE
    eventually(lambda: end_offset(connection, topic) == 5)
    part = fetch(connection, topic)
    assert values_in(part, with_control=True) == [b"a", b"b", b"*", b"c", b"*"]
    assert [each.first_offset for each in part.aborted_transactions] == [3]


@pytest.mark.capability("transactions: V2, one right behind the other")
@pytest.mark.one_broker(NO_V2)
def test_v2_without_a_pause(connection: Connection, new_producer: NewProducer, topic: str) -> None:
    """The first batch of a transaction comes while the one before is decided, and its marker not written yet."""
    producer = new_producer(version=5)

    def is_written(value: bytes) -> bool:
        return producer.send(topic, value, version=V2_PRODUCE) == NONE

    assert is_written(b"0")
    for number in range(1, 10):
        connection.send(producer.end_request(commit=True), V2_END)
        producer.epoch, producer.sequences = producer.epoch + 1, {}
        connection.send(producer.produce_request(topic, b"%d" % number), V2_PRODUCE)
        assert connection.receive().error_code == NONE
        (answer,) = connection.receive().responses[0].partition_responses
        assert answer.error_code in (NONE, TRY_AGAIN), ErrorCode(answer.error_code)
        if answer.error_code == TRY_AGAIN:
            eventually(partial(is_written, b"%d" % number))
    assert values_in(fetch(connection, topic)) == [b"%d" % number for number in range(9)]


@pytest.mark.capability("transactions: a batch outside of its transaction is refused")
def test_outside_of_a_transaction(connection: Connection, new_producer: NewProducer, topic: str) -> None:
    producer = new_producer()
    assert producer.send(topic, b"x", version=9) == ErrorCode.INVALID_TXN_STATE, "the partition was not added"
    assert producer.send(topic, b"x", version=CLASSIC_PRODUCE) == ErrorCode.TRANSACTION_ABORTABLE
    producer.begin(topic)
    assert producer.send(topic, b"a", version=9) == NONE
    refused = producer.send(topic, b"x", transactional=False, names_id=False)
    assert refused == ErrorCode.INVALID_TXN_STATE, "a plain batch while the transaction is open"
    refused = producer.send(topic, b"x", names_id=False)
    assert refused == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the request does not name the transactional id"
    assert producer.end(commit=True) == NONE
    eventually(lambda: end_offset(connection, topic) == 2)
    codes: list[ErrorCode] = []

    def is_answered() -> bool:
        codes.append(producer.send(topic, b"x", version=9))
        return codes[-1] != TRY_AGAIN

    eventually(is_answered)
    assert codes[-1] == ErrorCode.INVALID_TXN_STATE, "the transaction is closed"
    assert values_in(fetch(connection, topic)) == [b"a"]


@pytest.mark.capability("transactions: fencing")
@pytest.mark.one_broker(NO_V2)
@pytest.mark.parametrize("produce_version", [CLASSIC_PRODUCE, V2_PRODUCE])
def test_fencing(
    connection: Connection, new_producer: NewProducer, make_topic: Callable[[int], str], produce_version: int
) -> None:
    topic = make_topic(2)
    zombie = new_producer()
    if produce_version == CLASSIC_PRODUCE:
        zombie.begin(topic)
    assert zombie.send(topic, b"zombie", version=produce_version) == NONE
    successor = RawProducer(connection, zombie.transactional_id)
    assert successor.init() == ErrorCode.CONCURRENT_TRANSACTIONS, "the open transaction is aborted first"
    successor.start()
    assert successor.producer_id == zombie.producer_id
    assert successor.epoch == 2, "one for the abort, one for the successor"
    assert zombie.send(topic, b"late", version=produce_version) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.send(topic, b"late", partition=1, version=produce_version) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.add(topic, 0) == {0: ErrorCode.PRODUCER_FENCED}
    assert zombie.add(topic, 0, version=1) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert zombie.end(commit=True) == ErrorCode.PRODUCER_FENCED
    assert zombie.end(commit=True, version=V2_END) == ErrorCode.PRODUCER_FENCED
    assert zombie.end(commit=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.add_offsets("group") == ErrorCode.PRODUCER_FENCED
    assert zombie.init(resume=True) == ErrorCode.PRODUCER_FENCED
    assert zombie.init(resume=True, version=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    zombie.producer_id += 1_000_000
    assert zombie.add(topic, 0) == {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert zombie.end(commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    successor.begin(topic)
    assert successor.send(topic, b"successor") == NONE
    assert successor.end(commit=True) == NONE
    eventually(lambda: end_offset(connection, topic) == 4)
    part = fetch(connection, topic)
    assert [each.first_offset for each in part.aborted_transactions] == [0]
    assert values_in(part, with_control=True) == [b"zombie", b"*", b"successor", b"*"]


@pytest.mark.capability("transactions: InitProducerId")
def test_init_producer_id(connection: Connection, new_producer: NewProducer, new_transactional_id: NewName) -> None:
    producer = new_producer()
    assert producer.init(timeout_ms=900_001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert producer.init(timeout_ms=0) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert RawProducer(connection, "").init() == ErrorCode.INVALID_REQUEST
    assert producer.init() == NONE
    assert producer.epoch == 1
    assert producer.init(resume=True) == NONE
    assert producer.epoch == 2
    producer.epoch = 1
    assert producer.init(resume=True) == NONE, "the answer was lost, and the request repeated"
    assert producer.epoch == 2
    producer.epoch = 0
    assert producer.init(resume=True) == ErrorCode.PRODUCER_FENCED
    assert producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
    producer.epoch = 2
    assert producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE, "no transaction has begun"
    unknown = RawProducer(connection, new_transactional_id())
    assert unknown.end(commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.capability("transactions: partitions that do not exist")
def test_unknown_partitions(new_producer: NewProducer, topic: str) -> None:
    producer = new_producer()
    assert producer.add(topic, 0, 7) == {
        0: ErrorCode.OPERATION_NOT_ATTEMPTED,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE, "nothing was added"


@pytest.mark.capability("transactions: what leaders ask the coordinator")
@pytest.mark.one_broker(NO_V2)
def test_batched_requests(connection: Connection, new_producer: NewProducer, make_topic: Callable[[int], str]) -> None:
    topic = make_topic(2)
    first, second = new_producer(), new_producer()

    def asked(producer: RawProducer, *partitions: int, verify_only: bool) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def call(*transactions: AddPartitionsToTxnTransaction) -> dict[str, list[ErrorCode]]:
        answer = connection.call(AddPartitionsToTxnRequest(transactions=list(transactions)), 5)
        assert answer.error_code == NONE
        return {
            each.transactional_id: [
                ErrorCode(part.partition_error_code)
                for of_topic in each.topic_results
                for part in of_topic.results_by_partition
            ]
            for each in answer.results_by_transaction
        }

    codes = call(asked(first, 0, verify_only=False), asked(second, 0, verify_only=True))
    assert codes == {first.transactional_id: [NONE], second.transactional_id: [ErrorCode.TRANSACTION_ABORTABLE]}
    codes = call(asked(first, 0, 1, verify_only=True))
    assert sorted(codes[first.transactional_id]) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]
    first.epoch += 1
    assert call(asked(first, 0, verify_only=True)) == {first.transactional_id: [ErrorCode.PRODUCER_FENCED]}
    first.epoch -= 1
    assert first.end(commit=False, version=V2_END) == NONE
    assert second.end(commit=False) == ErrorCode.INVALID_TXN_STATE


@pytest.mark.capability("transactions: offsets")
@pytest.mark.parametrize(
    "is_v2", [False, pytest.param(True, marks=pytest.mark.one_broker(NO_V2))], ids=["classic", "v2"]
)
def test_offsets(
    connection: Connection, new_producer: NewProducer, topic: str, new_group_id: NewName, is_v2: bool
) -> None:
    group_id, new_group = new_group_id(), new_group_id()
    producer = new_producer()
    version, end_version = (5, V2_END) if is_v2 else (4, CLASSIC_END)

    def commit(offset: int) -> None:
        if not is_v2:
            producer.retried(lambda: producer.add_offsets(group_id))
        producer.retried(lambda: producer.commit_offset(group_id, topic, offset, version=version))

    if not is_v2:
        eventually(lambda: producer.commit_offset(group_id, topic, 3, version=3) not in STARTING)
        assert producer.commit_offset(group_id, topic, 3, version=3) == ErrorCode.INVALID_TXN_STATE
        assert producer.commit_offset(group_id, topic, 3, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    commit(5)
    assert committed_offset(connection, group_id, topic, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert committed_offset(connection, group_id, topic, stable=False) == (NONE, -1)
    assert producer.end(commit=True, version=end_version) == NONE
    eventually(lambda: committed_offset(connection, group_id, topic, stable=True) == (NONE, 5))
    commit(9)
    assert committed_offset(connection, group_id, topic, stable=False) == (NONE, 5)
    assert producer.end(commit=False, version=end_version) == NONE
    eventually(lambda: committed_offset(connection, group_id, topic, stable=True) == (NONE, 5))
    assert committed_offset(connection, group_id, topic, stable=False) == (NONE, 5)
    if not is_v2:
        producer.retried(lambda: producer.add_offsets(group_id))
    code = producer.commit_offset(group_id, topic, 9, version=version, generation_id_or_member_epoch=3, member_id="who")
    assert code == ErrorCode.UNKNOWN_MEMBER_ID if is_v2 else code in (ErrorCode.UNKNOWN_MEMBER_ID, NONE)
    code = producer.commit_offset(
        new_group, topic, 9, version=version, generation_id_or_member_epoch=3, member_id="who"
    )
    assert code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.TRANSACTION_ABORTABLE)
    assert producer.end(commit=False, version=end_version) == NONE


@pytest.mark.capability("transactions: what administrators see")
def test_descriptions(
    connection: Connection, new_producer: NewProducer, new_transactional_id: NewName, topic: str
) -> None:
    producer = new_producer(timeout_ms=44_000)
    name = producer.transactional_id
    unknown = new_transactional_id()

    def describe(transactional_id: str) -> tuple[object, ...]:
        (state,) = connection.call(
            DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0
        ).transaction_states
        topics = [(each.topic, each.partitions) for each in state.topics]
        return ErrorCode(state.error_code), state.transaction_state, state.transaction_timeout_ms, topics

    assert describe(name) == (NONE, "Empty", 44_000, [])
    assert describe(unknown)[0] == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    producer.begin(topic)
    assert producer.send(topic, b"a") == NONE
    assert describe(name) == (NONE, "Ongoing", 44_000, [(topic, [0])])

    def listed(**filters: Any) -> list[tuple[str, str]]:
        answer = connection.call(ListTransactionsRequest(**filters), 1)
        assert answer.error_code == NONE
        states = [(each.transactional_id, each.transaction_state) for each in answer.transaction_states]
        return [each for each in states if each[0] == name]

    assert listed() == [(name, "Ongoing")]
    assert listed(state_filters=["Ongoing"], producer_id_filters=[producer.producer_id]) == [(name, "Ongoing")]
    assert listed(state_filters=["Empty"]) == []
    assert listed(producer_id_filters=[producer.producer_id + 1]) == []
    assert listed(duration_filter=100_000) == []
    answer = connection.call(ListTransactionsRequest(state_filters=["Nonsense"]), 1)
    assert answer.unknown_state_filters == ["Nonsense"]

    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])

    def transaction_start() -> tuple[int, int, int]:
        (state,) = connection.call(request, 0).topics[0].partitions[0].active_producers
        assert (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.epoch)
        return state.current_txn_start_offset, state.last_sequence, state.coordinator_epoch

    start, last_sequence, _ = transaction_start()
    assert (start, last_sequence) == (0, 0)
    assert producer.end(commit=True) == NONE
    eventually(lambda: describe(name) == (NONE, "CompleteCommit", 44_000, []))
    start, last_sequence, coordinator_epoch = transaction_start()
    assert (start, last_sequence) == (-1, 0)
    assert coordinator_epoch >= 0


@pytest.mark.capability("transactions: end markers written by an administrator")
def test_markers(connection: Connection, new_producer: NewProducer, topic: str) -> None:
    producer = new_producer()
    producer.begin(topic)
    assert producer.send(topic, b"hanging") == NONE

    def write(epoch: int, coordinator_epoch: int, partition: int = 0) -> ErrorCode:
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
        )
        answer = connection.call(WriteTxnMarkersRequest(markers=[marker]), 1)
        return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)

    assert write(producer.epoch, 50, partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert write(producer.epoch, 50) == NONE
    assert end_offset(connection, topic) == 2
    assert write(producer.epoch, 49) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert write(producer.epoch + 1, 50) == NONE
    assert write(producer.epoch, 50) == ErrorCode.INVALID_PRODUCER_EPOCH
    part = fetch(connection, topic)
    assert [each.first_offset for each in part.aborted_transactions] == [0]


@pytest.mark.capability("transactions: a read_committed fetch waits for what is committed")
def test_waiting(address: str, connection: Connection, new_producer: NewProducer, topic: str) -> None:
    producer = new_producer()
    producer.begin(topic)
    assert producer.send(topic, b"a" * 1000) == NONE
    with connect(address) as reader, ThreadPoolExecutor() as threads:
        waiting = threads.submit(fetch, reader, topic, max_wait_ms=20_000)
        assert producer.send(topic, b"b" * 1000) == NONE
        assert wait([waiting], timeout=0.3).not_done, "bytes of an open transaction are nothing to answer with"
        assert producer.end(commit=True) == NONE
        part = waiting.result(timeout=10)
    assert values_in(part) == [b"a" * 1000, b"b" * 1000]


@pytest.mark.capability("transactions: transaction.version in ApiVersions")
@pytest.mark.one_broker("a cluster on ZooKeeper finalizes no feature")
def test_features(connection: Connection) -> None:
    # A lowest version of 0 cannot be read by clients of version 3.
    for version, range_of_versions in ((3, None), (4, (0, 2))):
        answer = connection.call(ApiVersionsRequest(client_software_name="test", client_software_version="1"), version)
        assert answer.finalized_features_epoch >= 0
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        assert finalized["transaction.version"] == 2
        supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
        assert supported.get("transaction.version") == range_of_versions
