"""``ottla compat``: the compatibility suite on a broker, and its outcome for people, programs and browsers.

On a terminal the outcome is a table, into a pipe a line for each client and row: client, capability, outcome, number of
tests, reasons. What the tests themselves print goes nowhere; progress goes to standard error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.wording import counted, how_to_install
from .client import check_properties, check_reachable, servers
from .nearest import no_choice
from .output import console, is_terminal, print_json
from .running import ToolError, UsageError

if TYPE_CHECKING:
    from ...compat_tests.record import Cell, Report, Result

STYLES = {"pass": "green", "fail": "bold red", "skipped": "yellow", "not run": "dim", "n/a": "dim"}
LINES_OF_PROGRESS = 20


@dataclasses.dataclass(frozen=True)
class CompatOptions:
    """What the command line asked for."""

    bootstrap_server: str | None = None
    command_config: Path | None = None
    broker: str = "ottla"
    brokers: int = 1
    clients: Sequence[str] = ()
    details: bool = False
    json_file: Path | None = None
    html_file: Path | None = None
    show_pytest: bool = False
    words: Sequence[str] = ()

    def check(self) -> None:
        """Raises ToolError for what cannot be done."""
        for module in ("pytest", "pytest_timeout"):
            if importlib.util.find_spec(module) is None:
                raise ToolError(f"{module.replace('_', '-')} is missing: {how_to_install('compat')}")
        if self.broker not in ("ottla", "kafka"):
            raise UsageError(f"--broker takes ottla or kafka, not {self.broker!r}")
        from ...compat_tests import programs

        for name in self.clients:
            if name not in programs.names():
                raise no_choice("client", name, programs.names())
        for file in (self.json_file, self.html_file):
            # An hour later is too late to find out.
            if file is not None and not file.absolute().parent.is_dir():
                raise UsageError(f"{file}: there is no such folder")
        if self.bootstrap_server is not None:
            check_reachable(self.bootstrap_server)
        if self.command_config is not None:
            if self.bootstrap_server is None:
                raise UsageError(
                    "--command-config goes with --bootstrap-server: the broker that a run starts asks for nothing"
                )
            check_properties(self.command_config)


def compat(options: CompatOptions) -> int:
    """Run the suite and print what came out; 1 when something failed. Raises ToolError."""
    options.check()
    from ...compat_tests.run import CannotRun, Interrupted, Unreadable, Wanted, run

    server = options.bootstrap_server and servers(options.bootstrap_server)
    wanted = Wanted(server, options.broker, options.clients, options.words, options.brokers, options.command_config)
    try:
        with _progress(is_wanted=not options.show_pytest) as watcher:
            report = run(wanted, watcher, show_pytest=options.show_pytest)
    except Interrupted:
        raise KeyboardInterrupt from None
    except Unreadable as error:
        raise ToolError(str(error)) from None
    except CannotRun as refused:
        raise UsageError(str(refused)) from None
    _write(report, options)
    return 1 if report.of("fail") else 0


def _write(report: Report, options: CompatOptions) -> None:
    if options.html_file is not None:
        from ...compat_tests.html_page import html_page

        options.html_file.write_text(html_page(report), encoding="utf-8")
    if options.json_file is not None and str(options.json_file) == "-":
        print_json(report.as_json())
        return
    if options.json_file is not None:
        options.json_file.write_text(json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    if is_terminal():
        _print_tables(report, options.details)
    else:
        _print_lines(report, options.details)


def _print_lines(report: Report, details: bool) -> None:
    cells = report.cells(details=details)
    for client in report.clients():
        for row in report.rows(details=details):
            if cell := cells.get((client, row)):
                print("\t".join((client, row, cell.text(), str(len(cell.results)), "; ".join(cell.reasons))))


def _print_tables(report: Report, details: bool) -> None:
    """As many clients beside each other as there is room for, then the next ones; and what the cells cannot say."""
    screen = console()
    screen.print(f"Stock clients on {report.broker}", style="bold")
    for clients in _chunks(report, details, screen.width):
        screen.print()
        screen.print(_table(report, clients, details))
    for client in report.clients():
        screen.print(f"{client}: {report.versions.get(client, 'version not known')}", style="dim")
    for result in report.of("fail"):
        screen.print(f"\nfail: {result.client}: {result.capability}", style=STYLES["fail"])
        screen.print(f"  {result.test}\n  {result.reason}")
    shown = ("skipped", "not run", "n/a") if details else ("skipped", "not run")
    for outcome in shown:
        for client, reason, tests in report.reasons(outcome):
            screen.print(f"{outcome}: {client}: {reason} ({counted(tests, 'test')})")
    hint = "" if details or not report.of("n/a") else " (--details tells what and why)"
    screen.print(f"\n{report.summary()}{hint}, in {report.seconds} s", style="bold")


def _chunks(report: Report, details: bool, width: int) -> Iterator[list[str]]:
    cells = report.cells(details=details)
    room = width - max(map(len, report.rows(details=details)))
    chunk: list[str] = []
    used = 0
    for client in report.clients():
        texts = [cell.text() for (name, _), cell in cells.items() if name == client]
        wide = 2 + max(len(client), *map(len, texts))
        if chunk and used + wide > room:
            yield chunk
            chunk, used = [], 0
        chunk.append(client)
        used += wide
    yield chunk


def _table(report: Report, clients: Sequence[str], details: bool) -> Any:
    from rich.table import Table
    from rich.text import Text

    cells = report.cells(details=details)
    table = Table("", *clients, box=None, pad_edge=False, header_style="bold")
    for row in report.rows(details=details):
        found: list[Cell | None] = [cells.get((client, row)) for client in clients]
        if any(found):
            table.add_row(row, *(Text(cell.text(), STYLES[cell.outcome]) if cell else "" for cell in found))
    return table


@contextlib.contextmanager
def _progress(*, is_wanted: bool) -> Iterator[Any]:
    """A watcher that shows how far the run is: a bar on a terminal, else lines; each failure as it comes.

    pytest takes standard error away while a test runs, hence a descriptor of its own.
    """
    with open(os.dup(2), "w", encoding="utf-8") as errors:
        if not is_wanted:
            yield _Progress()
        elif sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            with Progress(*columns, console=console(errors), transient=True) as bar:
                yield _BarProgress(bar)
        else:
            yield _LineProgress(errors)


class _Progress:
    """Counts; says nothing."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.failed = 0

    def begin(self, total: int) -> None:
        self.total = total

    def result(self, result: Result) -> None:
        self.done += 1
        self.failed += result.outcome == "fail"


