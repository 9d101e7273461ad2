"""The last result of each lane, and the last commit at which it was green, in ``build/test-all/results.json``.

A lane is pending from the start of a run that includes it until it was green in that run, so a run can go on where it stopped.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Result:
    """One run of a lane; ``commit`` ends in ``+`` where the checkout had uncommitted changes."""

    commit: str
    day: str
    is_green: bool
    why: str
    wall_s: float
    cpu_s: float
    factor: float
    """The machine's, see ``speed.py``."""
    failed_at_first: tuple[str, ...] = ()


@dataclass
class Results:
    """All lanes."""

    last: dict[str, Result] = field(default_factory=dict)
    green: dict[str, Result] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)

    def begin(self, lanes: Sequence[str]) -> None:
        """These are to be run; what an earlier run has left is forgotten."""
        self.pending = list(lanes)

    def add(self, lane: str, result: Result) -> None:
        """Keep the result of a whole lane."""
        self.last[lane] = result
        if result.is_green:
            self.green[lane] = result
            self.pending = [name for name in self.pending if name != lane]


def load(file: Path) -> Results:
    """What is in the file; nothing where there is none."""
    if not file.exists():
        return Results()
    kept = json.loads(file.read_text())
    return Results(_results(kept["last"]), _results(kept["green"]), kept["pending"])


def save(results: Results, file: Path) -> None:
    """Replace the file, so that an interrupted run leaves the old one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".fresh")
    fresh.write_text(json.dumps(dataclasses.asdict(results), indent=1))
    fresh.replace(file)


def _results(kept: Mapping[str, Any]) -> dict[str, Result]:
    return {
        lane: Result(**{**values, "failed_at_first": tuple(values["failed_at_first"])}) for lane, values in kept.items()
    }


def commit(root: Path) -> str:
    """The commit of the checkout, with ``+`` where something is not committed; ``unknown`` without git."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def today() -> str:
    """ISO 8601."""
    return time.strftime("%Y-%m-%d")
