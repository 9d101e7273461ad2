"""The state of each producer of a partition, and the snapshot files that preserve it over a restart (KIP-98).

File ``<offset, 20 digits>.snapshot``: the state after every batch below ``offset``, big-endian::

    0 version int16 (1)    2 crc uint32 (CRC-32C of all behind it)    6 count int32    10 entries of 46 bytes:
    producer_id int64, epoch int16, last_sequence int32, last_offset int64, offset_delta int32, timestamp int64,
    coordinator_epoch int32, current_txn_first_offset int64

Only the last batch of a producer survives in a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError

from crc32c import crc32c

from ..wire.records import NO_PRODUCER_EPOCH, NO_SEQUENCE

_VERSION = 1
_HEAD = Struct(">hIi")
_CRC_START = 6
_ENTRY = Struct(">qhiqiqiq")
_MAX_SEQUENCE = (1 << 31) - 1


class BatchMetadata:
    """One batch of a producer that is in the log."""

    __slots__ = ("first_offset", "first_sequence", "last_offset", "last_sequence", "timestamp")

    def __init__(
        self, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp: int
    ) -> None:
        self.first_sequence = first_sequence
        self.last_sequence = last_sequence
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.timestamp = timestamp
        """The largest of its records, in ms."""


class ProducerStateEntry:
    """One producer. -1 stands for a number that is not there."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        """That of its newest end marker, by which a marker of an earlier coordinator is refused."""
        self.last_timestamp = -1
        """The largest timestamp of its last batch in ms, by which an idle producer expires."""
        self.current_txn_first_offset = -1
        """Where its open transaction begins; -1 without one."""
        self.batches: list[BatchMetadata] = []
        """The last few of its current epoch, oldest first."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


def encode_snapshot(states: Iterable[ProducerStateEntry]) -> bytes:
    """The content of a snapshot file."""
    entries = bytearray()
    count = 0
    for state in states:
        last = state.batches[-1] if state.batches else None
        entries += _ENTRY.pack(
            state.producer_id,
            state.producer_epoch,
            state.last_sequence,
            -1 if last is None else last.last_offset,
            0 if last is None else last.last_offset - last.first_offset,
            state.last_timestamp,
            state.coordinator_epoch,
            state.current_txn_first_offset,
        )
        count += 1
    body = count.to_bytes(4, "big") + bytes(entries)
    return _HEAD.pack(_VERSION, crc32c(body), count) + body[4:]


def decode_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """Read a snapshot file. Raises ValueError when it is damaged."""
    try:
        version, crc, count = _HEAD.unpack_from(data)
    except StructError:
        raise ValueError("it is too short") from None
    if version != _VERSION:
        raise ValueError(f"version {version} is unknown")
    if crc32c(data[_CRC_START:]) != crc:
        raise ValueError("its CRC is not that of its bytes")
    if count < 0 or len(data) != _HEAD.size + count * _ENTRY.size:
        raise ValueError(f"its length is not that of {count} producers")
    states = []
    for entry in _ENTRY.iter_unpack(data[_HEAD.size :]):
        state = ProducerStateEntry(entry[0])
        last_sequence, last_offset, offset_delta = entry[2:5]
        state.producer_epoch = entry[1]
        state.last_timestamp, state.coordinator_epoch, state.current_txn_first_offset = entry[5:]
        if last_offset >= 0:
            first_sequence = (last_sequence - offset_delta) & _MAX_SEQUENCE
            first_offset = last_offset - offset_delta
            state.batches.append(
                BatchMetadata(first_sequence, last_sequence, first_offset, last_offset, state.last_timestamp)
            )
        states.append(state)
    return states
