"""The findings of a check of a log directory."""

from __future__ import annotations

from dataclasses import dataclass

from ..checkpoints import CorruptFileError


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    path: str
    """The file, relative to the log directory."""
    problem: str
    start: str
    """What a start does about it; it ends the sentence "a start …"."""

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}; a start {self.start}"


class Findings:
    """Findings about the files of one folder."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self.found: list[Finding] = []

    def add(self, name: str, problem: str, start: str) -> None:
        """Note what is wrong with the file ``name``, or with the folder itself when that is empty."""
        path = f"{self._prefix}/{name}" if self._prefix and name else name or self._prefix or "."
        self.found.append(Finding(path, problem, start))


def reason(error: CorruptFileError) -> str:
    """The error without the path that it begins with."""
    return str(error).split(": ", 1)[-1]
