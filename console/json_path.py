"""A filter by JSON path, for values that are JSON or are decoded to a similar tree.

::

    $.order.lines[0]['unit price'] = 12.50

A path begins with ``$``, the whole value; ``.name`` and ``['name']`` (or with double quotes; a backslash stands before a
quote and before itself) go into an object, ``[3]`` into an array, whose first element is 0. That is all: there are no
wildcards, no functions and no comparisons but one, so reading a path and following it take time linear in its length.

After ``=``, or ``==``, stands what is to be there: a scalar of JSON (``1.5``, ``true``, ``null``, ``"text"``), a string in
single quotes, or text as it is. A number equals one of the same value, whatever its digits: 1.50 is 1.5, and 64 bits are
compared as 64 bits. Text also equals a string that reads so: ``= 5`` finds 5 and "5". Without ``=`` it is enough that
something is there, be it null. Text as it is does not look like the rest of an expression (``=~``, ``&&``): that is refused,
for it would find nothing; in quotes it is text.
"""

from __future__ import annotations

import dataclasses
import json
import re

from .trees import Number, Tree, same_number

_MOST_STEPS = 100
_MOST_INDEX_DIGITS = 9
_NOTHING = object()
_JOINS = re.compile(r"&&|\|\|")
_ENDS_NAME = frozenset(".[]=\"'*?@(),:<>!&|{} \t\r\n")


class JsonPathError(ValueError):
    """The text is not a path. ``str()`` is a sentence that says where."""


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition on the value at a path."""

    steps: tuple[str | int, ...]
    """Names and indexes."""
    wanted: str | None
    """The text that the value must equal; None if it only has to exist."""
    scalar: object = _NOTHING
    """What ``wanted`` is in JSON, where it is a scalar."""

    def may_hold(self, data: bytes) -> bool:
        """Whether JSON with these bytes may meet it: cheaper than reading them, and no when a name is nowhere in them."""
        if b"\\" in data:  # names may be spelt with escapes
            return True
        return all(each.encode("utf-8", "surrogatepass") in data for each in self.steps if isinstance(each, str))

    def holds(self, tree: Tree) -> bool:
        """Whether what the path leads to is there, and equals."""
        found = _follow(tree, self.steps)
        if found is _NOTHING:
            return False
        return self.wanted is None or _equals(found, self.wanted, self.scalar)


def _follow(tree: object, steps: tuple[str | int, ...]) -> object:
    for step in steps:
        if isinstance(step, str):
            if not isinstance(tree, dict) or step not in tree:
                return _NOTHING
            tree = tree[step]
        elif isinstance(tree, list) and step < len(tree):
            tree = tree[step]
        else:
            return _NOTHING
    return tree


def _equals(found: object, wanted: str, scalar: object) -> bool:
    if found is None or isinstance(found, bool):
        return scalar is found
    if isinstance(found, Number | int | float):
        return isinstance(scalar, Number) and same_number(str(found), scalar)
    text = scalar if isinstance(scalar, str) and not isinstance(scalar, Number) else wanted
    if isinstance(found, str):
        return found in (wanted, text)
    if isinstance(found, bytes):
        return (
            found.hex() == wanted.removeprefix("hex:").lower()
            if wanted.startswith("hex:")
            else found == text.encode("utf-8", "surrogatepass")
        )
    return False


def _scalar(text: str) -> object:
    """What the text is in JSON; ``_NOTHING`` where it is no scalar."""
    if text[:1] in ("{", "["):
        return _NOTHING
    try:
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=lambda _: _NOTHING)
    except ValueError:
        return _NOTHING


# --- reading a path ---------------------------------------------------------------------------------------------------


def read_condition(text: str) -> Condition:
    """Raises JsonPathError."""
    steps, end = _read_steps(text)
    rest = text[end:].strip()
    if not rest:
        return Condition(steps, None)
    if not rest.startswith("="):
        raise _wrong(text, end, "a step (.name, ['name'] or [0]) or = should stand")
    start = text.index("=", end)
    start += 2 if text.startswith("==", start) else 1
    return Condition(steps, *_read_wanted(text, start))


def _read_wanted(text: str, start: int) -> tuple[str, object]:
    """What is to be there, as text, and as a scalar of JSON where it is one."""
    wanted = text[start:].strip()
    begins = len(text) - len(text[start:].lstrip())
    if not wanted:
        raise _wrong(text, len(text), 'a value should stand; the empty string is ""')
    if wanted.startswith("=") or text[start] in "~<>":
        raise _wrong(
            text, begins, "a value should stand: there is no comparison but = and ==, and such text is in quotes"
        )
    if wanted.startswith("'") and wanted.endswith("'") and len(wanted) > 1:
        inner, end = _read_quoted(text, begins + 1, "'")
        if rest := text[end:].lstrip():
            raise _wrong(text, len(text) - len(rest), "nothing should stand behind the value")
        return inner, inner
    scalar = _scalar(wanted)
    if not isinstance(scalar, str) and (join := _JOINS.search(text, begins)):
        raise _wrong(
            text, join.start(), "there is no && and no ||: a filter has one condition, and such text is in quotes"
        )
    return wanted, scalar


def _read_steps(text: str) -> tuple[tuple[str | int, ...], int]:
    """The steps, and where they end."""
    position = len(text) - len(text.lstrip())
    if text[position : position + 1] != "$":
        raise _wrong(text, position, "$, the whole value, should stand: a path is like $.a.b[0]['c d']")
    position += 1
    steps: list[str | int] = []
    while position < len(text) and text[position] in ".[":
        if len(steps) == _MOST_STEPS:
            raise _wrong(text, position, f"there are more than {_MOST_STEPS} steps")
        step, position = _read_name(text, position + 1) if text[position] == "." else _read_bracket(text, position + 1)
        steps.append(step)
    return tuple(steps), position


def _read_name(text: str, start: int) -> tuple[str, int]:
    end = start
    while end < len(text) and text[end] not in _ENDS_NAME:
        end += 1
    if end == start:
        raise _wrong(
            text, start, "a name should stand; one with other signs than letters and digits is ['such a name']"
        )
    return text[start:end], end


def _read_bracket(text: str, start: int) -> tuple[str | int, int]:
    step: str | int
    quote = text[start : start + 1]
    if quote and quote in "'\"":
        step, end = _read_quoted(text, start + 1, quote)
    else:
        end = start
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if not 0 < end - start <= _MOST_INDEX_DIGITS:
            raise _wrong(text, start, "a number from 0 on or a name in quotes should stand")
        step = int(text[start:end])
    if text[end : end + 1] != "]":
        raise _wrong(text, end, "] should stand")
    return step, end + 1


def _read_quoted(text: str, start: int, quote: str) -> tuple[str, int]:
    parts: list[str] = []
    position = start
    while position < len(text):
        character = text[position]
        if character == quote:
            return "".join(parts), position + 1
        if character == "\\":
            position += 1
            character = text[position : position + 1]
            if character not in ("'", '"', "\\"):
                raise _wrong(text, position, "a quote or a backslash should stand after a backslash")
        parts.append(character)
        position += 1
    raise _wrong(text, position, f"{quote} should end the name")


def _wrong(text: str, position: int, why: str) -> JsonPathError:
    place = f"at character {position + 1}" if position < len(text) else "at the end"
    return JsonPathError(f"{text} is not a JSON path: {place} {why}.")
