"""``ottla spark run`` and ``ottla spark explain``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..session import check_setup
from .session import (
    Jars,
    LogLevel,
    Master,
    SessionOptions,
    Setting,
    one_line_errors,
    pairs,
    session,
    terminate_as_interrupt,
    usage_errors,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..pipeline.declaration import Pipeline

File = Annotated[Path, typer.Argument(metavar="PIPELINE.TOML", help="The pipeline.")]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT[,…]", envvar="OTTLA_BOOTSTRAP_SERVER", help="In place of the file's bootstrap-servers."
    ),
]


def run_pipeline(
    file: File,
    bootstrap_server: Server = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="DIR", help="In place of the file's checkpoint.")] = None,
    dry_run: Annotated[
        int | None, typer.Option(metavar="ROWS", min=1, help="Write nothing; print so many rows for each sink.")
    ] = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
) -> None:
    """Run a pipeline: topics, steps in SQL, and topics, Parquet or the terminal to write to, declared in one file.

    \b
    Examples:
      ottla spark run wordcount.toml
      ottla spark run wordcount.toml --dry-run 10
    """
    from ..pipeline.run import first_rows, run

    def act(spark: SparkSession, pipeline: Pipeline) -> None:
        if dry_run is not None:
            for name, rows in first_rows(spark, pipeline, dry_run).items():
                typer.echo(f"{name}:")
                for row in rows:
                    typer.echo("  " + ", ".join(f"{column}={_shown(value)}" for column, value in row.asDict().items()))
            return
        try:
            totals = run(
                spark,
                pipeline,
                lambda sink, batch: typer.echo(f"{sink}, batch {batch.batch}: {batch.records:,} records"),
            )
        except KeyboardInterrupt:
            typer.echo("stopped; the next run goes on from here", err=True)
        else:
            for name, total in totals.items():
                typer.echo(f"{name}: {total:,} records read")

    instead = {"bootstrap_servers": bootstrap_server, "checkpoint": checkpoint}
    _with_pipeline(file, instead, act, setting, master, jars, log_level)


def explain_pipeline(
    file: File,
    bootstrap_server: Server = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
) -> None:
    """Check a pipeline, and print the plan of each of its sinks as Spark explains it.

    \b
    Examples:
      ottla spark explain wordcount.toml
    """
    from ..pipeline.run import plans

    def act(spark: SparkSession, pipeline: Pipeline) -> None:
        for name, plan in plans(spark, pipeline).items():
            typer.echo(f"{name}:\n{plan}")

    _with_pipeline(file, {"bootstrap_servers": bootstrap_server}, act, setting, master, jars, log_level)


def _with_pipeline(
    file: Path,
    instead: dict[str, str | None],
    act: Callable[[SparkSession, Pipeline], None],
    setting: list[str] | None,
    master: str,
    jars: Path | None,
    log_level: str,
) -> None:
    """Check all that can be checked without Spark, start it, and act."""
    with one_line_errors():
        check_setup()
    with usage_errors():
        from ..pipeline.declaration import read
        from ..pipeline.topics import check_topics

        given = pairs("--setting", setting)
        pipeline = read(file, **instead)
    terminate_as_interrupt()
    with one_line_errors(str(file)):
        check_topics(pipeline)
        with session(pipeline.name, SessionOptions(master, jars, pipeline.settings | given, log_level)) as spark:
            act(spark, pipeline)


def _shown(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes | bytearray) else str(value)
