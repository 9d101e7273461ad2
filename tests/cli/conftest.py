"""The real command against a real broker: one broker for all tests of this folder, topics of their own."""

from __future__ import annotations

import atexit
import functools
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

import ottla
from ottla.cli.tools.client import Admin

from .forked import Forkserver

LIMIT_S = 120
PLAN_ONLY = "Nothing is changed: --execute does it."


@pytest.fixture(scope="session", autouse=True)
def _interrupts_reach_commands() -> None:
    """A shell has what it runs in the background ignore SIGINT, and so would every process that is started here."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def forkserver() -> Forkserver:
    """One for all commands of this process."""
    server = Forkserver()
    atexit.register(server.close)
    return server


class Command:
    """``ottla`` as a process of its own, its output in pipes."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.environment = os.environ | {"OTTLA_BOOTSTRAP_SERVERS": bootstrap_servers, "PYTHONIOENCODING": "utf-8"}

    def start(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """The running command."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-m", "ottla", *arguments], env=self.environment, **{**pipes, **streams}
        )

    def run(self, *arguments: str, given: str | bytes = b"") -> subprocess.CompletedProcess[str]:
        """The command with ``given`` as its standard input, ended."""
        given = given.encode() if isinstance(given, str) else given
        if self.environment.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
            done = forkserver().run(arguments, given, self.environment, LIMIT_S)
        else:  # which Python reads when it starts
            command = [sys.executable, "-m", "ottla", *arguments]
            done = subprocess.run(command, input=given, capture_output=True, env=self.environment, timeout=LIMIT_S)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def __call__(self, *arguments: str, given: str | bytes = b"") -> str:
        """What the command printed; it has to succeed, and to say nothing on standard error but how much it has written, or
        that what it printed is only a plan."""
        done = self.run(*arguments, given=given)
        said = re.sub(rf"\A(\d+ records? written to .*|{PLAN_ONLY})\n", "", done.stderr)
        assert (done.returncode, said) == (0, "")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """The JSON that the command printed."""
        return json.loads(self(*arguments, "--json"))

    def rows(self, *arguments: str) -> list[list[str]]:
        """The tab-separated lines that the command printed."""
        return [line.split("\t") for line in self(*arguments).splitlines()]

    def refused(self, *arguments: str, code: int = 1, given: str = "") -> str:
        """The one line that the command failed with."""
        done = self.run(*arguments, given=given)
        lines = done.stderr.splitlines()
        assert done.returncode == code
        assert len(lines) == 1 and lines[0].startswith("ottla: "), done.stderr
        return lines[0].removeprefix("ottla: ")


@pytest.fixture(scope="session")
def broker() -> Iterator[ottla.Broker]:
    # Some records are of 1970, and must not go when the broker looks for old ones, for the first time 30 s after its start.
    with ottla.Broker(properties={"group.initial.rebalance.delay.ms": "0", "log.retention.ms": "-1"}) as running:
        yield running


@pytest.fixture
def servers(broker: ottla.Broker) -> str:
    """The bootstrap servers of ``command`` and ``admin``; a module with a cluster of its own has its own."""
    return broker.bootstrap_servers


@pytest.fixture
def command(servers: str) -> Command:
    return Command(servers)


@pytest.fixture
def admin(servers: str) -> Iterator[Admin]:
    with closing(Admin(bootstrap_servers=servers)) as client:
        yield client


_numbers = itertools.count()


@pytest.fixture
def new_topic(broker: ottla.Broker) -> Callable[..., str]:
    """Makes a topic of its own for the test; its name."""

    def create(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = f"topic-{next(_numbers)}"
        broker.create_topic(name, partitions, configs)
        return name

    return create


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    """A topic with one partition."""
    return new_topic()
