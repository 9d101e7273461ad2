"""Patterns of transactional ids (KIP-1152), matched in time linear in the length of the id.

Kafka has them in RE2's syntax, whose matcher never goes back; Python's ``re`` does, and a pattern like ``(a+)+b`` would hold up
the loop for ever. Read are characters, ``.``, classes, ``\\d \\w \\s`` and their opposites, groups, ``|`` and repeats; ``^`` and
``$`` where they change nothing, because the whole id has to match. Other syntax is refused with INVALID_REGULAR_EXPRESSION: what
only RE2 has (flags, ``\\b``, classes by name) and what RE2 lacks (back references, look-around). So is a pattern of more than
``MOST_POSITIONS`` characters and classes, each repeat counted as often as it may come. RE2 itself, which matches names of topics
for consumer groups, is not used: this works on platforms that it has no wheel for, and costs nothing to load.

A pattern becomes a Glushkov automaton: each of those positions is a state. The set of states it may be in is one number, with
one bit for each state; the first bit is the beginning. Steps are cached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from ..base.errors import ErrorCode, KafkaError

MOST_POSITIONS = 256
_LONGEST_PATTERN = 1_000
_DEEPEST = 50
_MOST_STEPS = 4096
_LAST_CHARACTER = 0x10FFFF
_BEGINNING = 1

Ranges = tuple[tuple[int, int], ...]
"""Of characters, first and last of each."""

_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
_BY_LETTER = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_REPEAT = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")


class IdPattern:
    """One pattern. Raises KafkaError INVALID_REGULAR_EXPRESSION."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > _LONGEST_PATTERN:
            raise _invalid(f"it has {len(pattern)} characters, and may have {_LONGEST_PATTERN}")
        node = _Parser(pattern).parse()
        if node.size > MOST_POSITIONS:
            raise _invalid(f"with its repeats it has more than {MOST_POSITIONS} characters")
        automaton = _Automaton()
        part = automaton.add(node)
        automaton.follow[0] = part.first
        self._follow = automaton.follow
        self._accepting = part.last | (_BEGINNING if part.is_nullable else 0)
        self._positions_of: dict[Ranges, int] = {}
        for position, ranges in enumerate(automaton.ranges):
            self._positions_of[ranges] = self._positions_of.get(ranges, 0) | 1 << position
        self._with: dict[str, int] = {}
        self._steps: dict[tuple[int, str], int] = {}

    def begin(self) -> int:
        """The states before the first character."""
        return _BEGINNING

    def go_on(self, states: int, text: str) -> int:
        """The states after some more characters; 0: nothing can match any more."""
        steps = self._steps
        for character in text:
            after = steps.get((states, character))
            if after is None:
                after = self._step(states, character)
            if not after:
                return 0
            states = after
        return states

    def is_match(self, states: int) -> bool:
        """Whether an id that ends here matches."""
        return states & self._accepting != 0

    def matches(self, text: str) -> bool:
        """Whether the whole of a text matches."""
        return self.is_match(self.go_on(self.begin(), text))

    def _step(self, states: int, character: str) -> int:
        reachable, left = 0, states
        while left:
            lowest = left & -left
            reachable |= self._follow[lowest.bit_length() - 1]
            left ^= lowest
        if len(self._steps) >= _MOST_STEPS:
            self._steps.clear()
        after = self._steps[states, character] = reachable & self._positions_with(character)
        return after

    def _positions_with(self, character: str) -> int:
        known = self._with.get(character)
        if known is None:
            code, known = ord(character), 0
            for ranges, positions in self._positions_of.items():
                if any(first <= code <= last for first, last in ranges):
                    known |= positions
            if len(self._with) >= _MOST_STEPS:
                self._with.clear()
            self._with[character] = known
        return known


# --- the pattern's tree -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Character:
    """One character out of some."""

    ranges: Ranges
    size: int = 1


