"""What a page of docs/ shows on a terminal, and a terminal on which it is done.

A ``console`` block has commands after ``$`` and what they print below; ``…`` stands for any text, and a blank may be wider. A
block after ``<!-- file: NAME -->`` is a file that is there when the commands are run.
"""

from __future__ import annotations

import itertools
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.testing.cluster import Cluster

DOCS = Path(__file__).resolve().parents[3] / "docs"
ADDRESS = "127.0.0.1:9092"
SECOND_ADDRESS = "127.0.0.1:9192"
LIMIT_S = 300


class Step(NamedTuple):
    """A command and what it is to print."""

    command: str
    expected: str


def steps(page: str) -> list[Step]:
    """The commands of a page, in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            found.append(Step(command, expected))
    return found


def files(page: str) -> dict[str, str]:
    """The files that a page shows, by name."""
    return dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL))


class Terminal:
    """A shell in a folder of its own, and the broker that the page starts: the page's address stands for that broker's.

    A page on two clusters has a second address. What a page does with systemd is done to the brokers of ``cluster``.
    ``also`` is a folder of programs that it uses. ``names`` are addresses of the page and what they stand for here.
    """

    def __init__(
        self,
        folder: Path,
        bootstrap_servers: str | None = None,
        second: str = SECOND_ADDRESS,
        cluster: Cluster | None = None,
        also: Path | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._names = names or {}
        self._folder = folder
        self._cluster = cluster
        self._address = bootstrap_servers
        self._second = second
        self._broker: subprocess.Popen[str] | None = None
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "ottla"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ottla "$@"\n')
        program.chmod(0o755)
        self._variables = {
            "PATH": ":".join(map(str, (programs, *([also] if also else []), os.environ["PATH"]))),
            "TERM": "dumb",
            "COLUMNS": "110",
            "PYTHONIOENCODING": "utf-8",
        }

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._broker is not None:
            self._broker.kill()
            self._broker.communicate()

    def run(self, command: str) -> str:
        """What a command of the page prints: on a terminal its standard output, then its standard error."""
        for name, here in self._names.items():
            command = command.replace(name, here)
        shown = self._run_here(command)
        for name, here in self._names.items():
            shown = shown.replace(here, name)
        return shown

    def _run_here(self, command: str) -> str:
        if command.startswith("ottla serve ") and self._broker is None:
            return self._serve(command)
        if command.startswith("ottla dev-cluster"):
            self._stop()
            return self._serve_cluster(command)
        if restarted := re.fullmatch(r"sudo systemctl restart ottla@(\d)", command):
            assert self._cluster is not None
            self._cluster.restart(int(restarted[1]))
            return ""
        if command.startswith("ottla verify "):
            self._stop()
        shown = self._run(command.replace(ADDRESS, str(self._address)).replace(SECOND_ADDRESS, self._second))
        return shown.replace(self._second, SECOND_ADDRESS).replace(str(self._address), ADDRESS)

    def _serve(self, command: str) -> str:
        """Start the broker on a free port; its ready line, with the page's address."""
        self._begin(shlex.split(command.replace(ADDRESS, "127.0.0.1:0")))
        assert self._broker is not None and self._broker.stdout is not None
        ready = self._broker.stdout.readline()
        self._address = re.findall(r"ready on (\S+),", ready)[0]
        return ready.replace(str(self._address), ADDRESS)

    def _begin(self, words: list[str]) -> None:
        self._broker = subprocess.Popen(
            words,
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _serve_cluster(self, command: str) -> str:
        """Start the cluster on free ports; what it says when it is ready, with the page's addresses."""
        self._begin([*shlex.split(command), "--port", "0"])
        assert self._broker is not None and self._broker.stdout is not None
        ready, servers = self._broker.stdout.readline(), self._broker.stdout.readline()
        self._address = servers.strip().partition("=")[2]
        ports = itertools.count(9092)
        return ready + re.sub(r"\d+(?=,|$)", lambda _: str(next(ports)), servers)

    def _stop(self) -> None:
        """Stop the broker, as Ctrl-C does, if it is still there."""
        if self._broker is not None:
            self._broker.send_signal(signal.SIGINT)
            self._broker.communicate(timeout=LIMIT_S)
            assert self._broker.returncode == 0
            self._broker = self._address = None

    def _environment(self) -> dict[str, str]:
        address = {"OTTLA_BOOTSTRAP_SERVERS": self._address} if self._address else {}
        return os.environ | self._variables | address

    def _run(self, command: str) -> str:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # Linux says so when the other side is closed
        os.close(ours)
        _, errors = process.communicate(timeout=LIMIT_S)
        return shown.decode().replace("\r\n", "\n") + errors.decode()


def pattern(expected: str) -> re.Pattern[str]:
    """What the page shows as a pattern: … is any text, alone any lines; blanks are any number of them."""
    lines = [line.rstrip() for line in expected.splitlines() if line.strip()]
    parts = (re.sub(r"(\\ )+", " +", re.escape(line)).replace("…", ".*") for line in lines)
    return re.compile("\n".join("(?s:.*)" if part == ".*" else part for part in parts))


def follow(page: Path, terminal: Terminal) -> None:
    """Run the commands of a page and compare what they print."""
    for step in steps(page.read_text()):
        shown = terminal.run(step.command)
        shown = "\n".join(line.rstrip() for line in shown.splitlines() if line.strip())
        assert pattern(step.expected).fullmatch(shown), f"$ {step.command}\n{shown}"
