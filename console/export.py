"""Export of a search's records as JSON lines or CSV, written while the search reads.

The file is made a step of the search at a time and no faster than it is taken, ends with its reader, and has at most
``MOST_RECORDS`` records and about ``MOST_BYTES`` bytes. Where something could not be read the response is cut off, so that
the reader sees a failed download, not a file that looks whole. Markers of transactions are no records and left out; a
record's ``transaction`` says what became of its own.

JSON lines: an object a record. ``offset``, ``timestamp`` (ms) and sizes of 64 bits are strings, as is a number within a
value that a double would round. ``key_as``, ``value_as`` and a header's ``as`` say what stands there: ``null``, ``text``,
``base64`` for bytes, or what they were decoded as; headers are a list, for a name may come twice.

CSV: the same in columns, what is no text as JSON. A cell that a spreadsheet would take for a formula (it begins with = +
- @, a tab or a line's end) has an apostrophe before it, and one that begins with an apostrophe another one: a reader
takes one away.
"""

from __future__ import annotations

import base64
import csv
import functools
import io
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ..base.errors import KafkaError
from ..broker.http.stream import ClientGoneError
from ..view.found_records import FoundRecord
from ..view.own.broker_view import NotFoundError
from ..view.record_search import Search
from .decoding import Decoding
from .questions import Question, WrongQuestionError, read_question
from .searches import Searches
from .trees import DecodeError, DuplicateNameError, safe_tree, tree_of_json

logger = logging.getLogger(__name__)

MOST_RECORDS = 100_000
MOST_BYTES = 256 << 20
_MEDIA_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_COLUMNS = (
    *("topic", "partition", "offset", "timestamp", "time", "key", "key_as", "value", "value_as"),
    *("headers", "transaction"),
)


class ExportCutError(ClientGoneError):
    """The file cannot be made whole: the response ends in its midst."""


class ExportedField(NamedTuple):
    """A key, a value or a header's value."""

    kind: str
    """What ``value`` is."""
    value: Any
    """For ``json.dumps``."""


class Export:
    """The ``page`` with the file for a question."""

    def __init__(self, searches: Searches) -> None:
        self._searches = searches

    async def page(self, request: Request) -> Response:
        topic, kind = request.path_params["topic"], request.query_params.get("as", "jsonl")
        try:
            if kind not in _MEDIA_TYPES:
                raise WrongQuestionError(f"Records are exported as {' or '.join(_MEDIA_TYPES)}, not as {kind}.")
            question = read_question(topic, request.query_params, self._searches.decoding, MOST_RECORDS, MOST_RECORDS)
            logs = await self._searches.logs(topic, question)
            search = await self._searches.begin(topic, question, logs, keeps_all=True)
        except (NotFoundError, WrongQuestionError, KafkaError, OSError) as error:
            return PlainTextResponse(f"{error}\n", status_code=400)
        if self._searches.is_busy:
            return PlainTextResponse("Too many searches are under way.\n", status_code=503)
        headers = {
            "cache-control": "no-store",
            "content-disposition": f'attachment; filename="{_file_name(topic)}.{kind}"',
        }
        return StreamingResponse(
            self._pieces(topic, question, search, kind), media_type=_MEDIA_TYPES[kind], headers=headers
        )

    async def _pieces(self, topic: str, question: Question, search: Search, kind: str) -> AsyncIterator[bytes]:
        """Raises ExportCutError."""
        decoding, workers = self._searches.decoding, self._searches.source.workers
        make = functools.partial(_csv if kind == "csv" else _json_lines, topic, question, decoding)
        records = size = 0
        with self._searches.one_more():
            if kind == "csv":
                yield _csv_line(_COLUMNS)
            while not search.is_done and records < question.count and size < MOST_BYTES:
                await search.step()
                if search.problems:
                    logger.warning("an export of %s is cut off: %s", topic, search.problems[0])
                    raise ExportCutError(search.problems[0])
                found = [each for each in search.take_found() if not each.is_marker][: question.count - records]
                if found:
                    await decoding.prepare((each.key for each in found), question.keys)
                    await decoding.prepare((each.value for each in found), question.values)
                    piece = await workers.run(make, found)
                    records += len(found)
                    size += len(piece)
                    yield piece


