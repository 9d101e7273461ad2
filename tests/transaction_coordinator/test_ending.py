"""End markers for a leader that is away: it is asked again and again, and the log has one line."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.partitions import TopicPartition
from ottla.transaction_coordinator.ending import RETRY_SECONDS, write_markers
from ottla.transaction_coordinator.transaction import Transaction, TransactionStatus
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class AbsentLeader:
    """Broker 1 leads everything, and comes back after ``refusals`` requests."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    def leader(self, topic: str, partition: int) -> int | None:
        return 1

    async def write_txn_markers(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        if self.refusals:
            self.refusals -= 1
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "Connection refused")
        topics = [
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[WritableTxnMarkerPartitionResult(partition_index=each) for each in topic.partition_indexes],
            )
            for topic in request.markers[0].topics
        ]
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(topics=topics)])


async def test_a_leader_that_is_away_is_asked_until_it_writes_and_logged_once(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    transaction = Transaction(
        "id", 7, 0, 60_000, TransactionStatus.PREPARE_COMMIT, 0, partitions=frozenset({TopicPartition("t", 0)})
    )
    caplog.set_level(logging.INFO)
    began = trio.current_time()
    await write_markers(AbsentLeader(50), transaction, 0)
    assert trio.current_time() - began == pytest.approx(50 * RETRY_SECONDS)
    assert [record.getMessage() for record in caplog.records] == [
        "Broker 1 could not write end markers; the request is repeated until it does: BROKER_NOT_AVAILABLE: Connection refused"
    ]
