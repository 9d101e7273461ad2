"""Shared parts of the commands: options of the Spark session, the session itself, and errors in one line."""

from __future__ import annotations

import logging
import signal
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from ..query import JobError, spark_failures
from ..quiet_start import quiet_start
from ..session import SparkSetupError, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_SERVER = "127.0.0.1:9092"

BootstrapServer = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT[,…]",
        envvar="OTTLA_BOOTSTRAP_SERVERS",
        help="Brokers to connect to first; the default port is 9092.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="OTTLA_COMMAND_CONFIG",
        help="Client properties: a file with Kafka's names (security.protocol, …).",
    ),
]
Pattern = Annotated[str | None, typer.Option(metavar="REGEX", help="Or: topics whose whole name matches.")]
MaxOffsetsPerTrigger = Annotated[int | None, typer.Option(metavar="N", min=1, help="Most records in a micro-batch.")]
Every = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0.1, help="Run until stopped, with a micro-batch at this interval."),
]
Group = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Consumer group to which the job commits its offsets; '' for none. [ottla-…]"),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Option of Spark's kafka source (kafka.… for its client)."),
]
Setting = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Setting of the Spark session.")]
Master = Annotated[str, typer.Option(metavar="URL", help="Spark's master.")]
Jars = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Directory with the jars of the Kafka connector and their dependencies."),
]
LogLevel = Annotated[
    Literal["OFF", "ERROR", "WARN", "INFO", "DEBUG"],
    typer.Option(metavar="OFF|ERROR|WARN|INFO|DEBUG", help="Spark's own log, on stderr."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Print the stack traces of errors, Python's and Spark's.")]

_STACK_TRACES = "spark.sql.pyspark.jvmStacktrace.enabled"


@dataclass(frozen=True)
class SessionOptions:
    """How Spark is started for a job."""

    master: str = "local[*]"
    jars: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    log_level: str = "OFF"
    debug: bool = False
    """Whether errors of the job have Java's stack traces."""
    packages: tuple[str, ...] = ()
    """The coordinates of jars in addition to the Kafka connector."""


@contextmanager
def session(name: str, options: SessionOptions) -> Iterator[SparkSession]:
    """A context with Spark, which it stops at the end; it keeps the handlers of signals. Raises SparkSetupError and JobError."""
    settings = {_STACK_TRACES: str(options.debug).lower(), **options.settings}
    # If Spark's own log is shown, so is what it prints before.
    is_quiet = options.log_level == "OFF" and not options.debug
    with quiet_start() if is_quiet else nullcontext():
        spark = _started(name, options, settings)
    try:
        with spark_failures():
            spark.sparkContext.setLogLevel(options.log_level)
            _log_query_contexts(options.debug)
            yield spark
    finally:
        # The JVM may have failed itself.
        with suppress(JobError), spark_failures():
            spark.stop()


@contextmanager
def one_line_errors(place: str = "", *, debug: bool = False) -> Iterator[None]:
    """Errors of a job, or a missing Spark, end the command with one line, which begins with ``place``, and status 1.

    With ``debug`` the stack traces and the stock client's log are shown before it.
    """
    client = logging.getLogger("kafka")
    level = client.level
    try:
        if not debug:
            client.setLevel(logging.CRITICAL)
        yield
    except (JobError, SparkSetupError) as error:
        if debug:
            traceback.print_exc()
        at_place = place and isinstance(error, JobError)
        fail(f"{place}: {error}" if at_place else str(error), status=1)
    finally:
        client.setLevel(level)


@contextmanager
def usage_errors() -> Iterator[None]:
    """A job whose options make no sense ends the command with one line and status 2."""
    try:
        yield
    except JobError as error:
        fail(str(error), status=2)


def pairs(name: str, texts: list[str] | None) -> dict[str, str]:
    """The NAME=VALUE pairs of a repeated option. Raises JobError."""
    found = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise JobError(f"{name} takes NAME=VALUE, not {text!r}")
        found[key] = value
    return found


def names(text: str | None) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def fail(message: str, *, status: int) -> NoReturn:
    """Print one line on stderr, and exit."""
    typer.echo(f"ottla spark: {message}", err=True)
    raise typer.Exit(status)


def _log_query_contexts(is_wanted: bool) -> None:
    """Turn pyspark's own log on or off: it logs each error of a query with stack traces as JSON on stderr."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = not is_wanted


def _started(name: str, options: SessionOptions, settings: Mapping[str, str]) -> SparkSession:
    """Start the session. Its JVM ignores the signals that a terminal or a service manager sends to all: this process stops it.

    pyspark does that for Ctrl-C, but replaces the handler. SIGTERM is ignored while the JVM starts, which inherits that; it is
    also blocked meanwhile, so that it is not lost here.
    """
    interrupt, terminate = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        return build_session(
            name, master=options.master, jars=options.jars, packages=options.packages, settings=settings
        )
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