def _file_name(topic: str) -> str:
    """A topic's name has letters, digits, ., _ and - only; . and .. are none."""
    return "".join(each for each in topic if each.isascii() and (each.isalnum() or each in "._-")) or "records"


# --- what is in a record ----------------------------------------------------------------------------------------------


def content(data: bytes | None, show: str, decoding: Decoding, topic: str) -> ExportedField:
    """As it is shown; bytes that cannot be read so are text or base64, and ``kind`` says it."""
    if data is None:
        return ExportedField("null", None)
    if show == "hex":
        return ExportedField("base64", base64.b64encode(data).decode())
    if show in ("integer", "msgpack", "avro") or not decoding.is_json(data, show):
        try:
            name = show if show in ("integer", "msgpack") else "avro"
            return ExportedField(name, safe_tree(decoding.tree(data, show, topic)))
        except DecodeError:
            return _raw(data)
    return _raw(data) if show == "text" else _as_json(data, is_asked_for=show == "json")


def _raw(data: bytes) -> ExportedField:
    try:
        return ExportedField("text", data.decode())
    except UnicodeDecodeError:
        return ExportedField("base64", base64.b64encode(data).decode())


def _as_json(data: bytes, *, is_asked_for: bool) -> ExportedField:
    """JSON where nothing is lost by it; unless it is asked for, objects and arrays only."""
    raw = _raw(data)
    if raw.kind != "text" or not (is_asked_for or raw.value.lstrip().startswith(("{", "["))):
        return raw
    try:
        return ExportedField("json", safe_tree(tree_of_json(raw.value, is_strict=True)))
    except (DecodeError, DuplicateNameError):
        return raw


def _time(timestamp: int) -> str | None:
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


# --- JSON lines and CSV -----------------------------------------------------------------------------------------------


class _ExportedRecord(NamedTuple):
    """The fields of a record that a line has, whatever the file."""

    time: str | None
    """The timestamp as text; None if the record has none."""
    key: ExportedField
    value: ExportedField
    headers: Sequence[Mapping[str, Any]]


def _contents(topic: str, question: Question, decoding: Decoding, record: FoundRecord) -> _ExportedRecord:
    return _ExportedRecord(
        _time(record.timestamp) if record.timestamp >= 0 else None,
        content(record.key, question.keys, decoding, topic),
        content(record.value, question.values, decoding, topic),
        _headers(record, decoding, topic),
    )


def _json_lines(topic: str, question: Question, decoding: Decoding, found: Sequence[FoundRecord]) -> bytes:
    lines = []
    for each in found:
        time, key, value, headers = _contents(topic, question, decoding, each)
        line = {
            "topic": topic,
            "partition": each.partition,
            "offset": str(each.offset),
            "timestamp": str(each.timestamp),
            "time": time,
            "key": key.value,
            "key_as": key.kind,
            "value": value.value,
            "value_as": value.kind,
            "headers": headers,
            "transaction": each.fate.value or None,
        }
        lines.append(_dumps(line))
    return "".join(f"{line}\n" for line in lines).encode()


def _headers(record: FoundRecord, decoding: Decoding, topic: str) -> list[dict[str, Any]]:
    found = []
    for name, data in record.headers:
        kind, value = content(data, "text", decoding, topic)
        found.append({"name": name, "value": value, "as": kind})
    return found


def _dumps(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair, which JSON can escape and UTF-8 cannot have
        return json.dumps(value)
    return text


def _csv(topic: str, question: Question, decoding: Decoding, found: Sequence[FoundRecord]) -> bytes:
    lines = []
    for each in found:
        time, key, value, headers = _contents(topic, question, decoding, each)
        row = [
            *(topic, str(each.partition), str(each.offset)),
            *(str(each.timestamp), time or ""),  # numbers of the broker's, and no text of a record's: -1 stays -1
            *(_cell(key), key.kind, _cell(value), value.kind),
            *(_dumps(headers) if headers else "", each.fate.value),
        ]
        lines.append(_csv_line(row))
    return b"".join(lines)


def _cell(shown: ExportedField) -> str:
    if shown.value is None and shown.kind == "null":
        return ""
    text = shown.value if isinstance(shown.value, str) else _dumps(shown.value)
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _csv_line(cells: Sequence[str]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, quoting=csv.QUOTE_ALL).writerow(cells)
    return file.getvalue().encode("utf-8", "replace")