@dataclass(frozen=True, slots=True)
class _Sequence:
    """``size`` counts the positions in it, 1 where there are none: what is empty can be repeated, too."""

    parts: list[_Node]
    size: int


@dataclass(frozen=True, slots=True)
class _Alternation:
    parts: list[_Node]
    size: int


@dataclass(frozen=True, slots=True)
class _Repeat:
    """``most`` is None where there is no end. ``size`` counts the positions once they are written out."""

    part: _Node
    least: int
    most: int | None
    size: int


_Node = _Character | _Sequence | _Alternation | _Repeat


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def parse(self) -> _Node:
        node = self._choice(0)
        if self._at < len(self._text):
            raise _invalid("a ) has no (")
        return node

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise _invalid("it ends too early")
        self._at += 1
        return character

    def _choice(self, depth: int) -> _Node:
        if depth > _DEEPEST:
            raise _invalid(f"its groups are more than {_DEEPEST} deep")
        parts = [self._sequence(depth)]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else _Alternation(parts, sum(part.size for part in parts))

    def _sequence(self, depth: int) -> _Node:
        parts: list[_Node] = []
        if not depth and self._peek() == "^":
            self._at += 1
        while (character := self._peek()) and character not in "|)":
            self._at += 1
            if character == "$" and not depth and self._peek() in ("", "|"):
                break
            parts.append(self._repeated(self._one(character, depth)))
        return parts[0] if len(parts) == 1 else _Sequence(parts, max(sum(part.size for part in parts), 1))

    def _one(self, character: str, depth: int) -> _Node:
        """What a repeat can stand behind."""
        if character == "(":
            if self._peek() == "?":
                if self._text[self._at : self._at + 2] != "?:":
                    raise _invalid("of groups that begin with (? only (?: is read")
                self._at += 2
            node = self._choice(depth + 1)
            if self._take() != ")":
                raise _invalid("a ( has no )")
            return node
        if character == "[":
            return _Character(self._class())
        if character == ".":
            return _Character(_opposite(((10, 10),)))
        if character == "\\":
            return _Character(self._escaped())
        if character in "*+?" or _REPEAT.match(self._text, self._at - 1):
            raise _invalid(f"{character} has nothing to repeat")
        if character in "^$":
            raise _invalid(f"{character} is read at the ends of the pattern only")
        return _Character(((ord(character), ord(character)),))

    def _repeated(self, node: _Node) -> _Node:
        counts = self._counts()
        if counts is None:
            return node
        if self._peek() == "?":  # as few as possible: of no importance where the whole has to match
            self._at += 1
        if self._counts() is not None:
            raise _invalid("a repeat is repeated")
        least, most = counts
        if most is not None and least > most:
            raise _invalid("a repeat has its larger number first")
        size = max(node.size * max(least, 1 if most is None else most), 1)
        if size > MOST_POSITIONS:
            raise _invalid(f"with its repeats it has more than {MOST_POSITIONS} characters")
        return _Repeat(node, least, most, size)

    def _counts(self) -> tuple[int, int | None] | None:
        """How often what stands before may come; None where no repeat follows."""
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if (found := simple.get(self._peek())) is not None:
            self._at += 1
            return found
        match = _REPEAT.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        least, has_comma, most = int(match[1]), match[2], match[3]
        return least, (int(most) if most else None) if has_comma else least

    def _escaped(self) -> Ranges:
        """What follows a backslash."""
        if (match := _HEX.match(self._text, self._at)) is not None:
            self._at = match.end()
            code = int(match[1] or match[2], 16)
            if code > _LAST_CHARACTER:
                raise _invalid(f"there is no character {code:#x}")
            return ((code, code),)
        letter = self._take()
        if letter in _BY_LETTER:
            return _BY_LETTER[letter]
        if letter.lower() in _BY_LETTER:
            return _opposite(_BY_LETTER[letter.lower()])
        if letter in _CONTROLS:
            return ((_CONTROLS[letter], _CONTROLS[letter]),)
        if letter.isalnum() or not letter.isascii():
            raise _invalid(f"\\{letter} is not read")
        return ((ord(letter), ord(letter)),)

    def _class(self) -> Ranges:
        """What follows a [."""
        is_opposite = self._peek() == "^"
        self._at += is_opposite
        found: list[tuple[int, int]] = []
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            character = self._take()
            if character == "[" and self._peek() == ":":
                raise _invalid("classes by name are not read")
            ranges = self._escaped() if character == "\\" else ((ord(character), ord(character)),)
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                ranges = (self._range(ranges),)
            found += ranges
        self._at += 1
        ranges = _joined(found)
        return _opposite(ranges) if is_opposite else ranges

    def _range(self, first: Ranges) -> tuple[int, int]:
        """The rest of ``a-z``, behind its dash."""
        character = self._take()
        last = self._escaped() if character == "\\" else ((ord(character), ord(character)),)
        if not _is_one(first) or not _is_one(last) or first[0][0] > last[0][0]:
            raise _invalid("a range in a class has no first or no last character")
        return first[0][0], last[0][0]


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _joined(ranges: list[tuple[int, int]]) -> Ranges:
    """In order, and none touching another."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def _opposite(ranges: Ranges) -> Ranges:
    """All other characters; ``ranges`` are in order."""
    gaps, begin = [], 0
    for first, last in ranges:
        if begin < first:
            gaps.append((begin, first - 1))
        begin = last + 1
    if begin <= _LAST_CHARACTER:
        gaps.append((begin, _LAST_CHARACTER))
    return tuple(gaps)


# --- the automaton ----------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A part of the pattern: whether it may be empty, at which positions it may begin and end."""

    is_nullable: bool
    first: int
    last: int


