"""Record searches of the pages, the tail and the export, with a limit on concurrent ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlencode

import trio

from ..view.found_records import KEPT_BYTES
from ..view.record_log import RecordLog
from ..view.record_search import Range, Search, search_pace
from ..view.source import ViewSource
from .decoding import Decoding
from .questions import Question

_AT_ONCE = 8
_KEPT_TO_DECODE = 16 * 1024
_FIRST_SECONDS = 15.0
"""For the first window of a page, which may have to come from a broker that does not answer."""


class BusyError(Exception):
    """Too many searches are under way."""


class Searches:
    """The searches of one console. ``decoding`` is how records are read for filters."""

    def __init__(self, source: ViewSource, decoding: Decoding) -> None:
        self.source = source
        self.decoding = decoding
        self._under_way = 0

    @property
    def is_busy(self) -> bool:
        return self._under_way >= _AT_ONCE

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Round a search that may take long; ask ``is_busy`` first."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    async def logs(
        self, topic: str, question: Question, known: Mapping[int, RecordLog] | None = None
    ) -> Mapping[int, RecordLog]:
        """What is looked through, by partition; ``known`` are all that can be. Raises NotFoundError, KafkaError, OSError."""
        number = question.partition
        if number is None:
            return known or {log.number: log for log in await self.source.logs(topic)}
        if known is not None and number in known:
            return {number: known[number]}
        return {number: await self.source.log(topic, number)}

    async def begin(
        self, topic: str, question: Question, logs: Mapping[int, RecordLog], *, keeps_all: bool = False
    ) -> Search:
        """A search of which no step was made yet. Raises KafkaError, OSError."""
        if question.rest:
            ranges = [Range(logs[each.number], each.low, each.high) for each in question.rest if each.number in logs]
        else:
            ranges = [Range(log, await first(log, question), await last(log, question)) for log in logs.values()]
        return self.over(topic, question, ranges, is_backwards=question.is_backwards, keeps_all=keeps_all)

    def over(
        self, topic: str, question: Question, ranges: list[Range], *, is_backwards: bool, keeps_all: bool = False
    ) -> Search:
        """A search of these ranges."""
        keep = _KEPT_TO_DECODE if question.values not in ("auto", "text", "hex") else KEPT_BYTES
        return Search(
            ranges,
            question.count,
            self.source.workers,
            search_pace(self.source.elapsed),
            backwards=is_backwards,
            matches=question.matches(self.decoding, topic),
            prepare=question.prepare(self.decoding),
            keep=None if keeps_all else keep,
        )


async def look(search: Search, seconds: float) -> None:
    """Look for so long, but through one window at least, however busy the machine is: a page that shows nothing helps nobody."""
    until = trio.current_time() + seconds
    with trio.move_on_after(_FIRST_SECONDS):
        if not search.is_done:
            await search.step()
    with trio.move_on_at(until):
        while not search.is_done:
            await search.step()


async def first(log: RecordLog, question: Question) -> int:
    """The offset at which a question begins in a partition. Raises KafkaError, OSError."""
    if question.start == "offset":
        return question.at
    if question.start == "time":
        offset = await log.offset_at(question.at)
        return log.end if offset is None else offset
    return log.start


async def last(log: RecordLog, question: Question) -> int:
    """The offset before which it ends. Raises KafkaError, OSError."""
    if question.until is None:
        return log.end
    if question.start == "offset":
        return question.until
    offset = await log.offset_at(question.until)
    return log.end if offset is None else offset


def address(topic: str, page: str, question: Question, **others: str) -> str:
    """Of a page for the same question; ``others`` take the place of what was given, and what is empty is left out."""
    given = {**question.given, "rest": "", **others}
    query = urlencode({name: value for name, value in given.items() if value}, errors="surrogatepass")
    return f"/topics/{topic}/{page}?{query}"
