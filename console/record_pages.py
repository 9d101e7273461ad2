"""The pages of records: a part of a topic, one record, and a search of any length.

``records`` looks for a moment and shows what it found, with what is left in the address of the next page. Where a filter has not
been satisfied by then, the page goes on by ``search``: server-sent events ``rows`` (HTML), ``progress`` (JSON) and ``done``. A
search ends when its reader goes away; a reader that is slow holds up its own only.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import trio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from ..base.errors import KafkaError
from ..view.found_records import FoundRecord
from ..view.own.broker_view import NotFoundError
from ..view.record_log import RecordLog
from ..view.record_search import Range, Search, WholeRecord, search_pace, whole_record
from . import commands
from .export import MOST_BYTES, MOST_RECORDS
from .filters import FIELDS, OPERATORS, PARAMETERS, FilterRow, parameters_of, rows_of, sent_rows
from .problems import Problem, problem_of
from .questions import NOTHING_ASKED, STARTS, Question, WrongQuestionError, read_question, read_show, rest_text
from .record_rows import codec_name, shown_as, shown_records
from .render import Renderer
from .searches import Searches, address, look
from .tail import tail_address
from .texts import Shown
from .time_ranges import RANGES, range_parameters

_PAGE_SECONDS = 0.5
_PAGE_SECONDS_ELSEWHERE = 3.0
"""Where each part of a topic has to be asked for."""
_MOST_SECONDS_ELSEWHERE = 600.0
_MOST_BYTES_ELSEWHERE = 4 << 30
"""After so much a search of a cluster elsewhere ends, with a link to go on: it is its network that is used."""
_TELL_SECONDS = 0.25
_SHOWN_BYTES = 1 << 20


class NoRecordError(NotFoundError):
    """There is none at an offset."""

    def __init__(self, topic: str, log: RecordLog, offset: int) -> None:
        super().__init__(f"There is no record at offset {offset} of {topic}-{log.number}.")
        self.log = log
        self.offset = offset


class RecordPages:
    """Each method is one page."""

    def __init__(self, searches: Searches, renderer: Renderer) -> None:
        self._searches = searches
        self._source = searches.source
        self._decoding = searches.decoding
        self._renderer = renderer

    async def records(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        known = {log.number: log for log in await self._source.logs(topic)}
        sent = sent_rows(request.query_params.multi_items())
        form = self._form(topic, request, known, sent)
        try:
            if sent is not None or request.query_params.get("range", ""):
                return RedirectResponse(_settled(request, sent, self._renderer.now_ms()), 303)
            question = read_question(topic, request.query_params, self._decoding)
        except WrongQuestionError as error:
            problem = problem_of(error)
            return await self._renderer.page("records.html", problem.status, **form, problem=problem, command=None)
        form["asked"]["n"] = str(question.count)
        logs = await self._searches.logs(topic, question, known)
        search = await self._searches.begin(topic, question, logs)
        live_address = tail_address(topic, question, search.ranges) if question.is_live else None
        await look(search, _PAGE_SECONDS if self._source.inside is not None else _PAGE_SECONDS_ELSEWHERE)
        found = search.found()
        found = found[: question.count] if not question.has_filter else found
        left = _left_after(search, found, question)
        goes_on = question.has_filter and bool(left) and len(found) < question.count and not question.is_live
        return await self._renderer.page(
            "records.html",
            **form,
            problem=None,
            question=question,
            rows=await self._rows(topic, question, found),
            shown_as=shown_as(question),
            search=search,
            live_address=live_address,
            next_address=address(topic, "records", question, rest=left) if left and not question.is_live else None,
            search_address=address(topic, "search", question, rest=left) if goes_on else None,
            export_addresses=[
                (name, address(topic, "export", question, n="", **{"as": kind}))
                for name, kind in (("JSON lines", "jsonl"), ("CSV", "csv"))
                if not question.is_live
            ],
            most_exported=MOST_RECORDS,
            most_bytes=MOST_BYTES,
            command=self._command(topic, question),
        )

    def _form(
        self, topic: str, request: Request, known: Iterable[int], sent: Sequence[FilterRow] | None
    ) -> dict[str, Any]:
        """What the page has above its records, whether they can be looked for or not: its fields as they were given."""
        asked = {name: request.query_params.get(name, nothing) for name, nothing in NOTHING_ASKED.items()}
        filters = rows_of(asked) if sent is None else sent
        return {
            "topic": topic,
            "asked": asked,
            "filters": filters,
            "places": [*asked, *(f"filter-{number}" for number in range(len(filters)))],
            "without": lambda parameter: f"?{_query(request, {parameter: ''})}",
            "operators": OPERATORS,
            "filter_fields": FIELDS,
            "numbers": [str(number) for number in known],
            "starts": STARTS,
            "shows": self._decoding.shows,
            "ranges": RANGES,
            "copy_address": f"/topics/{quote(topic, safe='')}/copy?{_query(request, {'n': ''})}",
        }

    async def _rows(self, topic: str, question: Question, found: Sequence[FoundRecord], **options: bool) -> Any:
        return await shown_records(found, topic, question, self._decoding, self._source.workers, **options)

    def _command(self, topic: str, question: Question) -> commands.Command | None:
        if question.has_filter or question.rest or question.start in ("time", "live"):
            return None
        offset = {"newest": None, "oldest": 0, "offset": question.at}[question.start]
        return commands.records(self._source.bootstrap_servers, topic, question.partition, offset, question.count)

    # --- a search that goes on ----------------------------------------------------------------------------------------

    async def search(self, request: Request) -> Response:
        """Server-sent events, until all was looked at, as many were found as were asked for, or the reader has gone."""
        topic = request.path_params["topic"]
        try:
            question = read_question(topic, request.query_params, self._decoding)
            search = await self._searches.begin(topic, question, await self._searches.logs(topic, question))
        except (NotFoundError, WrongQuestionError, KafkaError, OSError) as error:
            return PlainTextResponse(f"{error}\n", status_code=400)
        if self._searches.is_busy:
            return PlainTextResponse("Too many searches are under way.\n", status_code=503)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        events = self._events(topic, question, search)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def _events(self, topic: str, question: Question, search: Search) -> AsyncIterator[bytes]:
        with self._searches.one_more():
            began = told = trio.current_time()
            while not search.is_done and not self._is_enough(search, told - began):
                await search.step()
                now = trio.current_time()
                if now - told >= _TELL_SECONDS:
                    told = now
                    if found := search.take_found():
                        yield await self._rows_event(topic, question, found)
                    yield _event("progress", _progress(search))
            if found := search.take_found():
                yield await self._rows_event(topic, question, found)
            left = rest_text(search.ranges)
            has_more = left and (search.found_count >= question.count or not search.is_done)
            more = address(topic, "records", question, rest=left) if has_more else None
            yield _event("done", json.dumps({"progress": json.loads(_progress(search)), "more": more}))

    def _is_enough(self, search: Search, seconds: float) -> bool:
        """Whether the search ends before it is done."""
        is_long = search.bytes_read >= _MOST_BYTES_ELSEWHERE or seconds >= _MOST_SECONDS_ELSEWHERE
        return is_long and self._source.inside is None

    async def _rows_event(self, topic: str, question: Question, found: Sequence[FoundRecord]) -> bytes:
        rows = await self._rows(topic, question, found, with_gaps=False)
        return _event(
            "rows", await self._renderer.text("record_rows.html", topic=topic, rows=rows, shown_as=shown_as(question))
        )

    # --- one record ---------------------------------------------------------------------------------------------------

    async def _whole(self, request: Request) -> tuple[WholeRecord, RecordLog]:
        """A record, and what it was read from. Raises NotFoundError, KafkaError, OSError."""
        place = request.path_params
        log = await self._source.log(place["topic"], place["partition"])
        found = await whole_record(log, place["offset"], self._source.workers)
        if found is None:
            raise NoRecordError(place["topic"], log, place["offset"])
        return found, log

    async def record(self, request: Request) -> Response:
        topic, number = request.path_params["topic"], request.path_params["partition"]
        show, keys, problem = self._asked_shows(request)
        try:
            whole, log = await self._whole(request)
        except NoRecordError as none:
            return await self._no_record(topic, none)
        found = whole.found
        await self._decoding.prepare([whole.key], keys)
        values = self._decoding.of_values(show, topic)
        await self._decoding.prepare([whole.value], values)
        as_header = show if show in ("text", "hex") else "auto"
        headers = whole.headers[:100]
        wanted = [(whole.key, keys), (whole.value, values), *((content, as_header) for _, content in headers)]
        key, value, *contents = await self._source.workers.run(self._whole_shown, wanted, topic)
        server = self._source.bootstrap_servers
        return await self._renderer.page(
            "record.html",
            200 if problem is None else problem.status,
            problem=problem,
            topic=topic,
            record=found,
            codec=codec_name(found),
            show=show,
            keys=keys,
            shows=self._decoding.shows,
            key=key,
            value=value,
            headers=[(name, content) for (name, _), content in zip(headers, contents, strict=True)],
            header_count=len(whole.headers),
            before=found.offset - 1 if found.offset > log.start else None,
            after=found.offset + 1 if found.offset + 1 < log.end else None,
            command=commands.records(server, topic, number, found.offset, 1),
        )

    def _asked_shows(self, request: Request) -> tuple[str, str, Problem | None]:
        """What the value and the key are shown as; where one of them cannot be, both are shown as ever."""
        given = request.query_params
        try:
            return read_show(given, "show", self._decoding), read_show(given, "keys", self._decoding), None
        except WrongQuestionError as error:
            return "auto", "auto", problem_of(error)

    async def _no_record(self, topic: str, none: NoRecordError) -> Response:
        """Where compaction, or a producer, has left a gap, or deletion the beginning: says which record is the next one."""
        log = none.log
        search = Search([Range(log, none.offset, log.end)], 1, self._source.workers, search_pace(self._source.elapsed))
        await look(search, _PAGE_SECONDS)
        found = search.found()
        following = found[0].offset if found else None
        return await self._renderer.page(
            "no_record.html", 404, topic=topic, log=log, offset=none.offset, following=following, why=str(none)
        )

    def _whole_shown(self, wanted: Sequence[tuple[bytes | None, str]], topic: str) -> list[Shown]:
        return [
            self._decoding.shown(data and data[:_SHOWN_BYTES], 0 if data is None else len(data), show, topic)
            for data, show in wanted
        ]

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


def _settled(request: Request, sent: Sequence[FilterRow] | None, now_ms: int) -> str:
    """The address that says the same as the rows of a form and its time range. Raises WrongQuestionError."""
    changed = {} if sent is None else {**dict.fromkeys(PARAMETERS, ""), **parameters_of(sent)}
    if name := request.query_params.get("range", ""):
        changed |= range_parameters(name, now_ms)
    return f"{request.url.path}?{_query(request, changed)}"


def _query(request: Request, changed: Mapping[str, str]) -> str:
    """The query of the address without rows of filters, with something changed; what is empty is left out."""
    given = {
        name: text
        for name, text in request.query_params.items()
        if name not in ("field", "operator", "operand", "rest", "range")
    }
    return urlencode({name: text for name, text in {**given, **changed}.items() if text}, errors="surrogatepass")


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
