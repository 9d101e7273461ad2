"""The preview of a copy of records: what a form asks for, and how many records that would be.

The preview reads what the copy would read, for a moment. The ranges that it has found are sent along with the button, so that
just those are copied, whatever comes meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import trio

from ..view.pace import Pace
from ..view.record_log import RecordLog
from ..view.record_search import Range, Search
from .commands import Command
from .copy_reading import MOST_RECORDS, CopyReading
from .copying import CopyOrder
from .questions import Question, Rest, WrongQuestionError, read_question
from .searches import Searches, first, last

FIELDS: Mapping[str, str] = {
    **dict.fromkeys(("to", "partition", "at", "until", "key", "header", "contains", "path"), ""),
    "from": "oldest",
    "keeps": "no",
    "time": "keep",
    "origin": "no",
    "show": "auto",
}
"""The fields of the form where nothing was said."""
STARTS = ("oldest", "offset", "time")
_BY_KEY, _SAME = "no", "yes"
KEEPS = ((_BY_KEY, "by key, else any"), (_SAME, "the same number"))
TIMES = (("keep", "as it is"), ("now", "the present one"))
ORIGINS = (("no", "no"), ("yes", "topic, partition and offset"))


@dataclasses.dataclass(frozen=True)
class CopyPreview:
    """What would be copied, shown above the button."""

    order: CopyOrder
    rows: Sequence[tuple[int, int, int, int]]
    """Partition, first offset, offset before which it ends, and records; those without an offset are left out."""
    records: int
    size: int
    """The bytes of keys, values and headers."""
    is_whole: bool
    """Whether everything was looked at."""
    is_full: bool
    """Whether there is more than one copy takes."""
    held: int
    """The number of offsets that an open transaction holds back."""
    elsewhere: Sequence[int]
    """Partitions that cannot be read here."""
    creates: int | None
    """How many partitions the target is created with; None if it is there."""
    ranges: Sequence[Rest]
    command: Command | None


def read_order(topic: str, fields: Mapping[str, str]) -> CopyOrder:
    """Raises WrongQuestionError."""
    for name, choices in (("keeps", KEEPS), ("time", TIMES), ("origin", ORIGINS)):
        if fields[name] not in dict(choices):
            raise WrongQuestionError(f"{name} is one of {', '.join(dict(choices))}, not {fields[name]}.", name)
    return CopyOrder(
        topic, fields["to"].strip(), fields["keeps"] == _SAME, fields["time"] == "keep", fields["origin"] == "yes"
    )


def read_source(topic: str, fields: Mapping[str, str], searches: Searches) -> Question:
    """The records that the form asks for: newest and live, of a page of records, are everything. Raises WrongQuestionError."""
    start = fields["from"] if fields["from"] in ("offset", "time") else "oldest"
    given = {**fields, "from": start, "n": ""}
    return read_question(topic, given, searches.decoding, MOST_RECORDS, MOST_RECORDS)


async def ranges_of(question: Question, logs: Iterable[RecordLog]) -> tuple[list[Range], int]:
    """The ranges that a question asks for, and how many offsets of them are held back. Raises KafkaError, OSError."""
    ranges, held = [], 0
    for log in logs:
        whole = Range(log, await first(log, question), await last(log, question))
        ranges.append(Range(log, whole.low, min(whole.high, log.last_stable)))
        held += whole.left - ranges[-1].left
    return ranges, held


def reading_of(topic: str, question: Question, ranges: Iterable[Range], searches: Searches) -> CopyReading:
    """Reads the committed records of ranges that match."""
    workers, decoding = searches.source.workers, searches.decoding

    def begin(each: Range, most: int) -> Search:
        return Search(
            [each],
            most,
            workers,
            Pace(searches.source.elapsed),
            matches=question.matches(decoding, topic),
            prepare=question.prepare(decoding),
            keep=None,
            committed_only=True,
        )

    return CopyReading(ranges, begin)


async def counted_by(reading: CopyReading, seconds: float) -> Mapping[int, int]:
    """Read for so long; how many records there are in each partition. Raises KafkaError, OSError."""
    until = trio.current_time() + seconds
    found: dict[int, int] = {}
    while not reading.is_done:
        if records := await reading.step():
            number = records[0].partition
            found[number] = found.get(number, 0) + len(records)
        if trio.current_time() >= until:
            break
    return found
