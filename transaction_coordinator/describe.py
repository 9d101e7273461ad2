"""What DescribeTransactions and ListTransactions tell (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.describe_transactions import TopicData
from ..wire.messages.describe_transactions import TransactionState as DescribedTransaction
from ..wire.messages.list_transactions import ListTransactionsRequest
from ..wire.messages.list_transactions import TransactionState as ListedTransaction
from .transaction import Transaction, TransactionState

STATES = {state.wire_name: state for state in TransactionState}


def describe(transaction: Transaction) -> DescribedTransaction:
    """One transactional id and its partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    return DescribedTransaction(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.wire_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


class Filter:
    """What a ListTransactions asks for. KafkaError INVALID_REGULAR_EXPRESSION."""

    def __init__(self, request: ListTransactionsRequest, now_ms: int) -> None:
        self._states = {STATES[name] for name in request.state_filters if name in STATES}
        self._any_state = not request.state_filters
        self._producer_ids = set(request.producer_id_filters)
        self._duration_ms = request.duration_filter
        self._now_ms = now_ms
        self._pattern: re.Pattern[str] | None = None
        if request.transactional_id_pattern:
            try:
                self._pattern = re.compile(request.transactional_id_pattern)
            except re.error as error:
                raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from None

    def select(self, transactions: list[Transaction]) -> Iterator[ListedTransaction]:
        """Those that pass."""
        for transaction in transactions:
            if self._passes(transaction):
                yield ListedTransaction(
                    transactional_id=transaction.transactional_id,
                    producer_id=transaction.producer_id,
                    transaction_state=transaction.state.wire_name,
                )

    def _passes(self, transaction: Transaction) -> bool:
        if not self._any_state and transaction.state not in self._states:
            return False
        if self._producer_ids and transaction.producer_id not in self._producer_ids:
            return False
        if self._duration_ms >= 0 and self._now_ms - transaction.start_ms <= self._duration_ms:
            return False
        return self._pattern is None or self._pattern.fullmatch(transaction.transactional_id) is not None