_EMPTY = _Part(True, 0, 0)


@dataclass
class _Automaton:
    """By position: its characters, and the positions that may follow it. Position 0 is the beginning."""

    ranges: list[Ranges] = field(default_factory=lambda: [()])
    follow: list[int] = field(default_factory=lambda: [0])

    def add(self, node: _Node) -> _Part:
        if isinstance(node, _Character):
            position = 1 << len(self.ranges)
            self.ranges.append(node.ranges)
            self.follow.append(0)
            return _Part(False, position, position)
        if isinstance(node, _Alternation):
            parts = [self.add(part) for part in node.parts]
            first, last = 0, 0
            for each in parts:
                first, last = first | each.first, last | each.last
            return _Part(any(each.is_nullable for each in parts), first, last)
        if isinstance(node, _Sequence):
            whole = _EMPTY
            for part in reversed(node.parts):
                whole = self._then(self.add(part), whole)
            return whole
        return self._repeat(node)

    def _repeat(self, node: _Repeat) -> _Part:
        """Written out: ``a{2,4}`` is ``aa(a(a)?)?``, and ``a{2,}`` is ``aa+``."""
        whole = _EMPTY
        if node.most is None:
            whole = self.add(node.part)
            self._connect(whole.last, whole.first)
            if not node.least:
                return whole._replace(is_nullable=True)
        for _ in range((node.most or 0) - node.least):
            whole = self._then(self.add(node.part), whole)._replace(is_nullable=True)
        for _ in range(node.least - (node.most is None)):
            whole = self._then(self.add(node.part), whole)
        return whole

    def _then(self, left: _Part, right: _Part) -> _Part:
        self._connect(left.last, right.first)
        return _Part(
            left.is_nullable and right.is_nullable,
            left.first | (right.first if left.is_nullable else 0),
            right.last | (left.last if right.is_nullable else 0),
        )

    def _connect(self, last: int, first: int) -> None:
        while last:
            lowest = last & -last
            self.follow[lowest.bit_length() - 1] |= first
            last ^= lowest


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"the pattern of transactional ids cannot be read: {why}")
