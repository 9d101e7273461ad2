"""Clock jumps and slow disks for one process: a library that is loaded into it, compiled here (tampering.c)."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


def build(folder: Path) -> Path | None:
    """Compile the library in ``folder``; None if there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "tampering.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"], check=True, capture_output=True
    )
    return library


class Tampering:
    """The settings for one process; without effect at first."""

    def __init__(self, library: Path, folder: Path) -> None:
        self._library = library
        self._file = folder / "tampering"
        self.tell()

    @property
    def environment(self) -> list[str]:
        """The prefix of a command that is affected."""
        return ["env", f"LD_PRELOAD={self._library}", f"OTTLA_JEPSEN_TAMPERING={self._file}"]

    def tell(self, *, clock_s: float = 0.0, fsync_s: float = 0.0) -> None:
        """From now on shift its wall clock by ``clock_s``, and make each fsync take ``fsync_s`` longer."""
        told = struct.pack("=qq", int(clock_s * 1e9), int(fsync_s * 1e6))
        with self._file.open("r+b" if self._file.exists() else "w+b") as file:
            file.write(told)
