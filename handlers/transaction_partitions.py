"""The start of a transaction in a partition: the leader verifies or adds the partition at the coordinator (KIP-890).

A client of the classic protocol has added the partition with AddPartitionsToTxn; the leader *verifies* that, because a late
batch would open a transaction that is never ended. A client of transactions V2 does not add partitions: the leader does it for
the client. Where the producer's transaction is open already, the coordinator is not asked.
"""

from __future__ import annotations

from typing import NamedTuple

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..log.producer_state import VerificationStateEntry
from ..replication.partition import Partition
from ..transaction_coordinator.add_partitions_to_txn import ProducerPartitions
from ..transaction_coordinator.settings import TransactionSettings
from .call import Call
from .fenced import downgrade_fenced

_END_OF_THE_LAST_SECONDS = 0.1

Verifications = dict[TopicPartition, VerificationStateEntry]


class Entry(NamedTuple):
    """A producer's batch that is about to be appended."""

    partition: Partition
    producer_id: int
    producer_epoch: int
    sequence: int


async def verify_partitions(
    call: Call, transactional_id: str, entries: dict[TopicPartition, Entry], *, adds: bool, knows_abortable: bool
) -> dict[TopicPartition, KafkaError]:
    """Ask about the partitions where the transaction is not open yet; returns those that must not be written to, with the reason.

    The caller appends to the others before it next waits. ``adds`` for clients of transactions V2;
    ``knows_abortable`` for those that understand TRANSACTION_ABORTABLE. PRODUCER_FENCED is called INVALID_PRODUCER_EPOCH
    (``AddPartitionsToTxnManager`` of Kafka).
    """
    refused: dict[TopicPartition, KafkaError] = {}
    by_producer: dict[tuple[int, int], list[TopicPartition]] = {}
    for name, entry in entries.items():
        if not entry.partition.log.producer_state.has_ongoing(entry.producer_id, entry.producer_epoch):
            by_producer.setdefault((entry.producer_id, entry.producer_epoch), []).append(name)
    for producer, names in by_producer.items():
        asked = {name: entries[name] for name in names}
        try:
            verifications, missing = await _ask(call, transactional_id, producer, asked, adds=adds)
        except KafkaError as error:
            refused |= dict.fromkeys(names, downgrade_fenced(error, knows_fenced=False))
            continue
        for name in names:
            try:
                if name in missing:
                    code = ErrorCode.TRANSACTION_ABORTABLE if knows_abortable else ErrorCode.INVALID_TXN_STATE
                    raise KafkaError(code, "the partition was not added to the transaction")
                entries[name].partition.log.producer_state.confirm(producer[0], verifications[name])
            except KafkaError as error:
                refused[name] = error
    return refused


async def _ask(
    call: Call, transactional_id: str, producer: tuple[int, int], entries: dict[TopicPartition, Entry], *, adds: bool
) -> tuple[Verifications, set[TopicPartition]]:
    """Ask the coordinator; returns the verifications begun before, and the partitions not in the transaction. KafkaError."""
    coordinators = call.broker.add_partitions_to_txn_manager
    asked = ProducerPartitions(transactional_id, producer, set(entries))
    verifications = _begin(call, producer, entries)
    if not adds:
        if not call.broker.config.settings(TransactionSettings).transaction_partition_verification_enable:
            return verifications, set()
        return verifications, set(entries) - await coordinators.verify(asked, call.flush)
    deadline = trio.current_time() + _END_OF_THE_LAST_SECONDS
    while True:
        try:
            while True:
                await coordinators.add(asked, call.flush)
                if _are_current(verifications, producer[0], entries):
                    return verifications, set()
                # While the request was on its way the last transaction was ended here, and then at the coordinator.
                verifications = _begin(call, producer, entries)
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or trio.current_time() >= deadline:
                raise
        await call.flush()
        with trio.move_on_at(deadline):
            await coordinators.wait_ended(transactional_id)
        # The marker that ended the last transaction has revoked the verifications, too.
        verifications = _begin(call, producer, entries)


def _begin(call: Call, producer: tuple[int, int], entries: dict[TopicPartition, Entry]) -> Verifications:
    now_ms = call.broker.clock.now_ms()
    return {
        name: entry.partition.log.producer_state.begin_verification(*producer, entry.sequence, now_ms)
        for name, entry in entries.items()
    }


def _are_current(verifications: Verifications, producer_id: int, entries: dict[TopicPartition, Entry]) -> bool:
    """Whether no end marker has come since the verifications began."""
    return all(
        entry.partition.log.producer_state.verifications.get(producer_id) is verifications[name]
        for name, entry in entries.items()
    )


_TRY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


def as_seen_by_producers(error: KafkaError) -> KafkaError:
    """A reason of ``verify_partitions`` in the response to a Produce, whose clients talk to a leader and not to a coordinator."""
    if error.code in _TRY_AGAIN:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {error.code.name}",
        )
    return error