class _BarProgress(_Progress):
    """A bar, above it the failures."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self._bar = bar
        self._task = bar.add_task("starting", total=None)

    def begin(self, total: int) -> None:
        super().begin(total)
        self._bar.update(self._task, total=total)

    def result(self, result: Result) -> None:
        super().result(result)
        if result.outcome == "fail":
            self._bar.console.print(_failure(result))
        failed = f"{self.failed} failed, " if self.failed else ""
        self._bar.update(self._task, completed=self.done, description=f"{failed}{result.client}: {result.capability}")


class _LineProgress(_Progress):
    """A line now and then, and for each failure."""

    def __init__(self, errors: Any) -> None:
        super().__init__()
        self._errors = errors

    def begin(self, total: int) -> None:
        super().begin(total)
        self._say(f"ottla: {counted(total, 'test')}")

    def result(self, result: Result) -> None:
        super().result(result)
        if result.outcome == "fail":
            self._say(_failure(result))
        if self.done * LINES_OF_PROGRESS // self.total > (self.done - 1) * LINES_OF_PROGRESS // self.total:
            self._say(f"ottla: {self.done} of {counted(self.total, 'test')}, {self.failed} failed")

    def _say(self, line: str) -> None:
        print(line, file=self._errors, flush=True)


def _failure(result: Result) -> str:
    return f"fail: {result.client}: {result.capability}: {result.test}: {result.reason}"
