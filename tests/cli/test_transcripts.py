"""docs/command-line.md, run from top to bottom against a broker of its own, each command on a terminal.

A ``console`` block has commands after ``$`` and what they print below; ``…`` stands for any text, and a blank may be wider.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import ottla

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "command-line.md"
LIMIT_S = 60


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


def run_on_terminal(command: str, environment: dict[str, str]) -> str:
    """What a shell command prints: on a terminal its standard output, then its standard error."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["sh", "-c", command], env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE
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


def environment(folder: Path, bootstrap_servers: str) -> dict[str, str]:
    """The variables of a shell that finds ``ottla``, the broker and a terminal of 110 columns without colours."""
    program = folder / "ottla"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ottla "$@"\n')
    program.chmod(0o755)
    return os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "OTTLA_BOOTSTRAP_SERVER": bootstrap_servers,
        "TERM": "dumb",
        "COLUMNS": "110",
        "PYTHONIOENCODING": "utf-8",
    }


def pattern(expected: str) -> re.Pattern[str]:
    """What the page shows as a pattern: … is any text, blanks are any number of them."""
    lines = [line.rstrip() for line in expected.splitlines() if line.strip()]
    return re.compile("\n".join(re.sub(r"(\\ )+", " +", re.escape(line)).replace("…", ".*") for line in lines))


@pytest.mark.slow
def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    with ottla.Broker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        variables = environment(tmp_path, broker.bootstrap_servers)
        for step in steps(PAGE.read_text()):
            shown = run_on_terminal(step.command, variables)
            shown = "\n".join(line.rstrip() for line in shown.splitlines() if line.strip())
            assert pattern(step.expected).fullmatch(shown), f"$ {step.command}\n{shown}"


def test_every_tool_has_a_transcript() -> None:
    shown = "\n".join(step.command for step in steps(PAGE.read_text()))
    tools = [f"topics {name}" for name in ("create", "list", "describe", "alter", "delete")]
    tools += ["produce", "consume", *(f"groups {name}" for name in ("list", "describe", "reset-offsets", "delete"))]
    tools += [*(f"configs {name}" for name in ("describe", "set", "unset")), "cluster describe"]
    tools += ["perf produce", "perf consume", "compat"]
    assert [tool for tool in tools if f"ottla {tool}" not in shown] == []
