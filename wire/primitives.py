"""Functions that compiled codecs call in uncommon cases: long varints, tagged fields, errors.

Unsigned varints carry seven bits a byte, the lowest first; the protocol never uses more than five bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..base.errors import ProtocolError

if TYPE_CHECKING:
    from .schema import RawTaggedFields

_INT32_MAX = 0x7FFFFFFF
SHORT_VARINTS = tuple(bytes((value,)) for value in range(128))
"""The varints of one byte, by value."""

LONGEST_STRING = 0x7FFF
"""In bytes: what older versions can encode. Newer ones could encode more, but must not, as in Kafka's generated readers."""

MOST_UNKNOWN_TAGS = 1000
"""Of one struct. Kafka accepts any number; but they cost the broker more than the client, which may not be authenticated yet."""

EMPTY_TAG_SECTION = b"\x00"


def read_uvarint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """The unsigned varint at ``position`` and the position after it. IndexError past the end."""
    value = 0
    for shift in range(0, 35, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > _INT32_MAX:
                raise ProtocolError(f"varint {value} does not fit 31 bits")
            return value, position
    raise ProtocolError("varint longer than five bytes")


def write_uvarint(value: int) -> bytes:
    """``value`` >= 0 as an unsigned varint."""
    if value < 128:
        return SHORT_VARINTS[value]
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_unknown_tags(buffer: bytes | memoryview, position: int, count: int, size: int) -> tuple[RawTaggedFields, int]:
    """``count`` tagged fields of a struct that declares none, and the position after them."""
    if count > MOST_UNKNOWN_TAGS:
        refuse_tags(count)
    found = []
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        length, position = read_uvarint(buffer, position)
        end = position + length
        if end > size:
            refuse_length("tagged field", length, size - position)
        found.append((tag, bytes(buffer[position:end])))
        position = end
    check_tags(found)
    return tuple(found), position


def check_tags(fields: Sequence[tuple[int, bytes]]) -> None:
    """Raise ProtocolError for a tag that occurs twice. The fields may have any order, as in Kafka."""
    if len({tag for tag, _ in fields}) != len(fields):
        raise ProtocolError("a tagged field occurs twice")


def write_tags(fields: list[tuple[int, bytes]]) -> bytes:
    """A tag section of known and unknown fields, in ascending order. ValueError when a tag comes twice."""
    fields.sort(key=lambda entry: entry[0])
    out = [write_uvarint(len(fields))]
    last = -1
    for tag, value in fields:
        if tag <= last:
            raise ValueError(f"tag {tag} is negative or occurs twice")
        last = tag
        out += write_uvarint(tag), write_uvarint(len(value)), value
    return b"".join(out)


def data_size(data: Any) -> int:
    """The size of a records field in bytes: a bytes-like object or a file slice."""
    return len(data) if isinstance(data, bytes | bytearray) else data.nbytes


def refuse_length(label: str, length: int, available: int) -> NoReturn:
    """Raise ProtocolError for an impossible length or count."""
    if length < 0:
        raise ProtocolError(f"{label} must not be null")
    raise ProtocolError(f"{label} announces {length}, but {available} bytes are left")


def refuse_elements(most: int) -> NoReturn:
    """Raise ProtocolError for more elements than a message may have."""
    raise ProtocolError(f"the arrays of the message have more than {most} elements")


def refuse_string(label: str, length: int) -> NoReturn:
    """Raise ProtocolError for a string that is longer than is allowed."""
    raise ProtocolError(f"{label} has {length} bytes, and a string {LONGEST_STRING} at most")


def refuse_tags(count: int) -> NoReturn:
    """Raise ProtocolError for a struct with more tagged fields than are allowed."""
    raise ProtocolError(f"a struct has {count} tagged fields, more than {MOST_UNKNOWN_TAGS}")


def refuse_tag(label: str, tag: int, surplus: int) -> NoReturn:
    """Raise ProtocolError for a known tagged field whose value does not have the announced size."""
    raise ProtocolError(f"tagged field {tag} of {label} is {surplus} bytes longer than it says")


def refuse_value(label: str, version: int) -> NoReturn:
    """Raise ValueError for a value that this version cannot carry."""
    raise ValueError(f"{label} is set, but version {version} does not have it")
