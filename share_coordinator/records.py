"""The records of ``__share_group_state``: creation and decoding.

Keys and values are Kafka's own (``ShareSnapshotKey``, ``ShareUpdateKey``), each with its int16 type or version in front. A
tombstone of a snapshot forgets its share partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..base.errors import ProtocolError
from ..replication.coordinator_loading import SkippedRecords, decoded_records
from ..wire.coordinator_records import decode_share_key, decode_share_value, encode_coordinator_record
from ..wire.messages.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)
from ..wire.records import Record, RecordBatch, RecordsBuilder
from . import state
from .state import SharePartitionKey

_VERSION = 0


class ShareRecord(NamedTuple):
    """A record to write, or that was read: a snapshot, an update, or with no value the tombstone of a snapshot."""

    key: SharePartitionKey
    value: ShareSnapshotValue | ShareUpdateValue | None


def build_batch(records: Iterable[ShareRecord], now_ms: int, compression: int) -> bytearray:
    """One batch of ``records``, all with the timestamp ``now_ms``."""
    builder = RecordsBuilder(compression=compression)
    for key, value in records:
        key_class = ShareUpdateKey if isinstance(value, ShareUpdateValue) else ShareSnapshotKey
        written = key_class(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
        builder.append(
            encode_coordinator_record(written, 0),
            None if value is None else encode_coordinator_record(value, _VERSION),
            now_ms,
        )
    return builder.build()


def read_batch(batch: RecordBatch, skipped: SkippedRecords) -> Iterator[tuple[int, ShareRecord | None]]:
    """The records of ``batch`` with their offsets; those that cannot be understood are None, and noted."""
    return decoded_records(batch, skipped, _decode)


def _decode(record: Record) -> ShareRecord:
    """Raises ProtocolError."""
    if record.key is None:
        raise ProtocolError("a record without a key")
    key = decode_share_key(record.key)
    if not isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        raise ProtocolError(f"the record type {int.from_bytes(record.key[:2], signed=True)} is unknown")
    value = None if record.value is None else decode_share_value(key, record.value)
    if value is None and isinstance(key, ShareUpdateKey):
        raise ProtocolError("an update without a value")
    assert value is None or isinstance(value, ShareSnapshotValue | ShareUpdateValue)
    return ShareRecord(SharePartitionKey(key.group_id, key.topic_id, key.partition), value)


def batches_of(value: ShareSnapshotValue | ShareUpdateValue) -> Iterator[state.StateBatch]:
    """The batches of a record; those that end before they begin are left out."""
    for batch in value.state_batches:
        if batch.first_offset <= batch.last_offset:
            yield state.StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)


def written_batches(batches: Iterable[state.StateBatch]) -> list[StateBatch]:
    """``batches`` as a record has them."""
    return [
        StateBatch(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    ]
