"""Compares the records of a topic with those that a test expects, in order or in any order.

An expected record (``Expected``) is one of:

- ``bytes`` or ``str`` (in UTF-8), its value, or None for a tombstone.
- A ``dict``, ``list``, number or ``bool``, the content of its value in JSON.
- ``(key, value)``, each as above.
- ``ExpectedRecord``, some of its fields.
- Another object that its value is equal to, such as ``unittest.mock.ANY``.

JSON may contain such objects, ``pytest.approx(0.1)`` for one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .records import KafkaRecord

_MOST_COMPARISONS = 250_000
"""Records after the first difference are aligned where no more pairs have to be compared."""


class _Anything:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "ANYTHING"


ANYTHING: Any = _Anything()
"""Equal to everything."""


@dataclasses.dataclass(frozen=True)
class ExpectedRecord:
    """The fields that a record must have; one that is left out may be anything. ``value`` and ``key`` may be JSON."""

    value: Any = ANYTHING
    key: Any = ANYTHING
    headers: Any = ANYTHING
    """A list of pairs of name and value, as ``KafkaRecord.headers``."""
    partition: Any = ANYTHING
    timestamp: Any = ANYTHING
    """In ms since the epoch."""


Expected = Any
"""An expected record, as the module lists them."""


class Step(NamedTuple):
    """A record that is expected and found, only expected, or only found."""

    expected: ExpectedRecord | None
    found: KafkaRecord | None


def as_record(expected: Expected) -> ExpectedRecord:
    """Raises TypeError for a tuple that is not a key with a value."""
    if isinstance(expected, ExpectedRecord):
        return expected
    if isinstance(expected, tuple):
        if len(expected) != 2:
            raise TypeError(
                f"an expected record is a value, a pair of key and value, or an ExpectedRecord: {expected!r}"
            )
        return ExpectedRecord(key=expected[0], value=expected[1])
    return ExpectedRecord(expected)


def is_json(expected: Any) -> bool:
    """Whether an expected key or value stands for JSON with this content."""
    return isinstance(expected, dict | list | int | float)


def fits(expected: Any, found: Any) -> bool:
    """Whether a field of a record is the expected one."""
    if isinstance(expected, str):
        return found is not None and expected.encode() == found
    if is_json(expected) and isinstance(found, bytes):
        try:
            return bool(expected == json.loads(found))
        except ValueError:
            return False
    return bool(expected == found)


def _is_equal(expected: ExpectedRecord, found: KafkaRecord) -> bool:
    return all(
        fits(getattr(expected, field.name), getattr(found, field.name)) for field in dataclasses.fields(expected)
    )


def aligned(expected: Sequence[ExpectedRecord], found: Sequence[KafkaRecord]) -> list[Step]:
    """Both in their order, with as many equal pairs as there can be."""
    pairs = list(zip(expected, found, strict=False))
    first = next((place for place, pair in enumerate(pairs) if not _is_equal(*pair)), len(pairs))
    rest, others = expected[first:], found[first:]
    common = [Step(*pair) for pair in pairs[:first]]
    if len(rest) * len(others) > _MOST_COMPARISONS:
        return [*common, *(Step(each, None) for each in rest), *(Step(None, record) for record in others)]
    return [*common, *_longest_common(rest, others)]


def _longest_common(expected: Sequence[ExpectedRecord], found: Sequence[KafkaRecord]) -> Iterator[Step]:
    """By the lengths of the longest common subsequences of all pairs of ends."""
    equal = [[_is_equal(each, record) for record in found] for each in expected]
    longest = [[0] * (len(found) + 1) for _ in range(len(expected) + 1)]
    for row in range(len(expected) - 1, -1, -1):
        for column in range(len(found) - 1, -1, -1):
            without = max(longest[row + 1][column], longest[row][column + 1])
            longest[row][column] = longest[row + 1][column + 1] + 1 if equal[row][column] else without
    row = column = 0
    while row < len(expected) and column < len(found):
        if equal[row][column]:
            yield Step(expected[row], found[column])
            row, column = row + 1, column + 1
        elif longest[row + 1][column] >= longest[row][column + 1]:
            yield Step(expected[row], None)
            row += 1
        else:
            yield Step(None, found[column])
            column += 1
    yield from (Step(each, None) for each in expected[row:])
    yield from (Step(None, record) for record in found[column:])


def matched(expected: Sequence[ExpectedRecord], found: Sequence[KafkaRecord]) -> list[Step]:
    """In any order, with as many equal pairs as there can be, those first."""
    matching = _Matching([[at for at, record in enumerate(found) if _is_equal(each, record)] for each in expected])
    pairs = [
        Step(each, found[matching.place_of[number]])
        for number, each in enumerate(expected)
        if number in matching.place_of
    ]
    missing = [Step(each, None) for number, each in enumerate(expected) if number not in matching.place_of]
    return [*pairs, *missing, *(Step(None, record) for at, record in enumerate(found) if at not in matching.owner)]


class _Matching:
    """A largest matching of expected records, by number, with places; ``places`` are those that each may have."""

    def __init__(self, places: Sequence[Sequence[int]]) -> None:
        self._places = places
        self.place_of: dict[int, int] = {}
        self.owner: dict[int, int] = {}
        for number in sorted(range(len(places)), key=lambda number: len(places[number])):
            self._find_place(number)

    def _find_place(self, number: int) -> None:
        """Along a shortest augmenting path: those who own a place that is needed move to another one."""
        wanted_by: dict[int, int] = {}
        movers = [number]
        for mover in movers:
            for place in self._places[mover]:
                if place not in wanted_by:
                    wanted_by[place] = mover
                    if place not in self.owner:
                        self._move(place, wanted_by, number)
                        return
                    movers.append(self.owner[place])

    def _move(self, free: int, wanted_by: dict[int, int], number: int) -> None:
        while True:
            mover = wanted_by[free]
            left = self.place_of.get(mover, -1)
            self.owner[free], self.place_of[mover] = mover, free
            if mover == number:
                return
            free = left
