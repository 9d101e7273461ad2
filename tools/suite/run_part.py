"""Runs one part of the tests as a process of its own, and returns its outcome."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

from ottla.tools.suite.parts import Part

ROOT = Path(__file__).resolve().parents[2]
_MISSING = 3
"""The exit status of tools/setup.sh where the machine lacks a program."""
_NO_TESTS = 5
"""pytest's, where it collected nothing."""


@dataclass(frozen=True)
class Outcome:
    """How a part went; ``why`` is empty unless it failed or was left out."""

    part: str
    is_green: bool = False
    is_left_out: bool = False
    why: str = ""
    passed: int = 0
    failed: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Numbers of skipped tests by their reason."""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Of everything that the part started."""


class SetupFailed(Exception):
    """A step of tools/setup.sh could not be done; ``is_missing`` where the machine lacks a program for it."""

    def __init__(self, said: str, *, is_missing: bool) -> None:
        super().__init__(said)
        self.is_missing = is_missing


def set_up(step: str) -> None:
    """Have tools/setup.sh build what a part needs. Raises SetupFailed with its last line, the others being printed."""
    done = subprocess.run(["tools/setup.sh", step], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    lines = done.stderr.splitlines(keepends=True)
    last = lines.pop().strip().removeprefix("setup: ") if lines and done.returncode else ""
    sys.stderr.write("".join(lines))
    if done.returncode:
        raise SetupFailed(last or f"tools/setup.sh {step} failed", is_missing=done.returncode == _MISSING)


def command(part: Part, outcome: Path, extra: Sequence[str] = (), chosen: Sequence[str] = ()) -> list[str]:
    """What runs a part; with ``chosen`` only those of its tests, one after the other."""
    if part.tests is None:
        return ["make", "--no-print-directory", "static"]
    words = [str(ROOT / part.venv / "bin" / "python"), "-m", "pytest", "-q", *part.tests.options]
    words += ["-p", "ottla.tools.suite.report", "--outcome", str(outcome)]
    if part.workers > 1 and not chosen:
        spread = ("loadgroup", "--no-loadscope-reorder") if part.shares_fixtures else ("worksteal",)
        words += ["-n", str(part.workers), "--dist", *spread, "--durations", "10"]
    return [*words, *extra, *(chosen or part.tests.paths)]


async def run(part: Part, folder: Path, extra: Sequence[str] = (), chosen: Sequence[str] = ()) -> Outcome:
    """Run it; what it prints goes to ``<folder>/<part>.log``, behind what is there."""
    outcome_file, measured_file = folder / f"{part.name}.outcome", folder / f"{part.name}.measured"
    for file in (outcome_file, measured_file):
        file.unlink(missing_ok=True)
    words = command(part, outcome_file, extra, chosen)
    measured = [sys.executable, str(ROOT / "tools/suite/measure.py"), str(measured_file), *words]
    variables = dict(os.environ, PATH=f"{ROOT / part.venv / 'bin'}:{os.environ['PATH']}")
    with (folder / f"{part.name}.log").open("ab") as log:
        await trio.run_process(
            measured, cwd=ROOT, env=variables, stdin=b"", stdout=log, stderr=subprocess.STDOUT, check=False
        )
    return _outcome(part, outcome_file, measured_file)


def _outcome(part: Part, outcome_file: Path, measured_file: Path) -> Outcome:
    if not measured_file.exists():
        return Outcome(part.name, why="it was ended from outside")
    measured = json.loads(measured_file.read_text())
    cost = Outcome(part.name, wall_s=measured["wall_s"], cpu_s=measured["cpu_s"])
    status = measured["status"]
    if part.tests is None:
        return dataclasses.replace(cost, is_green=status == 0, why="" if status == 0 else f"exit status {status}")
    if not outcome_file.exists():
        return dataclasses.replace(cost, why=f"pytest ended with exit status {status}")
    found = json.loads(outcome_file.read_text())
    failed = tuple(found["failed"])
    why = (
        f"{len(failed)} failed"
        if failed
        else "no test was selected"
        if status == _NO_TESTS
        else f"exit status {status}"
    )
    return dataclasses.replace(
        cost,
        is_green=status == 0,
        why="" if status == 0 else why,
        passed=found["passed"],
        failed=failed,
        left_out=found["left_out"],
    )
