"""Conversion of records to form fields and back, byte by byte where nothing was edited.

Text is only what a field gives back as it was: UTF-8 whose every character can be seen, or is a tab or a line feed, for browsers
write other line ends anew and drop a NUL. Everything else is in hexadecimal while it is short, and in base64.

Headers are a line each, ``NAME=VALUE``; a line without ``=`` is a header that is null. ``hex:`` and ``base64:`` stand before a
value of bytes. A name that is not plain is written as a string of JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .questions import WrongQuestionError
from .texts import plain

KINDS = ("text", "json", "hex", "base64", "null")
MOST_EDITED = 256 * 1024
"""Bytes of a key, a value or all headers that a form takes."""
_SHORT = 256
_PLAIN_NAME = re.compile(r"[^\s=\"](?:[^=\"\n]*[^\s=\"])?")
_QUOTED_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')
Header = tuple[str, bytes | None]


class RecordContent(NamedTuple):
    """Of a record, without what its log says of it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class TooLargeError(WrongQuestionError):
    """A form does not hold it."""


# --- into fields ------------------------------------------------------------------------------------------------------


def fields_of(content: RecordContent) -> dict[str, str]:
    """Raises TooLargeError."""
    sizes = (len(content.key or b""), len(content.value or b""), sum(len(data or b"") for _, data in content.headers))
    if max(sizes) > MOST_EDITED:
        raise TooLargeError(
            f"Records of more than {MOST_EDITED:,} bytes are not edited here; send them again as they are."
        )
    key_as, key = _shown(content.key)
    value_as, value = _shown(content.value)
    headers = "\n".join(_header_line(*header) for header in content.headers)
    return {"key_as": key_as, "key": key, "value_as": value_as, "value": value, "headers": headers}


def _shown(data: bytes | None) -> tuple[str, str]:
    if data is None:
        return "null", ""
    text = _text(data)
    if text is not None:
        return "text", text
    return ("hex", data.hex(" ")) if len(data) <= _SHORT else ("base64", base64.b64encode(data).decode())


def _text(data: bytes) -> str | None:
    """None where a field would not give it back."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if plain(text) == text else None


def _header_line(name: str, data: bytes | None) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and plain(name) == name
    written = name if is_plain else json.dumps(name)
    if data is None:
        return written
    text = _text(data)
    is_text = text is not None and "\n" not in text and not text.startswith(("hex:", "base64:"))
    return f"{written}={text if is_text else 'hex:' + data.hex()}"


# --- and back ---------------------------------------------------------------------------------------------------------


def content_of(fields: Mapping[str, str]) -> RecordContent:
    """Raises WrongQuestionError."""
    lines = [line for line in fields.get("headers", "").split("\n") if line.strip()]
    return RecordContent(
        _bytes(fields.get("key_as", "null"), fields.get("key", ""), "key"),
        _bytes(fields.get("value_as", "text"), fields.get("value", ""), "value"),
        tuple(map(_header, lines)),
    )


def _bytes(kind: str, text: str, what: str) -> bytes | None:
    if kind == "null":
        if text:
            raise WrongQuestionError(f"The {what} is null, but its field is not empty.", what)
        return None
    if kind in ("hex", "base64"):
        return _unwritten(kind, text, what, what)
    if kind not in KINDS:
        raise WrongQuestionError(f"The {what} is {', '.join(KINDS)}, not {kind}.", f"{what}_as")
    if kind == "json":
        try:
            json.loads(text, parse_int=str, parse_float=str)
        except (ValueError, RecursionError) as error:
            raise WrongQuestionError(f"The {what} is not JSON: {error}.", what) from None
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise WrongQuestionError(f"The {what} has half of a character.", what) from None


def _unwritten(kind: str, text: str, what: str, field: str) -> bytes:
    try:
        if kind == "hex":
            return bytes.fromhex(text)
        return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        known = "hexadecimal" if kind == "hex" else "base64"
        raise WrongQuestionError(f"The {what} is not {known}.", field) from None


def _header(line: str) -> Header:
    quoted = _QUOTED_NAME.match(line)
    if quoted is None:
        name, equals, text = line.partition("=")
    else:
        try:
            name = json.loads(quoted.group())
        except ValueError:
            raise WrongQuestionError(f"The header {line} has a name that is not a JSON string.", "headers") from None
        rest = line[quoted.end() :]
        equals, text = rest[:1], rest[1:]
        if equals not in ("", "="):
            raise WrongQuestionError(f"The header {line} has something other than = after its name.", "headers")
    if not equals:
        return name, None
    kind, colon, written = text.partition(":")
    if colon and kind in ("hex", "base64"):
        return name, _unwritten(kind, written, f"header {plain(name)}", "headers")
    return name, text.encode("utf-8", "replace")


# --- places of several ------------------------------------------------------------------------------------------------

MOST_PLACES = 500
_PLACE = re.compile(r"(\d{1,10}):(\d{1,19})")


class RecordPosition(NamedTuple):
    """Of a record in a topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


def places_of(texts: Sequence[str]) -> list[RecordPosition]:
    """Each once, in the order of partitions and offsets, so that records keep theirs. Raises WrongQuestionError."""
    found = set()
    for text in texts:
        match = _PLACE.fullmatch(text.strip())
        if match is None:
            raise WrongQuestionError(f"{text} is no PARTITION:OFFSET.")
        found.add(RecordPosition(int(match[1]), int(match[2])))
    if len(found) > MOST_PLACES:
        raise WrongQuestionError(f"At most {MOST_PLACES} records are sent again at a time.")
    return sorted(found)
