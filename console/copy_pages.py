"""The pages that copy records of a topic into another one: the form with its preview, and the copy's progress and result.

A copy takes at most ``copy_reading.MOST_RECORDS`` or ``MOST_BYTES``; its page goes on with the rest. It runs beside the pages,
as the visitor who has begun it, and ends with that visitor's session.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import trio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..view.own.broker_view import NotFoundError
from ..view.record_search import Range
from ..wire.api_keys import ApiKey
from ..wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ..wire.messages.metadata import MetadataResponseTopic
from . import copy_commands
from .actions import check_typed
from .copy_preview import (
    FIELDS,
    KEEPS,
    ORIGINS,
    STARTS,
    TIMES,
    CopyPreview,
    counted_by,
    ranges_of,
    read_order,
    read_source,
    reading_of,
)
from .copy_reading import MOST_BYTES, MOST_RECORDS
from .copying import Copies, Copy, CopyOrder, CopyState, TooManyCopiesError
from .forms import RefusedFormError, read_form
from .kafka_requests import ControllerTarget, KafkaRequests, check
from .problems import Problem, problem_of
from .questions import Question, Rest, WrongQuestionError, read_rest
from .render import Renderer
from .searches import Searches
from .time_ranges import RANGES, range_parameters
from .topic_actions import TIMEOUT_MS, alterable, described
from .visitor import current
from .visitor_rights import VisitorRights

_PREVIEW_SECONDS = 2.0
_CREATED_SECONDS = 10.0
_PAUSE_SECONDS = 0.05
_REFUSALS = (RefusedFormError, WrongQuestionError, NotFoundError, KafkaError, TooManyCopiesError, OSError)


class CopyPages:
    """``copy`` is the form, whose POST begins a copy; ``progress`` is the page of a copy, whose POST stops it."""

    def __init__(
        self, kafka: KafkaRequests, searches: Searches, renderer: Renderer, rights: VisitorRights | None, copies: Copies
    ) -> None:
        self._kafka = kafka
        self._searches = searches
        self._renderer = renderer
        self._rights = rights
        self._copies = copies

    async def copy(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        if request.method == "POST":
            return await self._begin(request, topic)
        given = request.query_params
        fields = {name: given.get(name, nothing) for name, nothing in FIELDS.items()}
        problem, preview = None, None
        try:
            if name := given.get("range", ""):
                changed = {**fields, **range_parameters(name, self._renderer.now_ms())}
                return RedirectResponse(f"{request.url.path}?{_query(changed)}", 303)
            question = read_source(topic, fields, self._searches)
            if fields["to"].strip():
                preview = await self._preview(read_order(topic, fields), question)
        except _REFUSALS as error:
            problem = _problem(error)
        return await self._form(topic, fields, preview, problem)

    async def _form(
        self, topic: str, fields: Mapping[str, str], preview: CopyPreview | None, problem: Problem | None
    ) -> Response:
        return await self._renderer.page(
            "copy.html",
            200 if problem is None else problem.status,
            topic=topic,
            fields={name: fields[name] for name in FIELDS},
            starts=STARTS,
            ranges=RANGES,
            choices=(
                ("keeps", "Partition", KEEPS),
                ("time", "Time", TIMES),
                ("origin", "Header with the origin", ORIGINS),
            ),
            filters=[(name, fields[name]) for name in ("key", "header", "contains", "path") if fields[name]],
            preview=preview,
            ranges_text="" if preview is None else _rest_text(preview.ranges),
            problem=problem,
            most_records=MOST_RECORDS,
            most_bytes=MOST_BYTES,
        )

    # --- what would be copied -----------------------------------------------------------------------------------------

    async def _preview(self, order: CopyOrder, question: Question) -> CopyPreview:
        """Raises WrongQuestionError, NotFoundError, KafkaError, OSError."""
        source = await described(self._kafka, order.source)
        target = await self._target(order, len(source.partitions), validates_only=True)
        logs = await self._searches.logs(order.source, question)
        ranges, held = await ranges_of(question, logs.values())
        bounds = [Rest(each.number, each.low, each.high) for each in ranges if each.left]
        partitions = len(source.partitions) if target is None else len(target.partitions)
        self._check_partitions(order, bounds, partitions)
        reading = reading_of(order.source, question, ranges, self._searches)
        counts = await counted_by(reading, _PREVIEW_SECONDS)
        if reading.problem is not None:
            raise NotFoundError(reading.problem)
        wanted = {each.partition_index for each in source.partitions} if question.partition is None else set()
        server = self._searches.source.bootstrap_servers
        return CopyPreview(
            order,
            [(number, low, high, counts.get(number, 0)) for number, low, high in bounds],
            reading.records,
            reading.size,
            not reading.left(),
            reading.is_full and bool(reading.left()),
            held,
            sorted(wanted - set(logs)),
            len(source.partitions) if target is None else None,
            bounds,
            copy_commands.copy(server, order, question, ()),
        )

    def _check_partitions(self, order: CopyOrder, ranges: Sequence[Rest], partitions: int) -> None:
        """Raises WrongQuestionError where the target has too few of them."""
        largest = max((each.number for each in ranges), default=0)
        if order.keeps_partition and largest >= partitions:
            raise WrongQuestionError(
                f"{order.target} has {counted(partitions, 'partition')}, and there are records in partition {largest}.",
                "keeps",
            )

    async def _target(self, order: CopyOrder, partitions: int, *, validates_only: bool) -> MetadataResponseTopic | None:
        """The topic to write to; None if it has to be created, which is checked, or done. Raises NotFoundError, KafkaError."""
        if self._rights is not None:
            self._rights.check(ApiKey.PRODUCE, order.target)
        try:
            return await alterable(self._kafka, order.target)
        except NotFoundError:
            topic = CreatableTopic(name=order.target, num_partitions=partitions, replication_factor=-1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validates_only)
            result = (await self._kafka.ask(request, ControllerTarget())).topics[0]
            check(result.error_code, result.error_message)
            return None

    async def _created(self, order: CopyOrder) -> MetadataResponseTopic:
        """A new topic, once its partitions have leaders. Raises KafkaError."""
        with trio.move_on_after(_CREATED_SECONDS):
            while True:
                try:
                    topic = await described(self._kafka, order.target)
                except NotFoundError:
                    pass
                else:
                    if all(each.leader_id >= 0 for each in topic.partitions):
                        return topic
                await trio.sleep(_PAUSE_SECONDS)
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{order.target} was created, and has no leaders yet.")

    # --- a copy -------------------------------------------------------------------------------------------------------

    async def _begin(self, request: Request, topic: str) -> Response:
        fields: dict[str, str] = dict(FIELDS)
        preview = None
        try:
            fields |= await read_form(request)
            number = self._copies.start(await self._made(topic, fields), current())
        except _REFUSALS as error:
            problem = _problem(error)
            if problem.field == "typed":
                preview = await self._preview(read_order(topic, fields), read_source(topic, fields, self._searches))
            return await self._form(topic, fields, preview, problem)
        return RedirectResponse(f"/topics/{quote(topic, safe='')}/copies/{number}", 303)

    async def _made(self, topic: str, fields: Mapping[str, str]) -> Copy:
        """A copy of just the ranges that were shown. Raises the same as ``_preview``, and TooManyCopiesError."""
        question, order = read_source(topic, fields, self._searches), read_order(topic, fields)
        rest = read_rest(fields.get("rest", ""))
        if not rest or not order.target:
            raise WrongQuestionError("Nothing was done: the offsets that were shown did not come along.")
        if order.target == topic:
            check_typed(fields, topic)
        logs = {log.number: log for log in await self._searches.source.logs(topic)}
        ranges = [
            Range(logs[each.number], each.low, min(each.high, logs[each.number].last_stable))
            for each in rest
            if each.number in logs
        ]
        if fields.get("create") == "yes":
            count = len((await described(self._kafka, topic)).partitions)
            found = await self._target(order, count, validates_only=False)
            target = await self._created(order) if found is None else found
        else:
            target = await alterable(self._kafka, order.target)
        self._check_partitions(order, rest, len(target.partitions))
        return Copy(
            order,
            {name: fields[name] for name in FIELDS},
            reading_of(topic, question, ranges, self._searches),
            len(target.partitions),
            self._kafka,
            self._searches.source.workers,
            self._renderer.now_ms,
            functools.partial(_check_reading, self._rights, topic),
        )

    async def progress(self, request: Request) -> Response:
        topic, number = request.path_params["topic"], request.path_params["number"]
        copy = self._copies.find(topic, number, current())
        if request.method == "POST":
            try:
                await read_form(request)
            except RefusedFormError as error:
                return await self._progress(topic, copy, problem_of(error))
            copy.stop()
            return RedirectResponse(request.url.path, 303)
        return await self._progress(topic, copy)

    async def _progress(self, topic: str, copy: Copy, problem: Problem | None = None) -> Response:
        is_running = copy.state is CopyState.RUNNING
        left = [] if is_running else copy.left
        server = self._searches.source.bootstrap_servers
        question = read_source(topic, copy.given, self._searches)
        return await self._renderer.page(
            "copying.html",
            200 if problem is None else problem.status,
            topic=topic,
            copy=copy,
            is_running=is_running,
            percent=round(copy.reading.done_share * 100),
            rows=copy.copied,
            left=left,
            again={**copy.given, "rest": _rest_text(left), "typed": topic if copy.order.target == topic else ""},
            problem=problem,
            command=copy_commands.copy(server, copy.order, question, left) if left else None,
        )


def _check_reading(rights: VisitorRights | None, topic: str) -> None:
    """Raises KafkaError for a visitor who may not read the topic any more."""
    if rights is not None:
        rights.check(ApiKey.FETCH, topic)


def _problem(error: Exception) -> Problem:
    if isinstance(error, TooManyCopiesError):
        return Problem(str(error), 409)
    if isinstance(error, OSError):
        return Problem(f"No broker answers: {error}", 503)
    return problem_of(error)


def _query(fields: Mapping[str, Any]) -> str:
    return urlencode({name: text for name, text in fields.items() if text}, errors="surrogatepass")


def _rest_text(ranges: Sequence[Rest]) -> str:
    return ".".join(f"{each.number}:{each.low}-{each.high}" for each in ranges)
