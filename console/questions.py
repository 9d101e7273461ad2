"""Queries for records in a page's address: where to begin, how many, and a filter.

A filter compares, and computes nothing: a key that equals, a header of a name or of a name and a value, a value that contains,
a value that has something at a JSON path. All that are given must hold. ``from`` is newest, oldest, offset or time, the last two
with ``at``, or live: the newest, and then what comes. ``until`` ends it before an offset, where it begins at one, and else before
the first record as new as a time. ``rest`` is what an earlier part of the same search has left, ``PARTITION:LOW-HIGH`` with dots
between. ``range`` is a button of the form, a time range by name, which becomes ``from``, ``at`` and ``until`` (``time_ranges``).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ..view.record_search import Matches, Prepare, Range
from ..wire.records import Record
from .decoding import MOST_DECODED, Decoding
from .json_path import Condition, JsonPathError, read_condition
from .trees import DecodeError

MOST_RECORDS = 500
DEFAULT_RECORDS = 50
NOTHING_ASKED: Mapping[str, str] = {
    **dict.fromkeys(("partition", "at", "until", "key", "header", "contains", "path"), ""),
    "from": "newest",
    "n": str(DEFAULT_RECORDS),
    "show": "auto",
    "keys": "auto",
}
"""The fields of the form where nothing was said."""
STARTS = ("newest", "oldest", "offset", "time", "live")
_MOST_TEXT = 1000
_REST = re.compile(r"(\d{1,10}):(\d{1,19})-(\d{1,19})")


class WrongQuestionError(Exception):
    """An address or a form has an impossible value. ``str()`` is a sentence."""

    def __init__(self, why: str, field: str = "") -> None:
        super().__init__(why)
        self.field = field
        """The name of the field concerned; empty if there is none."""


class Rest(NamedTuple):
    """What is left of one partition."""

    number: int
    low: int
    high: int


@dataclasses.dataclass(frozen=True)
class Question:
    """A query for records."""

    partition: int | None
    start: str
    at: int
    """An offset, or a time in ms."""
    until: int | None
    """The same of where it ends, without it; None for the end of what there is."""
    count: int
    key: str
    header: str
    contains: str
    path: str
    """The text that ``condition`` was read from."""
    condition: Condition | None
    """On values that are decoded as ``values`` says."""
    show: str
    """How values are displayed."""
    values: str
    """How the topic's values are decoded for that (``Decoding.of_values``)."""
    keys: str
    """How keys are decoded and displayed."""
    rest: tuple[Rest, ...]
    given: Mapping[str, str]
    """The query of the address, unchanged."""

    @property
    def is_backwards(self) -> bool:
        return self.start in ("newest", "live")

    @property
    def is_live(self) -> bool:
        return self.start == "live"

    @property
    def has_filter(self) -> bool:
        return bool(self.key or self.header or self.contains or self.condition)

    def matches(self, decoding: Decoding, topic: str) -> Matches | None:
        """None where every record is looked for. Raises WrongQuestionError."""
        if not self.has_filter:
            return None
        key, contains = _bytes(self.key, "key"), _bytes(self.contains, "contains")
        name, has_value, text = self.header.partition("=")
        value = _bytes(text, "header")
        condition = self.condition

        def does(record: Record) -> bool:
            if self.key and record.key != key:
                return False
            if self.contains and (record.value is None or contains not in record.value):
                return False
            if self.header and not any(
                found == name and (not has_value or content == value) for found, content in record.headers
            ):
                return False
            return condition is None or self._holds(condition, record.value, decoding, topic)

        return does

    def _holds(self, condition: Condition, value: bytes | None, decoding: Decoding, topic: str) -> bool:
        if not value or len(value) > MOST_DECODED:
            return False
        if decoding.is_json(value, self.values) and not condition.may_hold(value):
            return False
        try:
            return condition.holds(decoding.tree(value, self.values, topic))
        except DecodeError:
            return False

    def prepare(self, decoding: Decoding) -> Prepare | None:
        """What a search is to wait for before it looks at records; None where looking at them is cheap."""
        if self.condition is None:
            return None

        async def prepare(records: Sequence[Record]) -> None:
            await decoding.prepare((record.value for record in records), self.values)

        return prepare


