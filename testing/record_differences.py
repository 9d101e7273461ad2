"""A description of how the records of a topic differ from those that a test expects.

Lines begin like those of ``diff``: ``-`` is expected and missing, ``+`` is found and not expected. A line with ``?`` says where
these two differ.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any

from ..base.wording import counted
from .expected_records import ANYTHING, Expected, ExpectedRecord, Step, aligned, as_record, fits, is_json, matched
from .records import KafkaRecord

__tracebackhide__ = True  # a failure points at the caller's line

_MOST_LINES = 40
_MOST_SIGNS = 160
_BEFORE, _AFTER = 10, 30
"""The number of bytes that are printed around the first one that differs."""


def check_records(
    read: Callable[[int], Sequence[KafkaRecord]], topic: str, expected: Sequence[Expected], in_order: bool | None
) -> None:
    """Compare the records that ``read`` returns; its argument is the number to wait for.

    Raises AssertionError with the difference.
    """
    late = ""
    try:
        found = read(len(expected))
    except TimeoutError as error:
        found, late = read(0), f"{error}\n"
    text = difference(topic, found, expected, in_order)
    if text:
        raise AssertionError(late + text)


def difference(topic: str, found: Sequence[KafkaRecord], expected: Sequence[Expected], in_order: bool | None) -> str:
    """A description of how ``found`` differs from ``expected``; empty if it does not.

    ``in_order`` None: only if all records are in one partition. Raises TypeError for a tuple that is not a pair.
    """
    wanted = [as_record(each) for each in expected]
    ordered = len({record.partition for record in found}) < 2 if in_order is None else in_order
    steps = aligned(wanted, found) if ordered else matched(wanted, found)
    if all(None not in step for step in steps):
        return ""
    order = "in this order" if ordered else "in any order"
    title = f"{topic} has {counted(len(found), 'record')}, not the {len(wanted)} expected {order}:"
    lines = [line for is_pair, run in groupby(steps, lambda step: None not in step) for line in _lines(is_pair, [*run])]
    cut = len(lines) - _MOST_LINES
    return "\n".join([title, *lines[:_MOST_LINES], *([f"… {counted(cut, 'line')} more"] if cut > 0 else [])])


def _lines(is_pair: bool, run: Sequence[Step]) -> Iterator[str]:
    """Of steps one after the other, either all equal pairs or none."""
    if is_pair:
        yield f"  {counted(len(run), 'record')} as expected"
        return
    missing = [step.expected for step in run if step.expected is not None]
    others = [step.found for step in run if step.found is not None]
    for expected, found in zip_longest(missing, others):
        if expected is not None:
            yield f"- {_of_expected(expected)}"
        if found is not None:
            yield f"+ {_of_found(found)}"
        if expected is not None and found is not None:
            yield from (f"?   {detail}" for detail in _details(expected, found))


def _of_expected(expected: ExpectedRecord) -> str:
    given = [(field.name, getattr(expected, field.name)) for field in dataclasses.fields(expected)]
    return ", ".join(f"{name} {_short(value)}" for name, value in given if value is not ANYTHING) or "any record"


def _of_found(found: KafkaRecord) -> str:
    parts = [f"value {_short(found.value)}"]
    if found.key is not None:
        parts.append(f"key {_short(found.key)}")
    if found.headers:
        parts.append(f"headers {_short(found.headers)}")
    return f"{', '.join(parts)} (partition {found.partition}, offset {found.offset})"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SIGNS else f"{text[:_MOST_SIGNS]}… ({len(text):,} characters)"


def _details(expected: ExpectedRecord, found: KafkaRecord) -> Iterator[str]:
    for field in dataclasses.fields(expected):
        wanted, has = getattr(expected, field.name), getattr(found, field.name)
        if not fits(wanted, has):
            yield from _of_field(field.name, wanted, has)


def _of_field(name: str, wanted: Any, has: Any) -> Iterator[str]:
    if is_json(wanted) and isinstance(has, bytes):
        try:
            content = json.loads(has)
        except ValueError:
            yield f"{name}: not JSON"
            return
        yield from _of_json(name, wanted, content)
    elif isinstance(wanted, str | bytes) and isinstance(has, bytes):
        yield _of_bytes(name, wanted.encode() if isinstance(wanted, str) else wanted, has)
    else:
        yield _both(name, wanted, has)


def _both(place: str, wanted: Any, has: Any) -> str:
    return f"{place}: {_short(wanted)} expected, {_short(has)} found"


def _of_json(path: str, wanted: Any, has: Any) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(has, dict):
        for name in [*wanted, *(name for name in has if name not in wanted)]:
            if name not in has:
                yield f"{path}.{name}: {_short(wanted[name])} expected, missing"
            elif name not in wanted:
                yield f"{path}.{name}: {_short(has[name])} found, not expected"
            elif wanted[name] != has[name]:
                yield from _of_json(f"{path}.{name}", wanted[name], has[name])
    elif isinstance(wanted, list) and isinstance(has, list) and len(wanted) == len(has):
        for place, (one, other) in enumerate(zip(wanted, has, strict=True)):
            if one != other:
                yield from _of_json(f"{path}[{place}]", one, other)
    else:
        yield _both(path, wanted, has)


def _of_bytes(name: str, wanted: bytes, has: bytes) -> str:
    shorter = min(len(wanted), len(has))
    first = next((at for at in range(shorter) if wanted[at] != has[at]), shorter)
    around = slice(max(first - _BEFORE, 0), first + _AFTER)
    return _both(f"{name} from byte {first}", wanted[around], has[around])
