"""Parsing of lines into records: a value alone, key and value with a separator between, or a JSON object.

The JSON is what ``ottla consume --json`` prints. ``value`` and ``key`` are a string (UTF-8 on the wire), null, or any
other JSON, which is written as compact JSON; bytes that are not UTF-8 are ``value_base64``, ``key_base64``. Headers are a
list of objects with ``key`` and ``value`` (or ``value_base64``), or one object. What else is in the object (topic, offset)
is ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..running import ToolError


class InputRecord(NamedTuple):
    """What a client sends; None where it chooses."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def from_line(line: bytes, separator: bytes | None) -> InputRecord:
    """A line without its end. Raises ToolError when the separator is not in it."""
    if separator is None:
        return InputRecord(None, line)
    key, found, value = line.partition(separator)
    if not found:
        raise ToolError(f"no {separator.decode()!r} between key and value")
    return InputRecord(key, value)


def from_json(line: bytes) -> InputRecord:
    """A line that is a JSON object. Raises ToolError."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise ToolError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ToolError("not a JSON object")
    return InputRecord(
        _bytes(fields, "key"),
        _bytes(fields, "value"),
        _headers(fields.get("headers")),
        _integer(fields, "partition"),
        _integer(fields, "timestamp"),
    )


def _bytes(fields: Mapping[str, Any], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise ToolError(f"{name}_base64 is not base64") from None
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _integer(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ToolError(f"{name} is not a whole number from 0")
    return value


def _headers(given: Any) -> tuple[tuple[str, bytes | None], ...]:
    if given is None:
        return ()
    if isinstance(given, dict):
        given = [{"key": key, "value": value} for key, value in given.items()]
    if not isinstance(given, list) or not all(isinstance(h, dict) and isinstance(h.get("key"), str) for h in given):
        raise ToolError('headers are a list of {"key": …, "value": …}, or an object')
    return tuple((header["key"], _bytes(header, "value")) for header in given)
