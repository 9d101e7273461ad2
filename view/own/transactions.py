"""Transactions as rows: those that this broker coordinates, and those that block consumers in its partitions."""

from __future__ import annotations

import dataclasses

from ...handlers.services import Services
from ...replication.partition import Partition
from ...transaction_coordinator.transaction import PREPARED, Transaction, TransactionStatus
from ..admin_rows import HolderRow, TransactionRow
from ..pace import Pace
from .activity import transactional_ids

_LONGEST_NAMES = 1000
"""Of so many partitions of a transaction the names are told."""


async def transaction_rows(services: Services, now_ms: int, pace: Pace) -> list[TransactionRow]:
    """The transactional ids whose coordinator this broker is."""
    rows = []
    for transaction in services.transactions.transactions():
        rows.append(_row(transaction, services.node_id, now_ms))
        if pace.is_due(2):
            await pace.rest()
    return rows


async def transaction_row(services: Services, transactional_id: str, now_ms: int, pace: Pace) -> TransactionRow | None:
    """One of them, with the names of its partitions."""
    for transaction in services.transactions.transactions():
        if transaction.transactional_id == transactional_id:
            names = sorted((key.topic, key.partition) for key in transaction.partitions)
            row = _row(transaction, services.node_id, now_ms)
            return dataclasses.replace(row, partitions=tuple(names[:_LONGEST_NAMES]))
        if pace.is_due():
            await pace.rest()
    return None


def _row(transaction: Transaction, broker_id: int, now_ms: int) -> TransactionRow:
    is_open = transaction.state is TransactionStatus.ONGOING or transaction.state in PREPARED
    started = transaction.start_ms if transaction.start_ms >= 0 else None
    return TransactionRow(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.state.wire_name,
        transaction.timeout_ms,
        started,
        max(now_ms - started, 0) if is_open and started is not None else None,
        len(transaction.partitions),
        (),
        broker_id,
    )


async def holder_rows(services: Services, now_ms: int, pace: Pace) -> list[HolderRow]:
    """The open transactions in the partitions that this broker leads, those that began first at first."""
    names = await transactional_ids(services, pace)
    rows: list[HolderRow] = []
    for partition in list(services.replicas.partitions()):
        if partition.is_leader and partition.log.producer_state.ongoing:
            rows += _holders(partition, names, now_ms)
        if pace.is_due():
            await pace.rest()
    return sorted(rows, key=lambda row: -row.age_ms)


def _holders(partition: Partition, names: dict[int, str], now_ms: int) -> list[HolderRow]:
    log = partition.log
    rows = []
    first = next(iter(log.producer_state.ongoing), None)
    for start, producer_id in list(log.producer_state.ongoing.items()):
        state = log.producer_state.producers.get(producer_id)
        if state is not None:
            rows.append(
                HolderRow(
                    partition.topic,
                    log.partition,
                    producer_id,
                    state.producer_epoch,
                    state.coordinator_epoch,
                    names.get(producer_id),
                    start,
                    log.last_stable_offset,
                    log.high_watermark,
                    state.last_timestamp,
                    max(now_ms - state.last_timestamp, 0),
                    start == first,
                )
            )
    return rows
