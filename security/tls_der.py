"""A minimal reader of DER elements (ITU-T X.690): tag, length and contents.

A client's certificate is read for each connection, after the TLS library has checked it; malformed data is a ValueError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

SEQUENCE = 0x30
SET = 0x31
OCTET_STRING = 0x04
OBJECT_IDENTIFIER = 0x06


class Element(NamedTuple):
    """One element."""

    tag: int
    contents: bytes
    """Without tag and length."""
    whole: bytes
    """With tag and length."""


def elements(data: bytes) -> Iterator[Element]:
    """The elements that follow each other in ``data``. Raises ValueError."""
    position = 0
    while position < len(data):
        start = position
        if len(data) - position < 2:
            raise ValueError("a DER element is cut short")
        tag, length = data[position], data[position + 1]
        position += 2
        if length > 0x80:
            size = length - 0x80
            length = int.from_bytes(data[position : position + size], "big")
            position += size
        elif length == 0x80:
            raise ValueError("a DER element has no length")
        end = position + length
        if end > len(data):
            raise ValueError("a DER element is cut short")
        yield Element(tag, data[position:end], data[start:end])
        position = end


def only(data: bytes, tag: int) -> bytes:
    """The contents of ``data``, which is one element with this tag. Raises ValueError."""
    found = list(elements(data))
    if len(found) != 1 or found[0].tag != tag:
        raise ValueError(f"not a DER element with tag {tag:#x}")
    return found[0].contents


def dotted(identifier: bytes) -> str:
    """An object identifier's contents as numbers: ``2.5.4.3``. Raises ValueError."""
    arcs: list[int] = []
    value = 0
    for byte in identifier:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            arcs.append(value)
            value = 0
    if not arcs or identifier[-1] >= 0x80:
        raise ValueError("not an object identifier")
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, [first, arcs[0] - 40 * first, *arcs[1:]]))
