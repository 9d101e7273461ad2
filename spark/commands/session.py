"""What the commands have in common: options of the Spark session, the session itself, and the line an error ends in."""

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
        help="Brokers to ask first; port 9092 if none is given.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="OTTLA_COMMAND_CONFIG",
        help="How clients get in: a properties file with Kafka's names (security.protocol, …).",
    ),
]
Pattern = Annotated[str | None, typer.Option(metavar="REGEX", help="Or: topics whose whole name matches.")]
MaxOffsetsPerTrigger = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Records in a micro-batch, at most.")
]
Every = Annotated[
    float | None, typer.Option(metavar="SECONDS", min=0.1, help="Go on for ever, a micro-batch this often.")
]
Group = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Consumer group to commit to how far it has read; '' for none. [ottla-…]"),
]
SourceOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of Spark's kafka source (kafka.… for its client).")
]
Setting = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the Spark session.")]
Master = Annotated[str, typer.Option(metavar="URL", help="Spark's master.")]
Jars = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder with the jars of the Kafka connector, and of what else is needed."),
]
LogLevel = Annotated[
    Literal["OFF", "ERROR", "WARN", "INFO", "DEBUG"],
    typer.Option(metavar="OFF|ERROR|WARN|INFO|DEBUG", help="Spark's own log, on stderr."),
]
Debug = Annotated[bool, typer.Option("--debug", help="With an error, the stack traces of Python and of Spark.")]

_STACK_TRACES = "spark.sql.pyspark.jvmStacktrace.enabled"


@dataclass(frozen=True)
class SessionOptions:
    """How Spark is started for a job. With ``debug`` its errors hold Java's stack traces.

    ``packages`` are the coordinates of what it needs beside the Kafka connector.
    """

    master: str = "local[*]"
    jars: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    log_level: str = "OFF"
    debug: bool = False
    packages: tuple[str, ...] = ()


@contextmanager
def session(name: str, options: SessionOptions) -> Iterator[SparkSession]:
    """Spark, stopped at the end; the handlers of signals are what they were. Raises SparkSetupError and JobError."""
    settings = {_STACK_TRACES: str(options.debug).lower(), **options.settings}
    # A user who has Spark's own log shown is not spared what comes before it.
    is_quiet = options.log_level == "OFF" and not options.debug
    with quiet_start() if is_quiet else nullcontext():
        spark = _started(name, options, settings)
    try:
        with spark_failures():
            spark.sparkContext.setLogLevel(options.log_level)
            _log_query_contexts(options.debug)
            yield spark
    finally:
        # Its JVM may be what the job failed with.
        with suppress(JobError), spark_failures():
            spark.stop()


@contextmanager
def one_line_errors(place: str = "", *, debug: bool = False) -> Iterator[None]:
    """Whatever a job fails with ends the command in one line, which begins with the place, and status 1; so does no Spark.

    With ``debug`` the stack traces come before it, and what the stock client logs. Without, that would be many lines.
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
    """What makes no sense as its options describe it ends the command in one line and status 2."""
    try:
        yield
    except JobError as error:
        fail(str(error), status=2)


def pairs(name: str, texts: list[str] | None) -> dict[str, str]:
    """The NAME=VALUE of a repeated option. Raises JobError."""
    found = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise JobError(f"{name} takes NAME=VALUE, not {text!r}")
        found[key] = value
    return found


def names(text: str | None) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def fail(message: str, *, status: int) -> NoReturn:
    """One line on stderr, and the end."""
    typer.echo(f"ottla spark: {message}", err=True)
    raise typer.Exit(status)


def _log_query_contexts(is_wanted: bool) -> None:
    """pyspark logs each error in a query with its stack traces as JSON on stderr, whatever becomes of it."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = not is_wanted


def _started(name: str, options: SessionOptions, settings: Mapping[str, str]) -> SparkSession:
    """The session, whose JVM ignores the signals that a terminal or a service manager sends to all: this process stops it.

    pyspark sees to Ctrl-C itself, but takes the handler. SIGTERM is ignored while the JVM starts, which passes that on to
    it; being blocked too, it is not lost here.
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
