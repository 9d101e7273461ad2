"""The contents of DescribeTransactions and ListTransactions responses (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from ..wire.messages.describe_transactions import TopicData
from ..wire.messages.describe_transactions import TransactionState as DescribedTransaction
from ..wire.messages.list_transactions import ListTransactionsRequest
from ..wire.messages.list_transactions import TransactionState as ListedTransaction
from .id_pattern import IdPattern
from .transaction import Transaction, TransactionStatus

_TURN_SECONDS = 0.002
_CHARACTERS_PER_LOOK = 64

STATES = {state.wire_name: state for state in TransactionStatus}


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
        self._pattern = IdPattern(request.transactional_id_pattern) if request.transactional_id_pattern else None

    async def select(
        self, transactions: Iterable[Transaction], may_describe: Callable[[str], bool], elapsed: Callable[[], float]
    ) -> list[ListedTransaction]:
        """Those that pass, of those that the client may describe.

        There may be many of them, so other tasks have their turns meanwhile; ``elapsed``: seconds that never go back.
        """
        selected = []
        turn = _Turn(elapsed)
        for transaction in transactions:
            await turn.end_if_long()
            if not self._may_pass(transaction) or not may_describe(transaction.transactional_id):
                continue
            if self._pattern is None or await _matches(self._pattern, transaction.transactional_id, turn):
                selected.append(
                    ListedTransaction(
                        transactional_id=transaction.transactional_id,
                        producer_id=transaction.producer_id,
                        transaction_state=transaction.state.wire_name,
                    )
                )
        return selected

    def _may_pass(self, transaction: Transaction) -> bool:
        """All but the pattern."""
        if not self._any_state and transaction.state not in self._states:
            return False
        if self._producer_ids and transaction.producer_id not in self._producer_ids:
            return False
        return self._duration_ms < 0 or self._now_ms - transaction.start_ms > self._duration_ms


async def _matches(pattern: IdPattern, transactional_id: str, turn: _Turn) -> bool:
    states = pattern.begin()
    for start in range(0, len(transactional_id), _CHARACTERS_PER_LOOK):
        states = pattern.go_on(states, transactional_id[start : start + _CHARACTERS_PER_LOOK])
        if not states:
            return False
        await turn.end_if_long()
    return pattern.is_match(states)


class _Turn:
    """What one task does before others have their turn."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._began = elapsed()

    async def end_if_long(self) -> None:
        if self._elapsed() - self._began > _TURN_SECONDS:
            await trio.lowlevel.checkpoint()
            self._began = self._elapsed()
