"""The live tail of records: a page with ``from=live`` polls ``tail``, each time with its position.

Each response is small and ends at once, so that a page needs no connection of its own (a browser has six for all of its
tabs), and one that is hidden, paused or stalled costs nothing. Without a filter a page that has fallen behind gets the
newest records, and is told how many it has missed. With one everything is looked through, in its order, as fast as the
others allow.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..view.found_records import FoundRecord
from ..view.record_search import Range, Search
from .questions import Question, read_question
from .record_rows import shown_as, shown_records
from .render import Renderer
from .searches import Searches, address

_SECONDS = 0.5


def tail_address(topic: str, question: Question, ranges: Sequence[Range]) -> str:
    """Where a page goes on that has seen all of these; to be made before they are looked through."""
    return _address_from(topic, question, {each.number: each.high for each in ranges})


def _address_from(topic: str, question: Question, positions: dict[int, int]) -> str:
    rest = ".".join(f"{number}:{position}-{position}" for number, position in positions.items())
    return address(topic, "tail", question, rest=rest)


class Tail:
    """The ``page`` with the records that have come since it was asked last, as JSON."""

    def __init__(self, searches: Searches, renderer: Renderer) -> None:
        self._searches = searches
        self._renderer = renderer

    async def page(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        question = read_question(topic, request.query_params, self._searches.decoding)
        logs = await self._searches.logs(topic, question)
        seen = {each.number: each.low for each in question.rest}
        # A partition of which the page does not know is a new one.
        ranges = [Range(log, min(seen.get(number, log.start), log.end), log.end) for number, log in logs.items()]
        ends = {each.number: each.high for each in ranges}
        search = self._searches.over(topic, question, ranges, is_backwards=not question.has_filter)
        deadline = trio.current_time() + _SECONDS
        while not search.is_done and trio.current_time() < deadline:
            await search.step()
        found = search.found()
        if question.has_filter:
            # Whatever the time did not suffice for is left to the next request; without a filter it counts as missed.
            found.reverse()
            ends = {each.number: each.low for each in ranges}
        return JSONResponse(
            {
                "rows": await self._rows(topic, question, found[: question.count]),
                "next": _address_from(topic, question, ends),
                "looked_at": str(search.looked_at),
                "found": str(min(len(found), question.count)),
                "missed": str(_missed(search, found, question)),
                "behind": str(sum(each.left for each in ranges) if question.has_filter else 0),
                "problems": search.problems,
            }
        )

    async def _rows(self, topic: str, question: Question, found: Sequence[FoundRecord]) -> str:
        if not found:
            return ""
        searches = self._searches
        rows = await shown_records(found, topic, question, searches.decoding, searches.source.workers, with_gaps=False)
        as_asked = shown_as(question)
        return await self._renderer.text("record_rows.html", topic=topic, rows=rows, shown_as=as_asked)


def _missed(search: Search, found: Sequence[FoundRecord], question: Question) -> int:
    """How many offsets are not shown, and won't be."""
    if question.has_filter:
        return 0
    return sum(each.left for each in search.ranges) + max(len(found) - question.count, 0)
