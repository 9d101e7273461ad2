"""Checks a pipeline's SQL before Spark is started: its syntax, the views it reads, and their columns.

sqlglot reads Spark's dialect and resolves names; Spark checks types, functions and what a stream may do, before it reads
anything. Names of columns are in lower case; the columns of a view that are unknown here (decoded by a descriptor file, made
by a table function) are not checked. ``check-sql = false`` in the file leaves all checks to Spark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Dialect, TokenType, exp
from sqlglot.errors import OptimizeError, ParseError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from ...base.wording import meant
from ..failures import JobError
from .declaration import REJECTED, Pipeline, PipelineSink, PipelineSource

Columns = tuple[str, ...] | None
"""The columns of a view, in lower case; None if they are not known."""

RAW = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamptype", "headers")
_METADATA = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")
# Grouping by one of these functions adds a column of that name.
_WINDOWS = ("window", "session_window")
_CREATE = "CREATE TABLE t ("
_DIALECT = Dialect.get_or_raise("spark")


@dataclass(frozen=True)
class _Text:
    """A text of SQL in the file."""

    place: str
    """Where it is in the file."""
    text: str
    before: str = ""
    """The text that, with ``after``, makes it a query."""
    after: str = ""

    def mistake(self, message: str, line: int | None = None, end: int | None = None, word: str = "") -> JobError:
        """An error of one line. ``end`` is the column in which the word ends, as sqlglot counts."""
        if line is None or end is None:
            return JobError(f"{self.place}: {message}")
        column = end - len(word) + 1 - (len(self.before) if line == 1 else 0)
        return JobError(f"{self.place}: {message} (line {line}, column {max(column, 1)})")


def check_sql(pipeline: Pipeline) -> None:
    """Raises JobError, naming the place in the file, and in the SQL where that is known."""
    views: dict[str, Columns] = {}
    for name, source in pipeline.sources.items():
        views |= _views_of(name, source)
        _check_names(f"sources.{name}.event-time", [source.event_time or ""], views[name.lower()])
        _check_names(f"sources.{name}.unique", source.unique, views[name.lower()])
    for number, step in enumerate(pipeline.steps):
        views[step.view.lower()] = _columns(_Text(f"steps.{number} (view {step.view})", step.sql), views)
    for name, sink in pipeline.sinks.items():
        _check_names(f"sinks.{name}.partition-by", sink.partition_by, views[sink.view.lower()])
        for text in _expressions(name, sink):
            _columns(text, views)


def _views_of(name: str, source: PipelineSource) -> dict[str, Columns]:
    raw = {name.lower(): RAW}
    if source.format == "raw":
        return dict(raw)
    rejected = f"{name}{REJECTED}".lower()
    if source.format == "protobuf":
        return {name.lower(): None, rejected: RAW}
    place = f"sources.{name}.schema"
    fields = _ddl(place, source.schema_text) if source.format == "json" else _avro(place, source.schema_text)
    return {name.lower(): (*fields, *_METADATA), rejected: RAW}


def _ddl(place: str, schema: str) -> tuple[str, ...]:
    text = _Text(place, schema, _CREATE, ")")
    columns = _parsed(text).this.expressions
    for column in columns:
        if not isinstance(column, exp.ColumnDef) or column.kind is None:
            raise text.mistake(f"{column.name} has no type: columns are written as id STRING, at TIMESTAMP")
    return tuple(column.name.lower() for column in columns)


def _avro(place: str, schema: str) -> tuple[str, ...]:
    try:
        record = json.loads(schema)
    except ValueError as error:
        raise JobError(f"{place}: it is not JSON: {error}") from None
    try:
        if record["type"] != "record":
            raise JobError(f"{place}: values must be a record, not {record['type']}")
        return tuple(field["name"].lower() for field in record["fields"])
    except (KeyError, TypeError):
        raise JobError(f"{place}: it is not an Avro schema of a record") from None


def _expressions(name: str, sink: PipelineSink) -> Iterator[_Text]:
    written = {"key": sink.key, "value": sink.value, **{f"headers.{key}": text for key, text in sink.headers.items()}}
    for key, expression in written.items():
        if expression is not None:
            yield _Text(f"sinks.{name}.{key}", expression, "SELECT ", f" FROM {sink.view}")


def _columns(text: _Text, views: dict[str, Columns]) -> Columns:
    """The columns of the query's result. Raises JobError for unknown names."""
    query = _parsed(text)
    if not isinstance(query, exp.Query):
        raise text.mistake("it must be one query: SELECT …")
    names = {expression.alias.lower() for expression in query.find_all(exp.CTE)}
    tables = [table for table in query.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    for table in tables:
        if not table.db and table.name.lower() not in views.keys() | names:
            raise text.mistake(f"there is no view {table.name}{meant(table.name.lower(), views)}", *_where(table.this))
    read = {table.name.lower() for table in tables if table.name.lower() not in names}
    known = {view: columns for view in read if (columns := views.get(view)) is not None}
    if read != known.keys() or query.find(exp.Values):
        return _given(query)
    schema = {view: dict.fromkeys(columns, "string") for view, columns in known.items()}
    try:
        query = qualify(query, schema=schema, dialect="spark", validate_qualify_columns=False, quote_identifiers=False)
    except OptimizeError as error:
        raise text.mistake(str(error).partition("\n")[0]) from None
    for column in _unresolved(query):
        there = [name for columns in known.values() for name in columns]
        raise text.mistake(
            f"there is no column {column.sql('spark')}{meant(column.name.lower(), there)}", *_where(column.this)
        )
    return _given(query)


def _unresolved(query: exp.Expression) -> Iterator[exp.Column]:
    """Columns that are in none of the views that are read."""
    for scope in traverse_scope(query):
        if not isinstance(scope.expression, exp.Query) or scope.pivots:
            continue
        strangers = [] if scope.is_correlated_subquery else scope.external_columns
        for column in [*scope.unqualified_columns, *strangers]:
            if (column.parts[0].name.lower() not in _WINDOWS) and not isinstance(column.this, exp.Star):
                yield column


def _given(query: exp.Expression) -> Columns:
    """The names of the columns, if every one is in the text."""
    names = []
    for column in query.selects:
        if column.is_star or not isinstance(column, exp.Alias | exp.Column):
            return None
        names.append(column.alias_or_name.lower())
    return tuple(names)


def _parsed(text: _Text) -> exp.Expression:
    sql = text.before + text.text + text.after
    try:
        tokens = _DIALECT.tokenize(sql)
        for token, following in pairwise(tokens):
            # After GROUP BY, sqlglot takes this function for a WINDOW clause.
            if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
                token.token_type = TokenType.VAR
        statements = _DIALECT.parser().parse(tokens, sql)
    except ParseError as error:
        first = error.errors[0]
        near = str(first["highlight"])
        what = "something is missing" if "<class" in str(first["description"]) else str(first["description"])
        raise text.mistake(f"{what[:1].lower()}{what[1:]} at {near!r}", first["line"], first["col"], near) from None
    except SqlglotError as error:
        raise text.mistake(str(error).partition("\n")[0]) from None
    if len(statements) != 1 or statements[0] is None:
        raise text.mistake("it must be one query: SELECT …")
    return statements[0]


def _check_names(place: str, names: Collection[str], columns: Columns) -> None:
    for name in names:
        if name and columns is not None and name.partition(".")[0].strip("`").lower() not in columns:
            raise JobError(f"{place}: there is no column {name}{meant(name.lower(), columns)}")


def _where(identifier: exp.Expression) -> tuple[int | None, int | None, str]:
    """Line, last column and text, as far as sqlglot has them."""
    return identifier.meta.get("line"), identifier.meta.get("col"), identifier.name
