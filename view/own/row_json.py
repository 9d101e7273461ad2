"""Rows as JSON and back: an object of the fields by their names; a row within a row is an object within it.

What is read came from another broker, maybe of another version: a field that is not known is passed over, and a value that is
not what its field says, or is missing, raises ValueError.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable
from typing import Any


def row_as_json(row: Any) -> bytes:
    """A row in UTF-8."""
    return _encode(_fields(row)).encode()


def _fields(row: Any) -> dict[str, Any]:
    row_class: Any = type(row)
    return {name: getattr(row, name) for name in _names(row_class)}


@functools.cache
def _names(row_class: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(row_class))


_encode = json.JSONEncoder(default=_fields, separators=(",", ":")).encode


def row_from_json(row_class: Any, told: bytes, broker: int) -> Any:
    """A row that a broker told, with the broker in it where its class has a field for that. Raises ValueError."""
    given = json.loads(told)
    if "broker" in _names(row_class) and isinstance(given, dict):
        given["broker"] = broker
    return _read_row(row_class, given)


def _read_row(row_class: Any, given: Any) -> Any:
    if not isinstance(given, dict):
        raise ValueError(f"{given!r:.50} is no {row_class.__name__}")
    try:
        return row_class(**{name: read(given[name]) for name, read in _readers(row_class).items()})
    except KeyError as error:
        raise ValueError(f"a {row_class.__name__} has a field {error}") from None


@functools.cache
def _readers(row_class: Any) -> dict[str, Callable[[Any], Any]]:
    hints = typing.get_type_hints(row_class)
    return {name: _reader(hints[name]) for name in _names(row_class)}


def _reader(hint: Any) -> Callable[[Any], Any]:
    """What makes of a JSON value one of the type."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (inner,) = (_reader(each) for each in arguments if each is not types.NoneType)
        return lambda value: None if value is None else inner(value)
    if typing.get_origin(hint) is tuple:
        each = _reader(arguments[0])
        return lambda value: tuple(map(each, _checked(value, list)))
    if dataclasses.is_dataclass(hint):
        return lambda value: _read_row(hint, value)
    if hint is float:
        return lambda value: float(value) if type(value) is int else _checked(value, float)
    return lambda value: _checked(value, hint)


def _checked(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r:.50} is no {kind.__name__}")
    return value
