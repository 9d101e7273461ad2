"""The ``ottla`` command as a process of its own: what it prints, and what it is refused."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from .forked import Forkserver

LIMIT_S = 120
PLAN_ONLY = "Nothing is changed: --execute does it."


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
        assert (done.returncode, said) == (0, ""), done
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
        assert done.returncode == code, done
        assert len(lines) == 1 and lines[0].startswith("ottla: "), done.stderr
        return lines[0].removeprefix("ottla: ")


def run_alone(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command that needs no broker."""
    words = [sys.executable, "-m", "ottla", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr
