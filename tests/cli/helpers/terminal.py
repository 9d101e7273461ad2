"""The ``ottla`` command on a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from .command import LIMIT_S, Command


def on_terminal(command: Command, *arguments: str, **environment: str) -> str:
    """What the command prints on a terminal of its own."""
    return _shown_on_terminal(command, *arguments, typed=None, **environment)


def typed_into(command: Command, *arguments: str, typed: bytes) -> str:
    """What is on the terminal when this is typed there, the command's first line being seen."""
    return _shown_on_terminal(command, *arguments, typed=typed)


def _shown_on_terminal(command: Command, *arguments: str, typed: bytes | None, **environment: str) -> str:
    ours, theirs = pty.openpty()
    variables = {key: value for key, value in command.environment.items() if key != "NO_COLOR"}
    variables |= {"TERM": "xterm-256color", "COLUMNS": "100"} | environment
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla", *arguments],
        env=variables,
        stdin=subprocess.DEVNULL if typed is None else theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
            if typed and b"\n" in shown:
                os.write(ours, typed)
                typed = b""
    except OSError:
        pass  # Linux says so when the other side is closed
    os.close(ours)
    assert process.wait(LIMIT_S) == 0
    return shown.decode()
