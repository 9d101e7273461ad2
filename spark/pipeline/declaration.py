"""The pipeline file: its form, with sources, steps and sinks, and its checks.

Sources and steps are views by name, each step a ``SELECT`` over those before it; a sink writes one view. Keys are written
with dashes. A mistake is a ``JobError`` that begins with the file and the place in it; nothing has been started then.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from ...base.addresses import with_ports
from ...base.wording import meant
from ..bootstrap_servers import BootstrapServers, read_brokers
from ..query import JobError
from ..reader import check_offsets

REJECTED = "_rejected"
"""The view ``NAME_rejected`` has the records of a source that could not be decoded."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DURATION = re.compile(r"\d+ (second|minute|hour|day)s?")


def _is_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("a name has letters, digits and underscores, and does not begin with a digit")
    return text


def _is_duration(text: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError('it is a number and a unit, as "30 seconds" or "10 minutes"')
    return text


def _is_trigger(text: str) -> str:
    return text if text == "once" else _is_duration(text)


def _are_offsets(text: str) -> str:
    if text not in ("earliest", "latest"):
        try:
            check_offsets(text)
        except JobError as error:
            raise ValueError(str(error)) from None
    return text


def _is_file(text: str, info: ValidationInfo) -> str:
    """The path of a file, relative to the folder of the pipeline file."""
    path = Path(info.context["folder"] if info.context else "", text).absolute()
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return str(path)


Name = Annotated[str, AfterValidator(_is_name)]
Servers = Annotated[str, AfterValidator(with_ports)]
Duration = Annotated[str, AfterValidator(_is_duration)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=lambda name: name.replace("_", "-")
    )


class PipelineSource(_Table):
    """Topics as a view.

    The view has the fields of the value, and the rest of the record as ``_key``, ``_topic``, ``_partition``, ``_offset``,
    ``_timestamp``, ``_headers``.
    """

    topics: list[str] = []
    pattern: str | None = None
    format: Literal["raw", "json", "avro", "protobuf"] = "raw"
    """raw leaves ``key`` and ``value`` unchanged; the others decode the value."""
    schema_: str | None = Field(default=None, alias="schema")
    """For json in Spark's DDL, for avro in Avro's JSON."""
    schema_file: Annotated[str, AfterValidator(_is_file)] | None = None
    """A file with the schema, relative to the pipeline's; for protobuf the descriptor file."""
    message: str | None = None
    """The name of the message in the descriptor file, for protobuf."""
    skip_bytes: int = Field(default=0, ge=0)
    """The number of bytes of the value that precede what is decoded."""
    table: bool = False
    """Whether the view has the newest record of each key, except for null values, as of the start of each micro-batch."""
    event_time: str | None = None
    watermark: Duration | None = None
    unique: list[str] = []
    """Of the records with the same values in these columns, the view has only the first within the watermark."""
    starting_offsets: Annotated[str, AfterValidator(_are_offsets)] = "earliest"
    starting_timestamp: datetime | None = None
    max_offsets_per_trigger: int | None = Field(default=None, gt=0)
    fail_on_data_loss: bool = True
    bootstrap_servers: Servers | None = None
    client_properties: Annotated[str, AfterValidator(_is_file)] | None = None
    options: dict[str, str] = {}

    @property
    def schema_text(self) -> str:
        """The schema, from ``schema`` or its file."""
        if self.schema_ is not None:
            return self.schema_
        assert self.schema_file is not None
        return Path(self.schema_file).read_text(encoding="utf-8")

    @property
    def starting_timestamp_ms(self) -> int | None:
        """The starting time in ms since the epoch; a time without a zone is UTC."""
        start = self.starting_timestamp
        if start is None:
            return None
        return int((start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp() * 1000)

    @pydantic.model_validator(mode="after")
    def _decodes(self) -> PipelineSource:
        schemas = (self.schema_ is not None) + (self.schema_file is not None)
        if self.format in ("json", "avro") and schemas != 1:
            raise ValueError(f'format = "{self.format}" needs schema, or schema-file')
        if self.format == "protobuf" and (self.schema_file is None or self.schema_ or self.message is None):
            raise ValueError('format = "protobuf" needs schema-file, a descriptor file, and message, a name in it')
        if self.format == "raw" and (schemas or self.skip_bytes):
            raise ValueError('schema goes with format = "json" or "avro"')
        if self.format != "protobuf" and self.message:
            raise ValueError('message goes with format = "protobuf"')
        return self

    @pydantic.model_validator(mode="after")
    def _fits_together(self) -> PipelineSource:
        if bool(self.topics) == (self.pattern is not None):
            raise ValueError("say which topics: either topics = [...] or pattern")
        if (self.event_time is None) != (self.watermark is None):
            raise ValueError("event-time and watermark go together")
        if self.unique and self.watermark is None:
            raise ValueError("unique needs event-time and watermark: how long a record is remembered")
        where = {"starting_offsets", "starting_timestamp"} & self.model_fields_set
        if len(where) == 2:
            raise ValueError("say where to start: either starting-offsets or starting-timestamp")
        if self.table and (self.event_time or self.max_offsets_per_trigger or where):
            raise ValueError(
                "a table takes no event-time, max-offsets-per-trigger, starting-offsets or starting-timestamp"
            )
        return self


class PipelineStep(_Table):
    """A view made by a query on the views before it."""

    view: Name
    sql: str


class PipelineSink(_Table):
    """Where a view goes: a topic, Parquet files, a table of Delta or Iceberg, or the terminal."""

    view: Name
    topic: str | None = None
    key: str | None = None
    """For a topic: an SQL expression on the view, as ``value``."""
    value: str | None = None
    """The default is all columns as JSON."""
    headers: dict[str, str] = {}
    parquet: str | None = None
    delta: str | None = None
    """A table's path."""
    iceberg: str | None = None
    """A table's name."""
    partition_by: list[str] = []
    console: bool = False
    output_mode: Literal["append", "update", "complete"] = "append"
    bootstrap_servers: Servers | None = None
    client_properties: Annotated[str, AfterValidator(_is_file)] | None = None
    options: dict[str, str] = {}

    @pydantic.model_validator(mode="after")
    def _fits_together(self) -> PipelineSink:
        places = [place for place in (self.topic, self.parquet, self.delta, self.iceberg) if place is not None]
        if len(places) + self.console != 1:
            raise ValueError("say where to: one of topic, parquet, delta, iceberg and console")
        if self.topic is None and (self.key or self.value or self.headers):
            raise ValueError("key, value and headers go with topic")
        if (self.topic or self.console) and self.partition_by:
            raise ValueError("partition-by goes with parquet, delta and iceberg")
        if self.parquet and self.output_mode != "append":
            raise ValueError("rows in Parquet files do not change: their output-mode is append")
        if (self.delta or self.iceberg) and self.output_mode == "update":
            raise ValueError("the output-mode of a table is append or complete")
        return self


class Pipeline(_Table):
    """The whole file."""

    name: str
    checkpoint: str
    bootstrap_servers: Servers = "127.0.0.1:9092"
    client_properties: Annotated[str, AfterValidator(_is_file)] | None = None
    trigger: Annotated[str, AfterValidator(_is_trigger)] = "once"
    """once, for the records in the topics now, or how often a micro-batch begins."""
    group: str | None = None
    """How far the pipeline has read is committed to this group after each micro-batch (``group_id``)."""
    check_sql: bool = True
    """Whether the SQL is checked before Spark is started."""
    sources: dict[Name, PipelineSource]
    steps: list[PipelineStep] = []
    sinks: dict[Name, PipelineSink]
    settings: dict[str, str] = {}

    def brokers(self, table: PipelineSource | PipelineSink | None = None) -> BootstrapServers:
        """The brokers of a source or sink, by default the pipeline's. Raises JobError for invalid client properties."""
        if table is None or table.bootstrap_servers is None:
            return read_brokers(self.bootstrap_servers, _path(self.client_properties))
        return read_brokers(table.bootstrap_servers, _path(table.client_properties))

    @property
    def group_id(self) -> str:
        """The group, by default named after the pipeline; empty for none, also when it reads topics of other clusters."""
        if self.group is not None:
            return self.group
        return "" if any(source.bootstrap_servers for source in self.sources.values()) else f"ottla-{self.name}"

    @pydantic.model_validator(mode="after")
    def _names_meet(self) -> Pipeline:
        decoded = [name for name, source in self.sources.items() if source.format != "raw"]
        views = set(self.sources) | {f"{name}{REJECTED}" for name in decoded}
        for step in self.steps:
            if step.view in views:
                raise ValueError(f"two views are called {step.view}")
            views.add(step.view)
        if self.group and any(source.bootstrap_servers for source in self.sources.values()):
            raise ValueError("group needs a pipeline whose sources are all on its own bootstrap-servers")
        tables: dict[str, PipelineSource | PipelineSink] = {**self.sources, **self.sinks}
        for place, table in tables.items():
            if table.client_properties is not None and table.bootstrap_servers is None:
                raise ValueError(f"{place}: client-properties need bootstrap-servers here")
        if not self.sinks:
            raise ValueError("there is no sink")
        for name, sink in self.sinks.items():
            if sink.view not in views:
                raise ValueError(
                    f"sinks.{name} writes the view {sink.view}, which does not exist{meant(sink.view, views)}"
                )
        return self


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def read(path: Path, **instead: str | None) -> Pipeline:
    """Read the pipeline of a file; values in ``instead`` that are not None replace its own, by key. Raises JobError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"{path}: {error}") from None
    content |= {key.replace("_", "-"): value for key, value in instead.items() if value is not None}
    try:
        return Pipeline.model_validate(content, context={"folder": path.parent})
    except pydantic.ValidationError as error:
        raise JobError(f"{path}: {'; '.join(map(_line, error.errors()))}") from None


def _line(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        tables: dict[str, type[_Table]] = {"sources": PipelineSource, "steps": PipelineStep, "sinks": PipelineSink}
        table = tables.get(str(error["loc"][0]), Pipeline)
        known = {str(field.alias) for field in table.model_fields.values()}
        return f"{place}: there is no such key{meant(str(error['loc'][-1]), known)}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{place}: {message[:1].lower()}{message[1:]}" if place else message
