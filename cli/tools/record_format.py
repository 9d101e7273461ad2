"""Records into bytes: values alone, a format string with kcat's letters, or JSON lines.

JSON has a record per line. Bytes that are not UTF-8 stand base64-encoded under ``key_base64``, ``value_base64``, so that
``ottla produce --json`` writes back just what was read.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from .running import UsageError

Formatter = Callable[[Any], bytes]
"""A ConsumerRecord into the bytes that are printed for it."""

_PIECE = re.compile(r"%(.)|\\x([0-9A-Fa-f]{2})|\\([nrt0\\])|([^%\\]+|[%\\])", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def value_line(record: Any) -> bytes:
    """The value and a line's end; a record without a value is an empty line."""
    return (record.value or b"") + b"\n"


def json_line(record: Any) -> bytes:
    """One JSON object and a line's end."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "LogAppendTime" if record.timestamp_type == 1 else "CreateTime",
        **_text_or_base64("key", record.key),
        **_text_or_base64("value", record.value),
        "headers": [{"key": name, **_text_or_base64("value", value)} for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _text_or_base64(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def template_formatter(template: str) -> Formatter:
    """A formatter for a format string. Raises UsageError for a letter that stands for nothing."""
    pieces: list[bytes | Formatter] = []
    for letter, code, escape, plain in _PIECE.findall(template):
        if letter:
            if letter not in _LETTERS:
                raise UsageError(f"--format knows no %{letter}, only {' '.join(f'%{known}' for known in _LETTERS)}")
            pieces.append(_LETTERS[letter])
        elif code:
            pieces.append(bytes([int(code, 16)]))
        else:
            pieces.append(_ESCAPES[escape] if escape else plain.encode())

    def render(record: Any) -> bytes:
        return b"".join(piece if isinstance(piece, bytes) else piece(record) for piece in pieces)

    return render


def _size(value: bytes | None) -> bytes:
    return b"-1" if value is None else b"%d" % len(value)


def _headers(record: Any) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in record.headers)


_LETTERS: dict[str, Formatter] = {
    "t": lambda record: bytes(record.topic, "utf-8"),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "k": lambda record: record.key or b"",
    "K": lambda record: _size(record.key),
    "s": lambda record: record.value or b"",
    "S": lambda record: _size(record.value),
    "T": lambda record: b"%d" % record.timestamp,
    "h": _headers,
    "%": lambda record: b"%",
}
