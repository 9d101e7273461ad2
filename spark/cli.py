"""``ottla spark …``: the jobs on the command line. pyspark is imported when one of them runs.

Whatever goes wrong ends in one line on stderr and exit status 1 (2 for options that make no sense, as everywhere).
"""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from .archive import Archive, ArchiveError, Progress, check_reachable, run
from .session import SparkSetupError, build_session, check_setup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer(
    name="spark",
    help="Spark jobs on topics (needs the extra ottla[spark] and Java 17).",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


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
    setting: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the Spark session.")] = None,
    master: Annotated[str, typer.Option(metavar="URL", help="Spark's master.")] = "local[*]",
    jars: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with the Kafka connector's jars.")] = None,
    log_level: Annotated[
        Literal["OFF", "ERROR", "WARN", "INFO", "DEBUG"],
        typer.Option(metavar="OFF|ERROR|WARN|INFO|DEBUG", help="Spark's own log, on stderr."),
    ] = "OFF",
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
    except ArchiveError as error:
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
    except (ArchiveError, SparkSetupError) as error:
        _fail(str(error), status=1)


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
            raise ArchiveError(f"{name} takes NAME=VALUE, not {text!r}")
        pairs[key] = value
    return pairs


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _fail(message: str, *, status: int) -> NoReturn:
    typer.echo(f"ottla spark: {message}", err=True)
    raise typer.Exit(status)
