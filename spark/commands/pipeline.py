"""``ottla spark run`` and ``ottla spark explain``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...base.wording import plural
from ..session import check_setup
from .following import Json, Metrics, Output
from .session import (
    CommandConfig,
    Debug,
    Jars,
    LogLevel,
    Master,
    SessionOptions,
    Setting,
    one_line_errors,
    pairs,
    session,
    usage_errors,
)

if TYPE_CHECKING:
    from ..pipeline.declaration import Pipeline

File = Annotated[Path, typer.Argument(metavar="PIPELINE.TOML", help="The pipeline.")]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT[,…]", envvar="OTTLA_BOOTSTRAP_SERVERS", help="In place of the file's bootstrap-servers."
    ),
]


def run_pipeline(
    file: File,
    bootstrap_server: Server = None,
    command_config: CommandConfig = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="DIR", help="Replaces the file's checkpoint.")] = None,
    dry_run: Annotated[
        int | None, typer.Option(metavar="ROWS", min=1, help="Write nothing; print this many rows for each sink.")
    ] = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    as_json: Json = False,
    metrics: Metrics = None,
    debug: Debug = False,
) -> None:
    """Run a pipeline: topics, steps in SQL, and topics, Parquet or the terminal to write to, declared in one file.

    \b
    Examples:
      ottla spark run wordcount.toml
      ottla spark run wordcount.toml --dry-run 10
      ottla spark run wordcount.toml --json --metrics 127.0.0.1:9308
    """
    instead = {
        "bootstrap_servers": bootstrap_server,
        "client_properties": _absolute(command_config),
        "checkpoint": checkpoint,
    }
    pipeline, options = _checked(file, instead, SessionOptions(master, jars, {}, log_level, debug), setting)
    from ..pipeline.run import first_rows, run

    if dry_run is not None:
        with one_line_errors(str(file), debug=debug), session(pipeline.name, options) as spark:
            for name, rows in first_rows(spark, pipeline, dry_run).items():
                typer.echo(f"{name}:")
                for row in rows:
                    typer.echo("  " + ", ".join(f"{column}={_shown(value)}" for column, value in row.asDict().items()))
        return
    is_plain = any(sink.console for sink in pipeline.sinks.values())
    output = Output(pipeline.name, as_json, metrics, is_plain=is_plain)
    with one_line_errors(str(file), debug=debug), output.running(pipeline.name, options) as (spark, watch):
        totals = run(spark, pipeline, watch)
    output.end(watch, totals, *(f"{name}: {total:,} {plural(total, 'record')} read" for name, total in totals.items()))


def explain_pipeline(
    file: File,
    bootstrap_server: Server = None,
    command_config: CommandConfig = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
    debug: Debug = False,
) -> None:
    """Check a pipeline, and print the plan of each of its sinks as Spark explains it.

    \b
    Examples:
      ottla spark explain wordcount.toml
    """
    given = SessionOptions(master, jars, {}, log_level, debug)
    instead = {"bootstrap_servers": bootstrap_server, "client_properties": _absolute(command_config)}
    pipeline, options = _checked(file, instead, given, setting)
    from ..pipeline.run import plans

    with one_line_errors(str(file), debug=debug), session(pipeline.name, options) as spark:
        for name, plan in plans(spark, pipeline).items():
            typer.echo(f"{name}:\n{plan}")


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _checked(
    file: Path, instead: dict[str, str | None], options: SessionOptions, setting: list[str] | None
) -> tuple[Pipeline, SessionOptions]:
    """The pipeline, checked as far as possible without Spark, and the options with its settings and the command's."""
    with one_line_errors(debug=options.debug):
        check_setup()
    with usage_errors():
        from ..pipeline import needs
        from ..pipeline.declaration import read
        from ..pipeline.topics import check_topics

        given = pairs("--setting", setting)
        pipeline = read(file, **instead)
    with one_line_errors(str(file), debug=options.debug):
        if pipeline.check_sql:
            from ..pipeline.sql_check import check_sql

            check_sql(pipeline)
        check_topics(pipeline)
    return pipeline, replace(options, settings=needs.settings(pipeline) | given, packages=needs.packages(pipeline))


def _shown(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes | bytearray) else str(value)
