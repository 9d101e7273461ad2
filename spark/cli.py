"""``ottla spark …``: the jobs on the command line. pyspark is imported when one of them runs.

Whatever goes wrong ends in one line on stderr and exit status 1 (2 for options that make no sense, as everywhere).
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from .archive import Archive, check_reachable, run
from .query import JobError, Progress
from .session import SparkSetupError, build_session, check_setup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .pipeline.declaration import Pipeline

app = typer.Typer(
    name="spark",
    help="Spark jobs on topics (needs the extra ottla[spark] and Java 17).",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


Setting = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the Spark session.")]
Master = Annotated[str, typer.Option(metavar="URL", help="Spark's master.")]
Jars = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with the Kafka connector's jars.")]
LogLevel = Annotated[
    Literal["OFF", "ERROR", "WARN", "INFO", "DEBUG"],
    typer.Option(metavar="OFF|ERROR|WARN|INFO|DEBUG", help="Spark's own log, on stderr."),
]
File = Annotated[Path, typer.Argument(metavar="PIPELINE.TOML", help="The pipeline.")]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT[,…]", envvar="OTTLA_BOOTSTRAP_SERVER", help="In place of the file's bootstrap-servers."
    ),
]


@app.callback()
def main() -> None:
    """Spark jobs on topics (needs the extra ottla[spark] and Java 17)."""


@app.command()
def archive(
    output: Annotated[str, typer.Option(metavar="DIR", help="Folder (or URI) for the Parquet files.")],
    bootstrap_server: Annotated[
        str,
        typer.Option(metavar="HOST:PORT[,…]", envvar="OTTLA_BOOTSTRAP_SERVER", help="Brokers to ask first."),
    ] = "127.0.0.1:9092",
    topics: Annotated[str | None, typer.Option(metavar="NAME[,…]", help="Topics to archive.")] = None,
    pattern: Annotated[str | None, typer.Option(metavar="REGEX", help="Or: topics whose whole name matches.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where the job remembers its place. [OUTPUT/_checkpoint]")
    ] = None,
    starting_offsets: Annotated[
        str, typer.Option(metavar="earliest|latest|JSON", help="Where the first run begins; later ones go on.")
    ] = "earliest",
    max_offsets_per_trigger: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Records in a micro-batch, at most.")
    ] = None,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.1, help="Go on for ever, a micro-batch this often.")
    ] = None,
    hourly: Annotated[bool, typer.Option("--hourly", help="Folders by topic, date and hour.")] = False,
    fail_on_data_loss: Annotated[
        bool, typer.Option(help="Stop when records are gone before they were archived.")
    ] = True,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of Spark's kafka source (kafka.… for its client).")
    ] = None,
    setting: Setting = None,
    master: Master = "local[*]",
    jars: Jars = None,
    log_level: LogLevel = "OFF",
) -> None:
    """Write topics to Parquet files, partitioned by topic and date; a second run goes on where the first ended.

    \b
    Examples:
      ottla spark archive --topics orders --output archive
      ottla spark archive --pattern 'orders-.*' --output s3a://bucket/archive --hourly --every 60
    """
    try:
        job = Archive(
            bootstrap_servers=bootstrap_server,
            output=output,
            topics=tuple(name.strip() for name in topics.split(",") if name.strip()) if topics else (),
            pattern=pattern,
            checkpoint=checkpoint,
            starting_offsets=starting_offsets,
            max_offsets_per_trigger=max_offsets_per_trigger,
            every_s=every,
            hourly=hourly,
            fail_on_data_loss=fail_on_data_loss,
            options=_pairs("--option", option),
        )
        settings = _pairs("--setting", setting)
    except JobError as error:
        _fail(str(error), status=2)
    try:
        check_setup()
        check_reachable(bootstrap_server)
        spark = build_session(f"archive to {output}", master=master, jars=jars, settings=settings)
        try:
            spark.sparkContext.setLogLevel(log_level)
            _run(spark, job)
        finally:
            spark.stop()
    except (JobError, SparkSetupError) as error:
        _fail(str(error), status=1)


@app.command("run")
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
    from .pipeline.run import first_rows, run

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


@app.command("explain")
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
    from .pipeline.run import plans

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
    try:
        check_setup()
        settings = _pairs("--setting", setting)
        from .pipeline.declaration import read
        from .pipeline.topics import check_topics

        pipeline = read(file, **instead)
    except JobError as error:
        _fail(str(error), status=2)
    except SparkSetupError as error:
        _fail(str(error), status=1)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        check_topics(pipeline)
        spark = build_session(pipeline.name, master=master, jars=jars, settings=pipeline.settings | settings)
        try:
            spark.sparkContext.setLogLevel(log_level)
            act(spark, pipeline)
        finally:
            spark.stop()
    except JobError as error:
        _fail(f"{file}: {error}", status=1)
    except SparkSetupError as error:
        _fail(str(error), status=1)


def _shown(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes | bytearray) else str(value)


def _run(spark: SparkSession, job: Archive) -> None:
    """Run the job, with a line for each micro-batch, until it ends or SIGINT or SIGTERM ends it."""
    signal.signal(signal.SIGTERM, _interrupt)
    total = 0

    def report(progress: Progress) -> None:
        nonlocal total
        total += progress.records
        typer.echo(f"batch {progress.batch}: {progress.records:,} records")

    try:
        run(spark, job, report)
    except KeyboardInterrupt:
        typer.echo("stopped; the next run goes on from here", err=True)
    typer.echo(f"archived {total:,} records to {job.output}")


def _pairs(name: str, texts: list[str] | None) -> dict[str, str]:
    pairs = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise JobError(f"{name} takes NAME=VALUE, not {text!r}")
        pairs[key] = value
    return pairs


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str, *, status: int) -> NoReturn:
    typer.echo(f"ottla spark: {message}", err=True)
    raise typer.Exit(status)
