"""The pages of records: a part of a topic, one record, and a search that goes on as long as its reader wants it to.

``records`` looks for a moment and shows what it found, with what is left in the address of the next page. Where a filter has not
been satisfied by then, the page goes on by ``search``: server-sent events ``rows`` (HTML), ``progress`` (JSON) and ``done``. A
search ends when its reader goes away. At most ``_SEARCHES`` are under way, and a reader that is slow holds up its own only.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import trio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ..base.errors import KafkaError
from ..broker.view.record_log import RecordLog
from ..broker.view.records import FoundRecord, Range, Search, WholeRecord, search_pace, whole_record
from ..broker.view.view import NotFoundError
from . import commands
from .questions import STARTS, Question, WrongQuestionError, read_question, rest_text
from .render import Renderer
from .source import Source
from .texts import SHOWS, Shown, shown

__all__ = ["RecordPages", "WrongQuestionError"]

_PAGE_SECONDS = 0.5
_PAGE_SECONDS_ELSEWHERE = 3.0
"""Where each part of a topic has to be asked for."""
_TELL_SECONDS = 0.25
_SEARCHES = 8
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_SHOWN_BYTES = 1 << 20


class ShownRecord(NamedTuple):
    """A record as a row. ``gap`` is how many offsets there are without a record between it and the one above it."""

    record: FoundRecord
    key: Shown
    value: Shown
    codec: str
    gap: int


class RecordPages:
    """Each method is one page."""

    def __init__(self, source: Source, renderer: Renderer) -> None:
        self._source = source
        self._renderer = renderer
        self._searches = 0

    async def records(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        question = read_question(request.query_params)
        logs = {log.number: log for log in await self._source.logs(topic)}
        search = await self._begin(topic, question, logs)
        with trio.move_on_after(_PAGE_SECONDS if self._source.inside is not None else _PAGE_SECONDS_ELSEWHERE):
            while not search.is_done:
                await search.step()
        found = search.found()
        found = found[: question.count] if not question.has_filter else found
        left = _left_after(search, found, question)
        goes_on = question.has_filter and bool(left) and len(found) < question.count
        return await self._renderer.page(
            "records.html",
            topic=topic,
            question=question,
            numbers=[*logs],
            starts=STARTS,
            shows=SHOWS,
            rows=_shown_records(found, question),
            search=search,
            next_address=self._address(topic, "records", question, left) if left else None,
            search_address=self._address(topic, "search", question, left) if goes_on else None,
            command=self._command(topic, question),
        )

    async def _begin(self, topic: str, question: Question, logs: Mapping[int, RecordLog]) -> Search:
        """Raises NotFoundError, KafkaError, OSError."""
        if question.rest:
            places = [(logs[r.number], r.low, r.high) for r in question.rest if r.number in logs]
        else:
            if question.partition is not None:
                chosen = [await self._source.log(topic, question.partition)]
            else:
                chosen = [*logs.values()]
            places = []
            for log in chosen:
                low = log.start
                if question.start == "offset":
                    low = question.at
                elif question.start == "time":
                    offset = await log.offset_at(question.at)
                    low = log.end if offset is None else offset
                places.append((log, low, log.end))
        return Search(
            [Range(log, low, high) for log, low, high in places],
            question.count,
            self._source.workers,
            search_pace(self._source.elapsed),
            backwards=question.is_backwards,
            matches=question.matches(),
        )

    @staticmethod
    def _address(topic: str, page: str, question: Question, rest: str) -> str:
        given = {name: value for name, value in question.given.items() if value and name != "rest"}
        return f"/topics/{topic}/{page}?{urlencode({**given, 'rest': rest})}"

    def _command(self, topic: str, question: Question) -> commands.Command | None:
        if question.has_filter or question.rest or question.start == "time":
            return None
        offset = {"newest": None, "oldest": 0, "offset": question.at}[question.start]
        return commands.records(self._source.bootstrap_servers, topic, question.partition, offset, question.count)

    # --- a search that goes on ----------------------------------------------------------------------------------------

    async def search(self, request: Request) -> Response:
        """Server-sent events, until all was looked at, as many were found as were asked for, or the reader has gone."""
        topic = request.path_params["topic"]
        try:
            question = read_question(request.query_params)
            logs = {log.number: log for log in await self._source.logs(topic)}
            search = await self._begin(topic, question, logs)
        except (NotFoundError, WrongQuestionError, KafkaError, OSError) as error:
            return PlainTextResponse(f"{error}\n", status_code=400)
        if self._searches >= _SEARCHES:
            return PlainTextResponse("Too many searches are under way.\n", status_code=503)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        events = self._events(topic, question, search)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def _events(self, topic: str, question: Question, search: Search) -> AsyncIterator[bytes]:
        self._searches += 1
        try:
            count = 0
            told = trio.current_time()
            while not search.is_done:
                await search.step()
                now = trio.current_time()
                if now - told >= _TELL_SECONDS:
                    told = now
                    if found := search.take_found():
                        yield await self._rows(topic, question, found)
                    yield _event("progress", _progress(search))
            if found := search.take_found():
                yield await self._rows(topic, question, found)
            left = rest_text(search.ranges)
            count = search.found_count
            more = self._address(topic, "records", question, left) if left and count >= question.count else None
            yield _event("done", json.dumps({"progress": json.loads(_progress(search)), "more": more}))
        finally:
            self._searches -= 1

    async def _rows(self, topic: str, question: Question, found: Sequence[FoundRecord]) -> bytes:
        rows = _shown_records(found, question, with_gaps=False)
        return _event("rows", await self._renderer.text("record_rows.html", topic=topic, rows=rows))

    # --- one record ---------------------------------------------------------------------------------------------------

    async def _whole(self, request: Request) -> tuple[WholeRecord, RecordLog]:
        """A record, and what it was read from. Raises NotFoundError, KafkaError, OSError."""
        place = request.path_params
        log = await self._source.log(place["topic"], place["partition"])
        found = await whole_record(log, place["offset"], self._source.workers)
        if found is None:
            raise NotFoundError(
                f"There is no record at offset {place['offset']} of {place['topic']}-{place['partition']}."
            )
        return found, log

    async def record(self, request: Request) -> Response:
        topic, number = request.path_params["topic"], request.path_params["partition"]
        show = request.query_params.get("show", "auto")
        if show not in SHOWS:
            raise WrongQuestionError(f"Records are shown as {', '.join(SHOWS)}, not as {show}.")
        whole, log = await self._whole(request)
        found = whole.found
        server = self._source.bootstrap_servers
        return await self._renderer.page(
            "record.html",
            topic=topic,
            record=found,
            codec=_codec(found),
            show=show,
            shows=SHOWS,
            key=_whole_shown(whole.key, show),
            value=_whole_shown(whole.value, show),
            headers=[(name, _whole_shown(content, show)) for name, content in whole.headers[:100]],
            header_count=len(whole.headers),
            before=found.offset - 1 if found.offset > log.start else None,
            after=found.offset + 1 if found.offset + 1 < log.end else None,
            command=commands.records(server, topic, number, found.offset, 1),
        )

    async def download(self, request: Request) -> Response:
        """The key or the value as it is; a browser is to keep it, and not to show it."""
        what = request.path_params["what"]
        whole, _ = await self._whole(request)
        data = {"key": whole.key, "value": whole.value}.get(what)
        if data is None:
            raise NotFoundError(f"The record has no {what}.")
        name = f"{request.path_params['partition']}-{request.path_params['offset']}.{what}.bin"
        return Response(
            data,
            headers={
                "content-type": "application/octet-stream",
                "content-disposition": f'attachment; filename="{name}"',
            },
        )


def _left_after(search: Search, found: Sequence[FoundRecord], question: Question) -> str:
    """What the next page begins with: of several partitions, more was found than is shown, and is to be looked at again."""
    if not question.has_filter:
        seen: dict[int, FoundRecord] = {record.partition: record for record in found}
        for each in search.ranges:
            last = seen.get(each.number)
            if not each.found:
                continue
            if search.backwards:
                each.high = last.offset if last is not None else each.found[-1].offset + 1
            else:
                each.low = last.offset + 1 if last is not None else each.found[0].offset
    return rest_text(search.ranges)


def _shown_records(found: Sequence[FoundRecord], question: Question, with_gaps: bool = True) -> list[ShownRecord]:
    rows = []
    show = "text" if question.show == "auto" else question.show  # a list of JSON in lines is too long to look at
    above: FoundRecord | None = None
    is_one = with_gaps and not question.has_filter and len({record.partition for record in found}) == 1
    for record in found:
        gap = 0 if above is None or not is_one else abs(record.offset - above.offset) - 1
        rows.append(
            ShownRecord(
                record,
                shown(record.key, record.key_size, show),
                shown(record.value, record.value_size, show),
                _codec(record),
                gap,
            )
        )
        above = record
    return rows


def _codec(record: FoundRecord) -> str:
    return _CODECS[record.codec] if record.codec < len(_CODECS) else str(record.codec)


def _whole_shown(data: bytes | None, show: str) -> Shown:
    return shown(None if data is None else data[:_SHOWN_BYTES], 0 if data is None else len(data), show)


def _progress(search: Search) -> str:
    """Counts are strings, as everywhere in JSON for a browser."""
    told: dict[str, Any] = {
        "records": f"{search.looked_at:,}",
        "bytes": str(search.bytes_read),
        "found": str(search.found_count),
        "percent": round(search.done_share * 100, 1),
        "problems": search.problems,
    }
    return json.dumps(told)


def _event(name: str, data: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}\n".encode("utf-8", "replace")
