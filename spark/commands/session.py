"""What the commands have in common: options of the Spark session, the session itself, and the line an error ends in."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from ..query import JobError
from ..session import SparkSetupError, build_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_SERVER = "127.0.0.1:9092"

BootstrapServer = Annotated[
    str, typer.Option(metavar="HOST:PORT[,…]", envvar="OTTLA_BOOTSTRAP_SERVER", help="Brokers to ask first.")
]
Setting = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the Spark session.")]
Master = Annotated[str, typer.Option(metavar="URL", help="Spark's master.")]
Jars = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with the Kafka connector's jars.")]
LogLevel = Annotated[
    Literal["OFF", "ERROR", "WARN", "INFO", "DEBUG"],
    typer.Option(metavar="OFF|ERROR|WARN|INFO|DEBUG", help="Spark's own log, on stderr."),
]


@dataclass(frozen=True)
class SessionOptions:
    """How Spark is started for a job."""

    master: str = "local[*]"
    jars: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    log_level: str = "OFF"


@contextmanager
def session(name: str, options: SessionOptions) -> Iterator[SparkSession]:
    """Spark, stopped at the end. Raises SparkSetupError."""
    spark = build_session(name, master=options.master, jars=options.jars, settings=options.settings)
    try:
        spark.sparkContext.setLogLevel(options.log_level)
        yield spark
    finally:
        spark.stop()


@contextmanager
def one_line_errors(place: str = "") -> Iterator[None]:
    """Whatever a job fails with ends the command in one line, which begins with the place, and status 1; so does no Spark."""
    try:
        yield
    except JobError as error:
        fail(f"{place}: {error}" if place else str(error), status=1)
    except SparkSetupError as error:
        fail(str(error), status=1)


@contextmanager
def usage_errors() -> Iterator[None]:
    """What makes no sense as its options describe it ends the command in one line and status 2."""
    try:
        yield
    except JobError as error:
        fail(str(error), status=2)


def terminate_as_interrupt() -> None:
    """Let SIGTERM do what Ctrl-C does."""
    signal.signal(signal.SIGTERM, _interrupt)


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


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
