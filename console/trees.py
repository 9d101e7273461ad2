"""Decoded record values of any format as trees, as of JSON, and their output as text.

Numbers keep their digits: one of JSON is a ``Number``, which is its own text, for a float would round it and reading a long one
takes quadratic time. Bytes stay bytes. What is nested deeper than ``MOST_DEPTH`` is no tree.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

MOST_DEPTH = 100
_SAFE = (1 << 53) - 1
"""Larger integers are rounded by JavaScript, and by whatever else takes all numbers for doubles."""
_MOST_DIGITS = 400


class Number(str):
    """A number as it was written."""

    __slots__ = ()


Tree: TypeAlias = "bool | int | float | Number | str | bytes | list[Any] | dict[str, Any] | None"


class DecodeError(Exception):
    """The bytes cannot be decoded as requested. ``str()`` is a sentence."""


class DuplicateNameError(ValueError):
    """An object of JSON has a name twice, which no tree can."""


def tree_of_json(text: str, *, is_strict: bool = False) -> Tree:
    """Of a name that an object has twice the last one counts or, when it is strict, DuplicateNameError. Raises DecodeError."""
    try:
        found: Tree = json.loads(
            text,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_no_constant,
            object_pairs_hook=_strictly if is_strict else None,
        )
    except DuplicateNameError:
        raise
    except ValueError as error:
        raise DecodeError(f"This is not JSON: {error}.") from None
    except RecursionError:
        raise DecodeError("This JSON is nested too deeply.") from None
    return found


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")


def _strictly(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise DuplicateNameError
    return made


def same_number(one: str, other: str) -> bool:
    """Whether two texts are the same number, to the last digit; very long ones are only when they are the same text."""
    if one == other:
        return True
    if len(one) > _MOST_DIGITS or len(other) > _MOST_DIGITS:
        return False
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:  # an exponent without measure
        return False


# --- writing ----------------------------------------------------------------------------------------------------------


def indented_tree(tree: Tree) -> str:
    """For people: an element a line, numbers with all of their digits, bytes in hexadecimal. Raises DecodeError."""
    return "".join(_pieces(tree, 0))


def _pieces(tree: Tree, depth: int) -> Iterator[str]:
    if depth > MOST_DEPTH:
        raise DecodeError(f"This is nested deeper than {MOST_DEPTH} levels.")
    if isinstance(tree, dict | list) and tree:
        inner = "\n" + "  " * (depth + 1)
        is_object = isinstance(tree, dict)
        yield "{" if is_object else "["
        for place, each in enumerate(tree):
            yield inner if place == 0 else "," + inner
            if isinstance(tree, dict):
                yield json.dumps(each, ensure_ascii=False) + ": "
                each = tree[each]
            yield from _pieces(each, depth + 1)
        yield "\n" + "  " * depth + ("}" if is_object else "]")
    elif isinstance(tree, Number):
        yield tree
    elif isinstance(tree, bytes):
        yield json.dumps("hex:" + tree.hex())
    elif isinstance(tree, float) and not math.isfinite(tree):
        yield json.dumps(str(tree))
    else:
        yield json.dumps(tree, ensure_ascii=False)


def safe_tree(tree: Tree, depth: int = 0) -> Any:
    """For ``json.dumps``: each number that a double would round is a string, bytes are base64. Raises DecodeError."""
    if depth > MOST_DEPTH:
        raise DecodeError(f"This is nested deeper than {MOST_DEPTH} levels.")
    if isinstance(tree, Number):
        return _safe_number(tree)
    if isinstance(tree, dict):
        return {name: safe_tree(each, depth + 1) for name, each in tree.items()}
    if isinstance(tree, list):
        return [safe_tree(each, depth + 1) for each in tree]
    if isinstance(tree, bytes):
        return base64.b64encode(tree).decode()
    if isinstance(tree, int) and not isinstance(tree, bool):
        return tree if abs(tree) <= _SAFE else str(tree)
    if isinstance(tree, float) and not math.isfinite(tree):
        return str(tree)
    return tree


def _safe_number(text: Number) -> int | float | str:
    if len(text) > 40:
        return str(text)
    if text.lstrip("-").isdigit():
        whole = int(text)
        return whole if abs(whole) <= _SAFE and text != "-0" else str(text)
    number = float(text)
    return number if math.isfinite(number) and same_number(repr(number), text) else str(text)
