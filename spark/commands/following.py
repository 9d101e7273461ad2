"""Display and stop of a running job: a table on a terminal, otherwise a line for each micro-batch, or JSON.

After SIGTERM or Ctrl-C the current micro-batch finishes, and the job ends with status 0. A second signal ends it at once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from ...base.wording import plural
from ..metrics import served
from ..query import JobControl, QueryProgress
from .session import SessionOptions, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Json = Annotated[bool, typer.Option("--json", help="A JSON line for each micro-batch, and one with the totals.")]
Metrics = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Serve the queries' metrics there for Prometheus.")
]
_SHOW_CURSOR = b"\x1b[?25h"


class _Shown(Protocol):
    def batch(self, name: str, progress: QueryProgress) -> None: ...


@dataclass(frozen=True)
class Output:
    """How a job is shown while it runs."""

    title: str
    """The job in a few words."""
    as_json: bool = False
    metrics: str | None = None
    """The address at which metrics are served; None for nowhere."""
    is_one_query: bool = False
    """Whether the job has one query, which is then not named."""
    is_plain: bool = False
    """Whether the job writes to the terminal itself."""

    @contextmanager
    def running(self, name: str, options: SessionOptions) -> Iterator[tuple[SparkSession, JobControl]]:
        """A context with Spark, and the ``JobControl`` for a job on it. Raises SparkSetupError and JobError."""
        stop = threading.Event()
        with ExitStack() as stack:
            stack.enter_context(first_signal_sets(stop))
            metrics = stack.enter_context(served(self.metrics)) if self.metrics else None
            spark = stack.enter_context(session(name, options))
            shown = self._shown(stack, stop)

            def report(query: str, progress: QueryProgress) -> None:
                if metrics is not None:
                    metrics.note(query, progress)
                shown.batch(query, progress)

            yield spark, JobControl(report, stop)

    def end(self, watch: JobControl, totals: Mapping[str, int], *lines: str) -> None:
        """Print how the job ended: how many records each query has read, or ``lines`` if it is not JSON."""
        stopped = watch.stop.is_set()
        if stopped:
            typer.echo("stopped; the next run continues from here", err=True)
        if self.as_json:
            typer.echo(json.dumps({"totals": dict(totals), "stopped": stopped}))
            return
        for line in lines:
            typer.echo(line)

    def _shown(self, stack: ExitStack, stop: threading.Event) -> _Shown:
        if self.as_json:
            return _JsonLines()
        if self.is_plain or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            return _BatchLines(self.is_one_query)
        from .live_table import LiveTable

        return stack.enter_context(LiveTable(self.title, stop))


class _BatchLines:
    def __init__(self, is_one_query: bool) -> None:
        self._is_one_query = is_one_query

    def batch(self, name: str, progress: QueryProgress) -> None:
        batch = f"batch {progress.batch}: {progress.records:,} {plural(progress.records, 'record')}"
        typer.echo(batch if self._is_one_query else f"{name}, {batch}")


class _JsonLines:
    def batch(self, name: str, progress: QueryProgress) -> None:
        read: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in progress.read.items():
            read.setdefault(topic, {})[str(partition)] = offset
        typer.echo(
            json.dumps(
                {
                    "query": name,
                    "batch": progress.batch,
                    "records": progress.records,
                    "seconds": progress.seconds,
                    "records_per_second": round(progress.records_per_s, 1),
                    "lag": progress.lag,
                    "watermark": progress.watermark,
                    "state_rows": progress.state_rows,
                    "state_bytes": progress.state_bytes,
                    "offsets": read,
                }
            )
        )


@contextmanager
def first_signal_sets(stop: threading.Event) -> Iterator[None]:
    """Set ``stop`` at SIGTERM or SIGINT. A second signal has its usual effect: it ends the process, and so the JVM."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        if sys.stdout.isatty():
            os.write(sys.stdout.fileno(), _SHOW_CURSOR)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
