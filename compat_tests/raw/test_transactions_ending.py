"""What is answered between the decision of a transaction and its last marker, by every request and with every epoch.

Each request is sent together with the EndTxn, of a transaction with many partitions, so that it is read while markers are
being written. Where it comes late anyway, the answer is that of the time after, and it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests.raw.requests import NO_V2, NewName
from ottla.compat_tests.raw.transactional import CLASSIC_END, V2_END, RawProducer
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.schema import Message

pytestmark = pytest.mark.client("wire")

PARTITIONS = 60
ROUNDS = 20
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
FENCED = ErrorCode.PRODUCER_FENCED
OLD_FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
FROM_THE_EPOCH_AT_THE_DECISION = (-1, 0, 1, 2)


class Producer(NamedTuple):
    """As a request names it."""

    transactional_id: str
    producer_id: int
    epoch: int
    topic: str
    group_id: str


def _end(producer: Producer, *, commit: bool) -> Message:
    return EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )


def _init(producer: Producer) -> Message:
    return InitProducerIdRequest(
        transactional_id=producer.transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
    )


def _add_partitions(producer: Producer) -> Message:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=producer.topic, partitions=[0])],
    )


def _add_offsets(producer: Producer) -> Message:
    return AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=producer.group_id,
    )


def _commit_offsets(producer: Producer) -> Message:
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=producer.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=producer.topic, partitions=[part])],
    )


def _code(answer: Any) -> ErrorCode:
    if hasattr(answer, "results_by_topic_v3_and_below"):
        return ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    if hasattr(answer, "topics"):
        return ErrorCode(answer.topics[0].partitions[0].error_code)
    return ErrorCode(answer.error_code)


_V2_ENDS: dict[str, tuple[Callable[[Producer], Message], int]] = {
    "EndTxn 5 commit": (lambda producer: _end(producer, commit=True), V2_END),
    "EndTxn 5 abort": (lambda producer: _end(producer, commit=False), V2_END),
}
NEVER_FENCES: dict[str, tuple[Callable[[Producer], Message], int]] = {
    **_V2_ENDS,
    "InitProducerId 4": (_init, 4),
    "AddPartitionsToTxn 3": (_add_partitions, 3),
    "AddOffsetsToTxn 3": (_add_offsets, 3),
}
CHECKS_THE_PRODUCER_FIRST: dict[str, tuple[Callable[[Producer], Message], int, ErrorCode]] = {
    "EndTxn 4 commit": (lambda producer: _end(producer, commit=True), CLASSIC_END, FENCED),
    "EndTxn 4 abort": (lambda producer: _end(producer, commit=False), CLASSIC_END, FENCED),
    "EndTxn 1 commit": (lambda producer: _end(producer, commit=True), 1, OLD_FENCED),
    "TxnOffsetCommit 4": (_commit_offsets, 4, OLD_FENCED),
}

Ask = Callable[[Callable[[Producer], Message], int, int], tuple[ErrorCode, bool]]


@pytest.fixture(
    params=[CLASSIC_END, pytest.param(V2_END, marks=pytest.mark.one_broker(NO_V2))], ids=["classic-end", "v2-end"]
)
def ask(
    request: pytest.FixtureRequest,
    wire: Connection,
    make_topic: Callable[[int], str],
    new_transactional_id: NewName,
    group_id: str,
) -> Ask:
    """``ask(make, version, difference)``: one request right behind an EndTxn; its answer, and whether its epoch is current.

    The epoch is that of the producer at the decision plus ``difference``.
    """
    topic = make_topic(PARTITIONS)
    end_version: int = request.param
    producer = RawProducer(wire, new_transactional_id()).start()

    def asked(make: Callable[[Producer], Message], version: int, difference: int) -> tuple[ErrorCode, bool]:
        producer.start()
        producer.retried(lambda: max(producer.add(topic, *range(PARTITIONS)).values()))
        named = (producer.transactional_id, producer.producer_id, producer.epoch + difference, topic, group_id)
        wire.send(producer.end_request(commit=True), end_version)
        wire.send(make(Producer(*named)), version)
        assert wire.receive().error_code == ErrorCode.NONE
        is_current = difference == (1 if end_version == V2_END else 0)
        return _code(wire.receive()), is_current

    return asked


@pytest.mark.capability("transactions: requests while the one before is ending")
@pytest.mark.parametrize(
    "api", [pytest.param(api, marks=pytest.mark.one_broker(NO_V2)) if api in _V2_ENDS else api for api in NEVER_FENCES]
)
def test_every_epoch_is_told_to_wait(ask: Ask, api: str) -> None:
    make, version = NEVER_FENCES[api]
    for difference in FROM_THE_EPOCH_AT_THE_DECISION:
        codes: list[ErrorCode] = []
        while len(codes) < ROUNDS and CONCURRENT not in codes:
            codes.append(ask(make, version, difference)[0])
        assert CONCURRENT in codes, f"epoch {difference:+}: none was told to wait: {codes}"


@pytest.mark.capability("transactions: requests while the one before is ending")
@pytest.mark.parametrize("api", CHECKS_THE_PRODUCER_FIRST)
def test_the_current_epoch_is_told_to_wait_and_others_are_fenced(ask: Ask, api: str) -> None:
    make, version, fenced = CHECKS_THE_PRODUCER_FIRST[api]
    for difference in FROM_THE_EPOCH_AT_THE_DECISION:
        codes: list[ErrorCode] = []
        while len(codes) < ROUNDS and CONCURRENT not in codes and fenced not in codes:
            code, is_current = ask(make, version, difference)
            codes.append(code)
        assert (CONCURRENT if is_current else fenced) in codes, f"epoch {difference:+}: {codes}"
