"""The records in a batch of message format v2, one after another and not compressed.

A record is ``length`` varint (of all that follows), ``attributes`` int8 (unused), ``timestamp_delta`` varlong and
``offset_delta`` varint (against the batch's base timestamp and base offset), key and value (each a varint length, -1
for null, and the bytes), then a varint count of headers, each a key (never null, UTF-8) and a value (may be null).

Varints are zigzag encoded: 0, -1, 1, -2 … are 0, 1, 2, 3 …, seven bits a byte, low bits first. Reading is the hot loop
of everything that looks into batches, so varints of one and two bytes are read in line. A header key that is not UTF-8
is kept with surrogate escapes, so that a rewritten record has the same bytes. Timestamps wrap at 64 bits, as Java's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..base.errors import ErrorCode, KafkaError

Headers = list[tuple[str, bytes | None]]

_MAX_UINT32 = (1 << 32) - 1
_MAX_UINT64 = (1 << 64) - 1
_SIGN_BIT = 1 << 63


@dataclass(slots=True)
class Record:
    """One record. ``offset`` -1 means the one after the record before (``RecordsBuilder``); ``timestamp`` is in ms, -1: none."""

    offset: int = -1
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = field(default_factory=list)
    attributes: int = 0


def iter_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> Iterator[Record]:
    """Yield the ``count`` records that fill ``data``; with ``append_time`` (ms) all of them have that timestamp.

    KafkaError(INVALID_RECORD) where the bytes are malformed, after the records before that place.
    """
    position = 0
    end = len(data)
    try:
        for _ in range(count):
            if (raw := data[position]) < 0x80:
                position += 1
            elif (high := data[position + 1]) < 0x80:
                raw += (high << 7) - 0x80
                position += 2
            else:
                raw, position = _read_varint(data, position, _MAX_UINT32)
            record_end = position + (raw >> 1)
            if raw & 1 or record_end > end:
                raise _invalid("one is longer than the batch")
            attributes = data[position]
            if (raw := data[position + 1]) < 0x80:
                position += 2
            elif (high := data[position + 2]) < 0x80:
                raw += (high << 7) - 0x80
                position += 3
            else:
                raw, position = _read_varint(data, position + 1, _MAX_UINT64)
            timestamp = base_timestamp + ((raw >> 1) ^ -(raw & 1))
            if (raw := data[position]) < 0x80:
                position += 1
            elif (high := data[position + 1]) < 0x80:
                raw += (high << 7) - 0x80
                position += 2
            else:
                raw, position = _read_varint(data, position, _MAX_UINT32)
            offset = base_offset + ((raw >> 1) ^ -(raw & 1))
            if (raw := data[position]) < 0x80:
                position += 1
            elif (high := data[position + 1]) < 0x80:
                raw += (high << 7) - 0x80
                position += 2
            else:
                raw, position = _read_varint(data, position, _MAX_UINT32)
            key = None if raw & 1 else data[position : (position := position + (raw >> 1))]
            if (raw := data[position]) < 0x80:
                position += 1
            elif (high := data[position + 1]) < 0x80:
                raw += (high << 7) - 0x80
                position += 2
            else:
                raw, position = _read_varint(data, position, _MAX_UINT32)
            value = None if raw & 1 else data[position : (position := position + (raw >> 1))]
            headers: Headers = []
            if data[position] == 0:
                position += 1
            else:
                position = _read_headers(data, position, headers)
            if position != record_end:
                raise _invalid("the fields of one do not fill its length")
            if append_time is not None:
                timestamp = append_time
            elif not -_SIGN_BIT <= timestamp < _SIGN_BIT:
                timestamp = _wrap(timestamp)
            yield Record(offset, timestamp, key, value, headers, attributes)
    except IndexError:
        raise _invalid("they end early") from None
    if position != end:
        raise _invalid("there are more than the batch says")


def append_record(
    out: bytearray,
    attributes: int,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> None:
    """Append one record to ``out``. ``attributes`` is 0-255; a timestamp delta wraps at 64 bits."""
    if not -_SIGN_BIT <= timestamp_delta < _SIGN_BIT:
        timestamp_delta = _wrap(timestamp_delta)
    record = bytearray((attributes,))
    _append_varint(record, timestamp_delta)
    _append_varint(record, offset_delta)
    _append_bytes(record, key)
    _append_bytes(record, value)
    _append_varint(record, len(headers))
    for name, content in headers:
        _append_bytes(record, name.encode("utf-8", "surrogateescape"))
        _append_bytes(record, content)
    _append_varint(out, len(record))
    out += record


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, f"the records of a batch are malformed: {reason}")


def _wrap(value: int) -> int:
    return ((value + _SIGN_BIT) & _MAX_UINT64) - _SIGN_BIT


def _read_varint(data: bytes, position: int, largest: int) -> tuple[int, int]:
    """Read a varint; returns (value still zigzag encoded, position after it). IndexError at the end of ``data``."""
    raw = shift = 0
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if raw > largest:
            raise _invalid("a number in one is too large")
        if byte < 0x80:
            return raw, position
        shift += 7
        if shift > 63:
            raise _invalid("a number in one is too long")


def _read_headers(data: bytes, position: int, headers: Headers) -> int:
    raw, position = _read_varint(data, position, _MAX_UINT32)
    if raw & 1 or raw >> 1 > len(data) - position:
        raise _invalid("one has an impossible number of headers")
    for _ in range(raw >> 1):
        raw, position = _read_varint(data, position, _MAX_UINT32)
        if raw & 1:
            raise _invalid("a header has no key")
        name = data[position : (position := position + (raw >> 1))].decode("utf-8", "surrogateescape")
        raw, position = _read_varint(data, position, _MAX_UINT32)
        headers.append((name, None if raw & 1 else data[position : (position := position + (raw >> 1))]))
    return position


def _append_varint(out: bytearray, value: int) -> None:
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def _append_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # the varint of -1
    else:
        _append_varint(out, len(data))
        out += data
