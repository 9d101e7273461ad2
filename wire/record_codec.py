"""Encoding and decoding of the uncompressed records in a batch (message format v2).

A record is ``length`` varint (of all that follows), ``attributes`` int8 (unused), ``timestamp_delta`` varlong and
``offset_delta`` varint (against the batch's base timestamp and base offset), key and value (each a varint length, -1
for null, and the bytes), then a varint count of headers, each a key (never null, UTF-8) and a value (may be null).

Records come in pieces, as a codec makes them, because a few compressed bytes can hold millions of records: what reads them holds
one piece and one record at a time. ``iter_records`` makes an object of each; ``rest_after`` only counts.

Varints are zigzag encoded: 0, -1, 1, -2 … are 0, 1, 2, 3 …, seven bits a byte, low bits first. Reading is the hot loop
of everything that looks into batches, so varints of one and two bytes are read in line. A header key that is not UTF-8
is kept with surrogate escapes, so that a rewritten record has the same bytes. Timestamps wrap at 64 bits, as Java's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..base.errors import ErrorCode, KafkaError

Headers = list[tuple[str, bytes | None]]

_MAX_UINT32 = (1 << 32) - 1
_MAX_UINT64 = (1 << 64) - 1
_SIGN_BIT = 1 << 63


@dataclass(slots=True)
class Record:
    """One record."""

    offset: int = -1
    """-1 for the offset after the record before (``RecordsBuilder``)."""
    timestamp: int = -1
    """In ms; -1 for none."""
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = field(default_factory=list)
    attributes: int = 0


def iter_records(
    pieces: Iterable[bytes],
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    largest: int | None = None,
) -> Iterator[Record]:
    """Yield the ``count`` records that fill ``pieces``; with ``append_time`` (ms) all of them have that timestamp.

    A record may begin in one piece and end in another. KafkaError: INVALID_RECORD where the bytes are malformed, after the
    records before that place; MESSAGE_TOO_LARGE for such a record with more than ``largest`` bytes.
    """
    source = iter(pieces)
    data = next(source, b"")
    while True:
        count, start, size = yield from _whole_records(data, count, base_offset, base_timestamp, append_time)
        if not count:
            break
        if largest is not None and size > largest:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"a record has {size} bytes, and may have {largest}")
        data = _extended(data[start:], size, source)
    if start != len(data) or any(source):  # empty pieces may follow
        raise _invalid("there are more than the batch says")


def last_offset_delta(data: bytes, count: int) -> int:
    """The offset delta of the last of the ``count`` records that fill ``data``; the others are found by their lengths alone.

    KafkaError(INVALID_RECORD) where their lengths do not fill ``data``, or the last one is malformed.
    """
    left, start = _pass_lengths(data, count - 1, 0) if count > 1 else (0, 0)
    if left or start >= len(data):
        raise _invalid("they end early")
    (last,) = iter_records((data[start:] if start else data,), 1, 0, 0, None)
    return last.offset


def rest_after(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Yield what follows the first ``count`` records, which are found by their lengths alone, in a tenth of the time.

    KafkaError(INVALID_RECORD) where the bytes end before that, or a length is not possible.
    """
    source = iter(pieces)
    data = next(source, b"")
    start = 0
    while True:
        count, start = _pass_lengths(data, count, start)
        if start > len(data):
            while start > len(data):  # what lies in between is not kept
                start -= len(data)
                data = _extended(b"", 0, source)
        elif count:
            data, start = _extended(data[start:], 0, source), 0
        else:
            break
    yield data[start:]
    yield from source


def _pass_lengths(data: bytes, count: int, position: int) -> tuple[int, int]:
    """Pass records from ``position`` on: how many are left, and where the next one begins, which may be behind the end."""
    passed = 0
    try:
        for passed in range(count):  # noqa: B007
            # ``position`` moves once the length is read as a whole, so it is right where that fails at the end.
            if (raw := data[position]) < 0x80:
                position += (raw >> 1) + 1
            elif (high := data[position + 1]) < 0x80:
                raw += (high << 7) - 0x80
                position += (raw >> 1) + 2
            else:
                raw, end = _read_varint(data, position, _MAX_UINT32)
                position = end + (raw >> 1)
            if raw & 1:
                raise _invalid("one has a negative length")
    except IndexError:
        return count - passed, position
    return 0, position


def _extended(rest: bytes, size: int, source: Iterator[bytes]) -> bytes:
    """``rest`` and the pieces that make it longer, to ``size`` bytes at least. KafkaError where there are not so many."""
    parts = [rest]
    missing = max(size - len(rest), 1)  # one piece more where the size is not known
    while missing > 0:
        piece = next(source, None)
        if piece is None:
            raise _invalid("one is longer than the batch" if size else "they end early")
        parts.append(piece)
        missing -= len(piece)
    return b"".join(parts)


def _whole_records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> Generator[Record, None, tuple[int, int, int]]:
    """Yield the records that ``data`` has whole, at most ``count``.

    Returns how many are left, where the next one begins, and its size in bytes, 0 where ``data`` does not have that.
    """
    start = position = record_end = found = 0
    end = len(data)
    try:
        for found in range(count):
            start = position
            if (raw := data[position]) < 0x80:
                position += 1
            elif (high := data[position + 1]) < 0x80:
                raw += (high << 7) - 0x80
                position += 2
            else:
                raw, position = _read_varint(data, position, _MAX_UINT32)
            record_end = position + (raw >> 1)
            if raw & 1:
                raise _invalid("one has a negative length")
            if record_end > end:
                return count - found, start, record_end - start
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
            position = _read_headers(data, position, headers) if data[position] else position + 1
            if position != record_end:
                raise _invalid("the fields of one do not fill its length")
            if append_time is not None or not -_SIGN_BIT <= timestamp < _SIGN_BIT:
                timestamp = _wrap(timestamp) if append_time is None else append_time
            yield Record(offset, timestamp, key, value, headers, attributes)
    except IndexError:
        if start < record_end:  # the record is there as a whole, so it is its fields that end behind it
            raise _invalid("the fields of one do not fill its length") from None
        return count - found, start, 0
    return 0, position, 0


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
