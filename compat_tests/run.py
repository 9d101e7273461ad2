"""The command ``ottla compat``, which runs pytest on this package independently of surrounding pytest settings."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import shlex
import sys
import time
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from ottla.compat_tests import brokers, clusters, programs, record

FOLDER = Path(__file__).resolve().parent
# Of a test that says no other.
LIMIT_S = 600


class Watcher(Protocol):
    """Who is told how a run gets on."""

    def begin(self, total: int) -> None:
        """So many tests there are."""

    def result(self, result: record.Result) -> None:
        """A test of this client has ended."""


class CannotRun(Exception):
    """pytest refused what it was asked for: ``str()`` is why, one line."""


class Interrupted(Exception):
    """The user wanted the run to end."""


class Unreadable(Exception):
    """A file of the suite cannot be imported: ``str()`` is which and why, one line."""


class Wanted(NamedTuple):
    """What to test: the broker at ``bootstrap_server``, where clients get in as the properties in ``command_config`` say, or else
    one that the run starts, ``ottla`` or ``kafka``.

    ``words`` are pytest's; file names among them are relative to this folder. With several ``brokers`` it is a cluster of them.
    """

    bootstrap_server: str | None
    broker: str
    clients: Sequence[str]
    words: Sequence[str]
    brokers: int = 1
    command_config: Path | None = None

    def options(self) -> list[str]:
        """For pytest, and for people: the options that say what to test."""
        if self.bootstrap_server is not None:
            broker = ["--bootstrap-server", self.bootstrap_server]
            if self.command_config is not None:
                broker += ["--command-config", str(self.command_config)]
        else:
            broker = ["--broker", self.broker] if self.broker != "ottla" else []
        if self.brokers > 1:
            broker += ["--brokers", str(self.brokers)]
        return [*broker, *(word for name in self.clients for word in ("--client", name))]

    def command(self) -> str:
        """How a user would ask for it."""
        return shlex.join(["ottla", "compat", *self.options(), *self.words])


class _Plugin:
    """Listens to pytest."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.config: pytest.Config | None = None
        self.problems: list[str] = []
        self.interrupted = False

    def pytest_configure(self, config: pytest.Config) -> None:
        """The config holds the record."""
        self.config = config

    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """The tests are known, and begin now, unless a file of theirs could not be imported."""
        if session.items and not self.problems:
            self._watcher.begin(len(session.items))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended, teardown and all."""
        assert self.config is not None
        self._watcher.result(self.config.stash[record.KEY].result(nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be read."""
        if report.failed:
            self.problems.append(f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}")

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C, or ``pytest.exit``; pytest ends itself that way, too, when a file could not be imported."""
        self.interrupted = not excinfo.errisinstance(pytest.Session.Interrupted)


def run(wanted: Wanted, watcher: Watcher, *, show_pytest: bool = False) -> record.Report:
    """Run the suite. With ``show_pytest`` its own output goes to stderr, else nowhere.

    :raises CannotRun: the options make no sense.
    :raises Unreadable: a file of the suite cannot be imported, as where a package is missing.
    :raises Interrupted: by Ctrl-C.
    """
    plugin = _Plugin(watcher)
    said = io.StringIO()
    began = time.monotonic()
    with contextlib.ExitStack() as redirected:
        if show_pytest:
            redirected.enter_context(contextlib.redirect_stdout(sys.stderr))
        else:
            redirected.enter_context(contextlib.redirect_stdout(said))
            redirected.enter_context(contextlib.redirect_stderr(said))
        status = pytest.main(_arguments(wanted), plugins=[plugin])
    _check(status, plugin, said.getvalue())
    assert plugin.config is not None
    kept = plugin.config.stash[record.KEY]
    return record.Report(
        broker=wanted.bootstrap_server or _tested(wanted),
        command=wanted.command(),
        date=datetime.date.today().isoformat(),
        seconds=round(time.monotonic() - began),
        versions=kept.versions | _program_versions({result.client for result in kept.results()}),
        results=kept.results(),
    )


def _tested(wanted: Wanted) -> str:
    """What the run has started: which broker, of which version, and how many."""
    if wanted.brokers == 1:
        return brokers.VERSIONS[wanted.broker]()
    return f"{clusters.VERSIONS[wanted.broker]()}, {wanted.brokers} brokers"


def _program_versions(clients: Container[str]) -> dict[str, str]:
    found = {name: program.version() for name, program in programs.PROGRAMS.items() if name in clients}
    return {name: version for name, version in found.items() if version is not None}


def _arguments(wanted: Wanted) -> list[str]:
    targets = [str(FOLDER / word) for word in wanted.words if names_a_test(word)] or [str(FOLDER)]
    words = [word for word in wanted.words if not names_a_test(word)]
    fixed = ["-c", os.devnull, f"--rootdir={FOLDER}", "--import-mode=importlib", "-p", "no:cacheprovider"]
    fixed.append(f"--timeout={LIMIT_S}")
    # The package's own plugin for pytest has been imported by then, as has whatever else led here.
    fixed += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    return [*fixed, "--strict-markers", *wanted.options(), *words, *targets]


def _check(status: int, plugin: _Plugin, said: str) -> None:
    """Raises CannotRun, Unreadable or Interrupted unless tests were run to the end."""
    if plugin.interrupted:
        raise Interrupted
    if plugin.problems:
        others = len(plugin.problems) - 1
        more = f" (and {others} more; --debug shows all)" if others else " (--debug shows more)"
        raise Unreadable(f"the suite cannot be read: {plugin.problems[0]}{more}")
    if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        assert plugin.config is not None
        if not plugin.config.stash[record.KEY].results():
            raise CannotRun("these options leave no test to run")
        return
    errors = [line for line in said.splitlines() if "error:" in line.lower() and "usage:" not in line]
    why = errors[0].removeprefix("ERROR: ").rpartition("): error: ")[2] if errors else f"exit status {status}"
    raise CannotRun(f"pytest: {why}")


def names_a_test(word: str) -> bool:
    """Whether an argument is a file or a folder/ of the suite, perhaps with ``::test``."""
    path = word.partition("::")[0]
    return path.endswith((".py", "/")) and (FOLDER / path).exists()
