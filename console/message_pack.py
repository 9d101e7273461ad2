"""Decoding of MessagePack into trees, by msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md).

That takes no size on trust: what an array or a map announces is at most as long as the data, and it is nested 1,000
levels at most, of which ``trees`` takes fewer. Names of a map that are no strings are written as JSON; a time is text in
UTC.
"""

from __future__ import annotations

import json
from typing import Any

import msgpack

from .trees import MOST_DEPTH, DecodeError, Number, Tree

_TIME = -1


class _Pairs(list[tuple[Any, Any]]):
    """A map, whose names need not be what a dictionary takes."""


def read_message_pack(data: bytes) -> Tree:
    """Raises DecodeError."""
    try:
        found = msgpack.unpackb(
            data,
            raw=False,
            strict_map_key=False,
            object_pairs_hook=_Pairs,
            ext_hook=_Extension,
            unicode_errors="strict",
        )
    except (
        ValueError,
        msgpack.UnpackException,
        RecursionError,
        OverflowError,
    ) as error:  # its own are ValueErrors, most of them
        why = str(error) or type(error).__name__
        raise DecodeError(f"This is not MessagePack: {why}.") from None
    return _tree(found, 0)


class _Extension:
    """A type of an application's own."""

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def _tree(found: Any, depth: int) -> Tree:
    if depth > MOST_DEPTH:
        raise DecodeError(f"This is nested deeper than {MOST_DEPTH} levels.")
    if isinstance(found, _Pairs):
        return {_name(name, depth): _tree(each, depth + 1) for name, each in found}
    if isinstance(found, list):
        return [_tree(each, depth + 1) for each in found]
    if isinstance(found, _Extension):
        return {"extension": found.code, "data": found.data}
    if isinstance(found, msgpack.Timestamp):
        try:
            return str(found.to_datetime().isoformat().replace("+00:00", "Z"))
        except (OverflowError, ValueError):
            return Number(f"{found.seconds}.{found.nanoseconds:09}")
    if found is None or isinstance(found, bool | int | float | str | bytes):
        return found
    raise DecodeError(f"This has a {type(found).__name__} in it, which cannot be shown.")


def _name(found: Any, depth: int) -> str:
    if isinstance(found, str):
        return found
    tree = _tree(found, depth + 1)
    if isinstance(tree, bytes):
        return "hex:" + tree.hex()
    return json.dumps(tree, default=lambda value: "hex:" + value.hex() if isinstance(value, bytes) else str(value))
