"""The layout of a record batch's header (message format v2).

The header has 61 bytes, big-endian; the records follow, compressed as one piece or not at all::

     0 base_offset int64             27 base_timestamp int64
     8 batch_length int32            35 max_timestamp int64
    12 partition_leader_epoch int32  43 producer_id int64
    16 magic int8                    51 producer_epoch int16
    17 crc uint32                    53 base_sequence int32
    21 attributes int16              57 record_count int32
    23 last_offset_delta int32       61 records

``batch_length`` counts everything after itself. ``crc`` is the CRC-32C of everything from ``attributes`` on, so base
offset and leader epoch can be stamped without touching it. Attributes: bits 0-2 codec, 3 timestamp type, 4
transactional, 5 control, 6 delete horizon (``base_timestamp`` then holds the time from which tombstones may be removed).

Formats 0 and 1 have the same first fields: offset int64, size int32, then a CRC-32 and the magic, which is at 16, too.
Format: https://kafka.apache.org/documentation/#messageformat, KIP-98, KIP-534 (delete horizon).
"""

from __future__ import annotations

from struct import Struct

from .compression import Buffer

BATCH_HEADER_SIZE = 61
LENGTH_PREFIX_SIZE = 12
"""Bytes of a batch that ``batch_length`` does not count: the base offset and the length itself."""
MAGIC = 2

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

BATCH_LENGTH_POSITION = 8
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35

HEADER = Struct(">qiibIhiqqqhii")
STAMP = Struct(">qii")
"""The fields that a leader writes: base offset, batch length, leader epoch."""
SPAN = Struct(">qi11xi")
"""Base offset, batch length and last offset delta, from the start of a batch on."""
LEGACY_HEADER = Struct(">qiIb")
"""The header of a message of format 0 or 1: offset, size, CRC-32, magic."""
LEGACY_CRC_END = 16
"""The CRC-32 of a message of format 0 or 1 covers the bytes from here on."""
assert HEADER.size == BATCH_HEADER_SIZE

_MAX_TIMESTAMP = Struct(">q")
_LOW_ATTRIBUTES_POSITION = ATTRIBUTES_POSITION + 1


def low_attributes(batch: Buffer) -> int:
    """The low byte of a batch's attributes, which has all the bits that are used; 0 if it is not a batch of format v2."""
    if len(batch) > _LOW_ATTRIBUTES_POSITION and batch[MAGIC_POSITION] == MAGIC:
        return batch[_LOW_ATTRIBUTES_POSITION]
    return 0


def max_timestamp_of(header: Buffer) -> int:
    """The largest timestamp of a batch (ms), from its header."""
    timestamp: int = _MAX_TIMESTAMP.unpack_from(header, MAX_TIMESTAMP_POSITION)[0]
    return timestamp