def _bytes(text: str, field: str) -> bytes:
    """``hex:…`` stands for bytes, everything else for itself in UTF-8."""
    if text.startswith("hex:"):
        try:
            return bytes.fromhex(text[4:])
        except ValueError:
            raise WrongQuestionError(f"{text} is not hexadecimal.", field) from None
    return text.encode("utf-8", "surrogatepass")


def read_question(
    topic: str, given: Mapping[str, str], decoding: Decoding, most: int = MOST_RECORDS, default: int = DEFAULT_RECORDS
) -> Question:
    """``most`` is how many records may be asked for, ``default`` how many are. Raises WrongQuestionError."""
    start = given.get("from", "newest")
    if start not in STARTS:
        raise WrongQuestionError(f"Records are read from {', '.join(STARTS)}, not from {start}.", "from")
    path = given.get("path", "").strip()[:_MOST_TEXT]
    show = read_show(given, "show", decoding)
    question = Question(
        _number(given, "partition", "a partition", None),
        start,
        _at(start, given),
        _until(start, given),
        min(max(_number(given, "n", "a number of records", default) or 1, 1), most),
        given.get("key", "")[:_MOST_TEXT],
        given.get("header", "")[:_MOST_TEXT],
        given.get("contains", "")[:_MOST_TEXT],
        path,
        _condition(path),
        show,
        decoding.of_values(show, topic),
        read_show(given, "keys", decoding),
        tuple(read_rest(given.get("rest", ""))),
        given,
    )
    question.matches(decoding, topic)  # whether it can be made
    return question


def read_show(given: Mapping[str, str], field: str, decoding: Decoding) -> str:
    """What values (``show``) or keys (``keys``) are shown as. Raises WrongQuestionError."""
    show = given.get(field, "auto")
    if show not in decoding.shows:
        raise WrongQuestionError(f"Records are shown as {', '.join(decoding.shows)}, not as {show}.", field)
    return show


def _condition(path: str) -> Condition | None:
    try:
        return read_condition(path) if path else None
    except JsonPathError as error:
        raise WrongQuestionError(str(error), "path") from None


def _number(given: Mapping[str, str], field: str, what: str, default: int | None) -> int | None:
    text = given.get(field, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise WrongQuestionError(f"{text} is not {what}.", field)
    return int(text)


def _at(start: str, given: Mapping[str, str]) -> int:
    if start == "offset":
        return _number(given, "at", "an offset", 0) or 0
    return moment_ms(given.get("at", "").strip(), "at") if start == "time" else 0


def _until(start: str, given: Mapping[str, str]) -> int | None:
    text = given.get("until", "").strip()
    if not text:
        return None
    if start == "live":
        raise WrongQuestionError("Live records have no end.", "until")
    return _number(given, "until", "an offset", None) if start == "offset" else moment_ms(text, "until")


def moment_ms(text: str, field: str) -> int:
    """A field with a time as a person writes it, in ms since 1970; without a zone it is UTC. Raises WrongQuestionError."""
    if text.isascii() and text.isdigit() and len(text) <= 16:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return math.floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise WrongQuestionError(
            f"{text or 'Nothing'} is not a time, as 2026-01-31T12:00:00Z is, or 1769860800000 in ms; without a zone it is UTC.",
            field,
        ) from None


def read_rest(text: str) -> Sequence[Rest]:
    """The parts of ``rest``. Raises WrongQuestionError."""
    if not text:
        return []
    found = [_REST.fullmatch(part) for part in text.split(".")]
    if any(part is None for part in found):
        raise WrongQuestionError("The rest of a search is PARTITION:LOW-HIGH.")
    return [Rest(*map(int, part.groups())) for part in found if part is not None]


def rest_text(ranges: Sequence[Range]) -> str:
    """What is left, for an address; empty where nothing is."""
    return ".".join(f"{each.number}:{each.low}-{each.high}" for each in ranges if each.left)
