r"""Format strings for records: kcat's letters with kcat's meaning, and what rpk has beside them.

========================  =====================================================================
``%t %p %o``              topic, partition, offset
``%k %s``                 key, value (rpk's ``%v`` is the value, too)
``%K %S``                 their sizes in bytes, -1 for null (and rpk's ``%V``); ``%R`` the value's, four bytes
``%T``                    timestamp in milliseconds since 1970 (and rpk's ``%d``)
``%h``                    headers, ``name=value`` with commas between; ``%h{%k=%v }`` each in that format
``%H %e %i``              number of headers, leader epoch, number of records printed so far with this one
``%c``                    of a share group: how often the record was delivered, with this time
``%% %{ %}``              the characters themselves
========================  =====================================================================

Braces behind a letter change how it is printed: text ``{hex}``, ``{base64}``, ``{base64raw}``; numbers ``{ascii}``,
``{hex8}`` to ``{hex64}``, ``{big8}`` to ``{big64}``, ``{little8}`` to ``{little64}``, ``{byte}``, ``{bool}``; the timestamp
``{strftime[%F %T]}`` in UTC. Outside of letters ``\n \r \t \0 \\ \xNN`` stand for bytes, and another character behind a
backslash for itself.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..running import UsageError

Formatter = Callable[[Any], bytes]
"""A ConsumerRecord into the bytes that are printed for it."""

_PIECE = re.compile(r"%(.)(\{)?|\\x([0-9A-Fa-f]{2})|\\(.)|([^%\\]+|\\)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0"}
_LITERALS = {"%": b"%", "{": b"{", "}": b"}"}
_NUMBER = re.compile(r"(hex|big|little)(8|16|32|64)")
_STRFTIME = re.compile(r"strftime(#*)\[(.*)\](#*)", re.DOTALL)
_UNTOLD = {"a": "the attributes", "x": "the producer id", "y": "the producer epoch", "[": "the log's start"}
_UNTOLD |= {"|": "the last stable offset", "]": "the high watermark"}

_TEXTS: dict[str, Callable[[Any], bytes | None]] = {
    "t": lambda record: record.topic.encode(),
    "k": lambda record: record.key,
    "s": lambda record: record.value,
    "v": lambda record: record.value,
}
_NUMBERS: dict[str, Callable[[Any], int]] = {
    "p": lambda record: record.partition,
    "o": lambda record: record.offset,
    "K": lambda record: _size(record.key),
    "S": lambda record: _size(record.value),
    "V": lambda record: _size(record.value),
    "T": lambda record: record.timestamp,
    "d": lambda record: record.timestamp,
    "H": lambda record: len(record.headers),
    "e": lambda record: -1 if record.leader_epoch is None else record.leader_epoch,
    "c": lambda record: record.delivery_count,
}
_TIMES = "Td"
SHARE_LETTERS = "".join((*_TEXTS, *_NUMBERS, "Rhi%{}"))
"""Of a record that a share group has delivered."""
LETTERS = SHARE_LETTERS.replace("c", "")


class _Header:
    """A header where a format of its own is applied to it: it has a key and a value, and nothing else."""

    def __init__(self, name: str, value: bytes | None) -> None:
        self.key: bytes | None = name.encode()
        self.value = value


def template_formatter(template: str, null: bytes = b"", letters: str = LETTERS) -> Formatter:
    """A formatter for a format string; keys and values that are null print as ``null``. Raises UsageError."""
    pieces = list(_pieces(template, null, letters))

    def render(record: Any) -> bytes:
        return b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])

    return render


def _pieces(template: str, null: bytes, letters: str) -> Iterator[bytes | Formatter]:
    """What stands between the letters as bytes, and the letters as functions of a record."""
    at = 0
    while at < len(template):
        found = _PIECE.match(template, at)
        if found is None:
            raise UsageError("--format ends in a % without a letter")
        at = found.end()
        letter, brace, code, escape, plain = found.groups()
        if letter in _LITERALS:
            at = found.end(1)  # a brace behind is one
            yield _LITERALS[letter]
        elif letter:
            modifier = None
            if brace:
                end = _closing(template, at)
                modifier, at = template[at:end], end + 1
            yield _letter(letter, modifier, null, letters)
        elif code:
            yield bytes([int(code, 16)])
        else:
            yield _ESCAPES.get(escape, escape.encode()) if escape else plain.encode()


def _closing(template: str, at: int) -> int:
    """Where the brace ends that has begun before ``at``; there may be others in it."""
    depth = 1
    while at < len(template):
        if template[at] == "%" and template[at + 1 : at + 2] in ("{", "}"):
            at += 2
            continue
        depth += {"{": 1, "}": -1}.get(template[at], 0)
        if depth == 0:
            return at
        at += 1
    raise UsageError("--format has a { behind a letter, and no } after it; %{ is the character")


def _letter(letter: str, modifier: str | None, null: bytes, letters: str) -> Formatter:
    if letter in _UNTOLD:
        raise UsageError(f"--format: %{letter} would be {_UNTOLD[letter]}, which the client does not report")
    if letter == "c" and letter not in letters:
        raise UsageError("--format: %c would be the delivery count, which records have that come by --share")
    if letter not in letters:
        raise UsageError(f"--format knows no %{letter}, only {' '.join(f'%{known}' for known in letters)}")
    if letter in _TEXTS:
        return _text(_TEXTS[letter], letter, modifier, null)
    if letter in _NUMBERS:
        return _number(_NUMBERS[letter], letter, modifier)
    if letter == "h":
        return _headers if modifier is None else _each_header(modifier, null)
    if letter == "i":
        return _number(_Counter(), letter, modifier)
    assert letter == "R"
    return lambda record: _size(record.value).to_bytes(4, "big", signed=True)


def _text(get: Callable[[Any], bytes | None], letter: str, modifier: str | None, null: bytes) -> Formatter:
    encoders: dict[str | None, Callable[[bytes], bytes]] = {
        None: bytes,
        "hex": lambda value: value.hex().encode(),
        "base64": base64.b64encode,
        "base64raw": lambda value: base64.b64encode(value).rstrip(b"="),
    }
    encode = encoders.get(modifier)
    if encode is None:
        raise _unknown(letter, modifier, "hex, base64 and base64raw")

    def render(record: Any) -> bytes:
        value = get(record)
        return null if value is None else encode(value)

    return render


def _number(get: Callable[[Any], int], letter: str, modifier: str | None) -> Formatter:
    if letter in _TIMES and modifier and (form := _STRFTIME.fullmatch(modifier)):
        text = form[2]
        return lambda record: _utc(get(record)).strftime(text).encode()
    encode = _number_encoder(modifier)
    if encode is None:
        times = ", and strftime[…] for times" if letter in _TIMES else ""
        raise _unknown(letter, modifier, f"ascii, hex8, big8 and little8 (16, 32, 64), byte and bool{times}")
    return lambda record: encode(get(record))


def _number_encoder(modifier: str | None) -> Callable[[int], bytes] | None:
    if modifier in (None, "ascii"):
        return lambda number: b"%d" % number
    if modifier == "bool":
        return lambda number: b"true" if number else b"false"
    if modifier == "byte":
        return lambda number: bytes([number & 0xFF])
    form = _NUMBER.fullmatch(modifier or "")
    if form is None:
        return None
    bits = int(form[2])
    mask = (1 << bits) - 1
    if form[1] == "hex":
        return lambda number: b"%0*x" % (bits // 4, number & mask)
    if form[1] == "big":
        return lambda number: (number & mask).to_bytes(bits // 8, "big")
    return lambda number: (number & mask).to_bytes(bits // 8, "little")


def _unknown(letter: str, modifier: str | None, known: str) -> UsageError:
    return UsageError(f"--format: %{letter} knows no {{{modifier}}}, only {known}; %{{ is the character")


def _utc(time_ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(time_ms / 1000, datetime.UTC)


def _size(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def _headers(record: Any) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers)


def _each_header(template: str, null: bytes) -> Formatter:
    pieces = list(_pieces(template, null, "kKsSvVR%{}"))

    def render(record: Any) -> bytes:
        headers = [_Header(name, value) for name, value in record.headers]
        return b"".join([piece if isinstance(piece, bytes) else piece(h) for h in headers for piece in pieces])

    return render


class _Counter:
    """How many records were printed, with the one that is being printed."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, record: Any) -> int:
        self._count += 1
        return self._count
