"""The pages that write records: a new one, one edited and sent again, and several sent again to another topic.

A record goes to Kafka in a Produce request with acks=all, as any client's does: what the visitor may do, quotas and
validation are those of the broker, and so are the errors. Of several, one is sent after another in the order of their
offsets, and the first that is refused ends it: the page says how many were sent and keeps the others. Bytes are sent as
they were read, with the present time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ..base.errors import KafkaError
from ..base.wording import counted
from ..view.own.broker_view import NotFoundError
from ..view.record_search import WholeRecord, whole_record
from ..view.source import ViewSource
from ..wire.records import Record, build_batch
from . import action_commands
from .actions import number
from .forms import RefusedFormError, read_form
from .kafka_requests import KafkaRequests
from .problems import Problem, problem_of
from .producing import partition_of, produce_batch
from .questions import WrongQuestionError
from .record_forms import KINDS, RecordContent, RecordPosition, content_of, fields_of, places_of
from .render import Renderer
from .topic_actions import described

_MOST_PARTITION = (1 << 31) - 1
_EMPTY = {"key_as": "null", "key": "", "value_as": "text", "value": "", "headers": ""}


class Sent(NamedTuple):
    """Where a record is."""

    partition: int
    offset: int


class SendPages:
    """The pages that send records; GET shows them, POST sends.

    ``produce`` is the form of one record, ``edit`` the same filled in with a record, ``send_again`` the form of several.
    """

    def __init__(self, kafka: KafkaRequests, source: ViewSource, renderer: Renderer) -> None:
        self._kafka = kafka
        self._source = source
        self._renderer = renderer

    # --- one record ---------------------------------------------------------------------------------------------------

    async def produce(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        if request.method == "POST":
            return await self._produce(request, topic)
        return await self._form(topic, {**_EMPTY, "to": topic, "partition": ""})

    async def edit(self, request: Request) -> Response:
        """The form with what is in a record, for those who may read it."""
        topic = request.path_params["topic"]
        place = RecordPosition(request.path_params["partition"], request.path_params["offset"])
        whole = await self._read(topic, place)
        fields = fields_of(RecordContent(whole.key, whole.value, tuple(whole.headers)))
        return await self._form(topic, {**fields, "to": topic, "partition": str(place.partition)})

    async def _form(self, topic: str, fields: Mapping[str, str], problem: Problem | None = None) -> Response:
        return await self._renderer.page(
            "produce.html",
            200 if problem is None else problem.status,
            topic=topic,
            fields=fields,
            kinds=KINDS,
            problem=problem,
            command=self._command(fields) if problem is None else None,
        )

    def _command(self, fields: Mapping[str, str]) -> Any:
        server = self._source.bootstrap_servers
        partition = fields.get("partition", "")
        return action_commands.produce(
            server, fields.get("to", ""), int(partition) if partition else None, content_of(fields)
        )

    async def _produce(self, request: Request, topic: str) -> Response:
        fields = {**_EMPTY, "to": topic, "partition": ""}
        try:
            fields |= await read_form(request)
            to = fields["to"].strip()
            content = content_of(fields)
            sent = await self._send(to, number(fields, "partition", "a partition", most=_MOST_PARTITION), content)
        except (RefusedFormError, WrongQuestionError, NotFoundError, KafkaError) as error:
            return await self._form(topic, fields, problem_of(error))
        return await self._renderer.page(
            "sent.html",
            what=f"The record is in {to}-{sent.partition} at offset {sent.offset}.",
            address=f"/topics/{quote(to, safe='')}/{sent.partition}/{sent.offset}",
            name="The record",
            again=f"/topics/{quote(topic, safe='')}/produce",
            command=self._command({**fields, "partition": str(sent.partition)}),
        )

    # --- several ------------------------------------------------------------------------------------------------------

    async def send_again(self, request: Request) -> Response:
        topic = request.path_params["topic"]
        if request.method == "POST":
            return await self._send_several(request, topic)
        fields = {"to": request.query_params.get("to", "")}
        try:
            chosen = places_of(request.query_params.getlist("record"))
        except WrongQuestionError as error:
            return await self._several(topic, [], fields, problem_of(error))
        return await self._several(topic, chosen, fields)

    async def _several(
        self, topic: str, chosen: Sequence[RecordPosition], fields: Mapping[str, str], problem: Problem | None = None
    ) -> Response:
        to = fields.get("to", "")
        server = self._source.bootstrap_servers
        return await self._renderer.page(
            "send_again.html",
            200 if problem is None else problem.status,
            topic=topic,
            chosen=chosen,
            to=to,
            keeps=fields.get("keeps") == "yes",
            problem=problem,
            command=action_commands.send_again(server, topic, chosen[0], to or "TOPIC") if chosen else None,
        )

    async def _send_several(self, request: Request, topic: str) -> Response:
        fields: dict[str, str] = {}
        chosen: list[RecordPosition] = []
        to, sent = "", 0
        try:
            fields = await read_form(request)
            chosen = places_of(fields.get("records", "").split())
            to = fields.get("to", "").strip()
            if not chosen:
                raise WrongQuestionError("No record is chosen.")
            if not to:
                raise WrongQuestionError("To which topic was not said.", "to")
            for place in chosen:
                whole = await self._read(topic, place)
                partition = place.partition if fields.get("keeps") == "yes" else None
                await self._send(to, partition, RecordContent(whole.key, whole.value, tuple(whole.headers)))
                sent += 1
        except (RefusedFormError, WrongQuestionError, NotFoundError, KafkaError) as error:
            problem = problem_of(error)
            if to and chosen:
                why = f"{sent} of {counted(len(chosen), 'record')} sent; {chosen[sent]} was not. {problem.why}"
                problem = problem._replace(why=why)
            return await self._several(topic, chosen[sent:], fields, problem)
        return await self._renderer.page(
            "sent.html",
            what=f"{counted(sent, 'record')} of {topic} sent again to {to}.",
            address=f"/topics/{quote(to, safe='')}/records",
            name=f"Records of {to}",
            again=f"/topics/{quote(topic, safe='')}/records",
            command=None,
        )

    # --- reading and sending ------------------------------------------------------------------------------------------

    async def _read(self, topic: str, place: RecordPosition) -> WholeRecord:
        """Raises NotFoundError, KafkaError."""
        try:
            log = await self._source.log(topic, place.partition)
            found = await whole_record(log, place.offset, self._source.workers)
        except OSError as error:
            raise NotFoundError(f"No broker answers: {error}") from None
        if found is None or found.found.is_marker:
            raise NotFoundError(f"There is no record at offset {place.offset} of {topic}-{place.partition}.")
        return found

    async def _send(self, topic: str, partition: int | None, content: RecordContent) -> Sent:
        """Raises NotFoundError, KafkaError, WrongQuestionError."""
        now_ms = self._renderer.now_ms()
        if partition is None:
            partition = partition_of(content.key, len((await described(self._kafka, topic)).partitions), now_ms)
        record = Record(timestamp=now_ms, key=content.key, value=content.value, headers=list(content.headers))
        return Sent(partition, await produce_batch(self._kafka, topic, partition, build_batch([record])))
