"""Completion in the shells themselves: what they put on the line when TAB is pressed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla

from ..helpers.command import LIMIT_S, Command

pytestmark = pytest.mark.slow

PROGRAM = 'import sys; sys.argv[0] = "ottla"; from ottla.cli import main; main()'
"""The ``ottla`` that is installed, by whose name completion goes."""

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(_OTTLA_COMPLETE=source_bash ottla)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u; eval "$(_OTTLA_COMPLETE=source_zsh ottla)"'),
}


class Shell:
    """An interactive shell on a terminal of its own, with ``ottla`` on the PATH and its completion in force."""

    def __init__(self, name: str, folder: Path, bootstrap_servers: str) -> None:
        words, setup = SHELLS[name]
        program = folder / "ottla"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c \'{PROGRAM}\' "$@"\n')
        program.chmod(0o755)
        environment = os.environ | {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PS1": "",
            "TERM": "dumb",
            "OTTLA_BOOTSTRAP_SERVERS": bootstrap_servers,
        }
        self._terminal, theirs = pty.openpty()
        self._process = subprocess.Popen(
            words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder, start_new_session=True
        )
        os.close(theirs)
        self.type(f"{setup}; echo it is rea''dy\n")
        self.read_until("it is ready")

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read_until(self, text: str) -> str:
        """What is on the terminal until the text is."""
        shown = b""
        until = time.monotonic() + 60
        while text.encode() not in shown:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, until - time.monotonic()))
            assert ready, shown.decode(errors="replace")
            shown += os.read(self._terminal, 65536)
        return shown.decode(errors="replace")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


# `make test` needs make and Python alone; the lane of the command line installs zsh.
@pytest.fixture(params=["bash", pytest.param("zsh", marks=pytest.mark.in_lane_only)])
def shell(request: pytest.FixtureRequest, broker: ottla.Broker, tmp_path: Path) -> Iterator[Shell]:
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param}")
    opened = Shell(request.param, tmp_path, broker.bootstrap_servers)
    yield opened
    opened.close()


def test_tab_completes_commands_and_names_of_topics_and_groups(shell: Shell, command: Command) -> None:
    command("topics", "create", "completed-topic", "--if-not-exists")
    command("groups", "reset-offsets", "completed-group", "--topic", "completed-topic", "--to-latest", "--execute")
    shell.type("echo ottla; ottla topi\t")
    shell.read_until("topics")
    shell.type("desc\t")
    shell.read_until("describe")
    shell.type("completed-to\t")
    shell.read_until("completed-topic")
    shell.type("\x15ottla groups delete completed-\t")
    shell.read_until("completed-group")


def completed(words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What bash is given to complete the last of these words."""
    environment = os.environ | variables | {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | {"_OTTLA_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def test_it_is_quiet_when_no_broker_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes connections, and answers nothing
        for address in ("127.0.0.1:1", f"127.0.0.1:{mute.getsockname()[1]}", "nonsense:x"):
            done = completed("ottla consume some", OTTLA_BOOTSTRAP_SERVERS=address)
            assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
