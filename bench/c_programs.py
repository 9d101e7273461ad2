"""Compiles the programs of ``bench/c`` on first use: the load generator, and the sink beside the brokers."""

from __future__ import annotations

import shutil
from pathlib import Path

from .java import ToolFailed, run_tool

_SOURCES = Path(__file__).resolve().parent / "c"
_OPTIONS = ("-std=gnu17", "-O2", "-Wall", "-Wextra")


def compiled(name: str, folder: Path, *options: str) -> Path:
    """The program ``name`` in ``folder``, compiled if it is not there yet. Raises ToolFailed, also without a compiler."""
    program = folder / name
    if not program.exists():
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise ToolFailed(
                f"{name}.c is compiled when it is needed, and there is no gcc here (apt-get install gcc libc6-dev)"
            )
        run_tool([compiler, *_OPTIONS, *options, "-o", str(program), str(_SOURCES / f"{name}.c")])
    return program
