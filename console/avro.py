"""A decoder of Avro's binary encoding, within limits (https://avro.apache.org/docs/1.12.0/specification/).

fastavro reads the schema: names, namespaces and what may stand where. The data is read here, because a record may come
from anyone: eight bytes can announce an array of 2^62 nulls, and a schema that names itself lets a megabyte be nested a
million deep, of which the first holds fastavro's reader up for ever and the second ends the process. Here an item more
than ``_MOST_ITEMS`` and a level more than ``MOST_DEPTH`` are errors like any other.

The writer's schema is the only one: nothing is resolved to another. A union's value stands as it is, without its branch;
dates and times are text in UTC, decimals are numbers, an enum is its symbol.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from struct import Struct
from typing import Any

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from .trees import MOST_DEPTH, DecodeError, Number, Tree

_MOST_ITEMS = 200_000
_MOST_DECIMAL_BYTES = 64
_FLOAT = Struct("<f")
_DOUBLE = Struct("<d")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SchemaError(Exception):
    """The schema is not valid. ``str()`` is a sentence."""


class _Cursor:
    """A position in the data being read."""

    __slots__ = ("data", "depth", "items", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.depth = 0
        """The number of levels that are open."""
        self.items = 0
        """The number of values read so far, which is bounded."""

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise DecodeError(f"At byte {self.position} {count} bytes are expected, and the record has fewer.")
        found = self.data[self.position : end]
        self.position = end
        return found

    def long(self) -> int:
        """Zigzag, seven bits a byte, low bits first."""
        data, position, raw = self.data, self.position, 0
        for shift in range(0, 70, 7):
            if position >= len(data):
                raise DecodeError("The record ends within a number.")
            byte = data[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.position = position
                return (raw >> 1) ^ -(raw & 1)
        raise DecodeError(f"The number at byte {self.position} is longer than 64 bits.")

    def count_items(self, count: int) -> None:
        self.items += count
        if self.items > _MOST_ITEMS:
            raise DecodeError(f"There are more than {_MOST_ITEMS:,} values in it.")


_Read = Callable[[_Cursor], Tree]


class AvroSchema:
    """A schema, ready to read data that was written with it."""

    def __init__(self, text: str) -> None:
        """Raises SchemaError."""
        named: dict[str, Any] = {}
        try:
            parsed = parse_schema(json.loads(text), named_schemas=named, _write_hint=False)
            self._read = _reader(parsed, {})
        except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SchemaError(f"The Avro schema is none: {type(error).__name__}: {error}.") from None
        except RecursionError:
            raise SchemaError("The Avro schema is nested too deeply.") from None

    def read(self, data: bytes) -> Tree:
        """Raises DecodeError, also where something follows the value."""
        cursor = _Cursor(data)
        found = self._read(cursor)
        if cursor.position != len(data):
            raise DecodeError(f"{len(data) - cursor.position} bytes follow the value that the Avro schema describes.")
        return found


# --- one reader for each schema ---------------------------------------------------------------------------------------


def _reader(schema: Any, named: dict[str, _Read]) -> _Read:
    """``schema`` is as fastavro gives it: names are full, and stand for what was said before."""
    if isinstance(schema, list):
        return _union([_reader(branch, named) for branch in schema])
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        return lambda cursor: named[schema](cursor)  # which may be under way: a record can have itself in it
    kind = schema["type"]
    if kind in ("record", "error"):
        return _record(schema, named)
    if kind == "enum":
        named[schema["name"]] = made = _enum(schema["symbols"])
    elif kind == "fixed":
        size = schema["size"]
        named[schema["name"]] = made = _logical(schema, lambda cursor: cursor.take(size))
    elif kind == "array":
        made = _array(_reader(schema["items"], named))
    elif kind == "map":
        made = _map(_reader(schema["values"], named))
    else:
        made = _logical(schema, _reader(kind, named))
    return made


def _nested(read: _Read) -> _Read:
    def nested(cursor: _Cursor) -> Tree:
        cursor.depth += 1
        if cursor.depth > MOST_DEPTH:
            raise DecodeError(f"This is nested deeper than {MOST_DEPTH} levels.")
        found = read(cursor)
        cursor.depth -= 1
        return found

    return nested


def _record(schema: Any, named: dict[str, _Read]) -> _Read:
    fields: list[tuple[str, _Read]] = []

    def read(cursor: _Cursor) -> Tree:
        cursor.count_items(1 + len(fields))
        return {name: field(cursor) for name, field in fields}

    named[schema["name"]] = made = _nested(read)
    fields += [(field["name"], _reader(field["type"], named)) for field in schema["fields"]]
    return made


def _union(branches: list[_Read]) -> _Read:
    def read(cursor: _Cursor) -> Tree:
        chosen = cursor.long()
        if not 0 <= chosen < len(branches):
            raise DecodeError(f"There is no branch {chosen} in a union of {len(branches)}.")
        return branches[chosen](cursor)

    return _nested(read)


def _enum(symbols: list[str]) -> _Read:
    def read(cursor: _Cursor) -> Tree:
        chosen = cursor.long()
        if not 0 <= chosen < len(symbols):
            raise DecodeError(f"There is no symbol {chosen} in an enum of {len(symbols)}.")
        return symbols[chosen]

    return read


def _blocks(cursor: _Cursor, read_one: Callable[[_Cursor], None]) -> None:
    """Of an array or a map: blocks of a count and so many items; after a negative count their size in bytes stands."""
    while count := cursor.long():
        if count < 0:
            count = -count
            cursor.long()
        for _ in range(count):
            cursor.count_items(1)
            read_one(cursor)


def _array(item: _Read) -> _Read:
    def read(cursor: _Cursor) -> Tree:
        found: list[Tree] = []
        _blocks(cursor, lambda cursor: found.append(item(cursor)))
        return found

    return _nested(read)


def _map(value: _Read) -> _Read:
    def read(cursor: _Cursor) -> Tree:
        found: dict[str, Tree] = {}

        def read_one(cursor: _Cursor) -> None:
            name = _string(cursor)
            found[name] = value(cursor)

        _blocks(cursor, read_one)
        return found

    return _nested(read)


def _string(cursor: _Cursor) -> str:
    data = cursor.take(cursor.long())
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DecodeError(f"The string that ends at byte {cursor.position} is not UTF-8.") from None


def _boolean(cursor: _Cursor) -> Tree:
    byte = cursor.take(1)[0]
    if byte > 1:
        raise DecodeError(f"The boolean at byte {cursor.position - 1} is {byte}.")
    return byte == 1


_PRIMITIVES: dict[str, _Read] = {
    "null": lambda cursor: None,
    "boolean": _boolean,
    "int": _Cursor.long,
    "long": _Cursor.long,
    "float": lambda cursor: float(_FLOAT.unpack(cursor.take(4))[0]),
    "double": lambda cursor: float(_DOUBLE.unpack(cursor.take(8))[0]),
    "bytes": lambda cursor: cursor.take(cursor.long()),
    "string": _string,
}


# --- logical types ----------------------------------------------------------------------------------------------------


def _logical(schema: Any, read: _Read) -> _Read:
    """What its logical type makes of a value; one that is not known, or a value that is out of its range, stays as it is."""
    kind = schema.get("logicalType")
    if kind == "decimal":
        return lambda cursor: _decimal(read(cursor), int(schema.get("scale", 0)))
    make = _LOGICAL.get(kind)
    return read if make is None else lambda cursor: _made(make, read(cursor))


def _made(make: Callable[[int], str], found: Tree) -> Tree:
    try:
        return make(found) if isinstance(found, int) else found
    except (OverflowError, ValueError):
        return found


def _decimal(found: Tree, scale: int) -> Tree:
    if not isinstance(found, bytes) or len(found) > _MOST_DECIMAL_BYTES:
        return found
    unscaled = int.from_bytes(found, "big", signed=True)
    return Number(f"{Decimal(unscaled).scaleb(-scale, Context(prec=200)):f}")


def _moment(value: timedelta) -> str:
    return (_EPOCH + value).isoformat().replace("+00:00", "Z")


def _local(value: timedelta) -> str:
    return (_EPOCH + value).replace(tzinfo=None).isoformat()


def _time(value: timedelta) -> str:
    if not timedelta() <= value < timedelta(days=1):
        raise ValueError
    return ((_EPOCH + value).time() if value else time()).isoformat()


_LOGICAL: dict[str, Callable[[int], str]] = {
    "date": lambda value: (date(1970, 1, 1) + timedelta(days=value)).isoformat(),
    "time-millis": lambda value: _time(timedelta(milliseconds=value)),
    "time-micros": lambda value: _time(timedelta(microseconds=value)),
    "timestamp-millis": lambda value: _moment(timedelta(milliseconds=value)),
    "timestamp-micros": lambda value: _moment(timedelta(microseconds=value)),
    "local-timestamp-millis": lambda value: _local(timedelta(milliseconds=value)),
    "local-timestamp-micros": lambda value: _local(timedelta(microseconds=value)),
}
