"""The records of ``__transaction_state``: the newest one of a transactional id counts, and a tombstone deletes the id.

Values are written at version 1, as Kafka does from ``transaction.version`` 1 on; it has what V2 needs in tagged fields.
``last_producer_epoch`` is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base.errors import ProtocolError
from ..base.partitions import TopicPartition
from ..replication.coordinator_loading import SkippedRecords, decoded_records
from ..wire.coordinator_records import decode_transaction_key, decode_transaction_value, encode_coordinator_record
from ..wire.messages.transaction_state import PartitionsSchema, TransactionLogKey, TransactionLogValue
from ..wire.records import Record, RecordBatch, RecordsBuilder
from .transaction import Transaction, TransactionStatus

VALUE_VERSION = 1


def build_batch(transactional_id: str, transaction: Transaction | None, now_ms: int) -> bytearray:
    """A batch of one record; None forgets the id."""
    return build_batches([(transactional_id, transaction)], now_ms)


def build_batches(records: Iterable[tuple[str, Transaction | None]], now_ms: int) -> bytearray:
    """One batch of several records."""
    builder = RecordsBuilder()
    for transactional_id, transaction in records:
        key = encode_coordinator_record(TransactionLogKey(transactional_id=transactional_id), 0)
        value = None if transaction is None else encode_coordinator_record(_value(transaction), VALUE_VERSION)
        builder.append(key, value, now_ms)
    return builder.build()


def _value(transaction: Transaction) -> TransactionLogValue:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    partitions = [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=None if transaction.state is TransactionStatus.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )


def read_batch(batch: RecordBatch, skipped: SkippedRecords) -> Iterator[tuple[str, Transaction | None] | None]:
    """The records of ``batch``; those that cannot be understood are None, and noted."""
    return (decoded for _, decoded in decoded_records(batch, skipped, _decode))


def _decode(record: Record) -> tuple[str, Transaction | None]:
    """Raises ProtocolError."""
    if record.key is None:
        raise ProtocolError("a record without a key")
    key = decode_transaction_key(record.key)
    if not isinstance(key, TransactionLogKey):
        raise ProtocolError(f"the record type {int.from_bytes(record.key[:2], signed=True)} is unknown")
    value = None if record.value is None else decode_transaction_value(key, record.value)
    assert value is None or isinstance(value, TransactionLogValue)
    try:
        return key.transactional_id, None if value is None else _transaction(key.transactional_id, value)
    except ValueError as error:  # a status that no transaction has
        raise ProtocolError(str(error)) from error


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    partitions: set[TopicPartition] = set()
    for topic in value.transaction_partitions or ():
        partitions.update(TopicPartition(topic.topic, partition) for partition in topic.partition_ids)
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        TransactionStatus(value.transaction_status),
        value.transaction_last_update_timestamp_ms,
        frozenset(partitions),
        value.transaction_start_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        client_version=value.client_transaction_version,
    )
