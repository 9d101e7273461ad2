"""The report of a dump: its output, the errors listed at its end, and base offsets parsed from file names."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from typing import TextIO

from ..disk import Disk


class DumpError(Exception):
    """A file that cannot be dumped any further; the dump ends. ``str()`` is one line for people."""


def base_offset_of(disk: Disk, path: str) -> int:
    """The number that a file's name begins with. Raises DumpError when there is none, FileNotFoundError without the file.

    Any number will do, as for Kafka: a copy of a segment need not have twenty digits.
    """
    digits = os.path.basename(path).split(".")[0]
    if re.fullmatch("-?[0-9]+", digits) is None:
        if not disk.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        raise DumpError(
            f"{path}: its name has to be the first offset that the file may hold, as in 00000000000000000000.log"
        )
    return int(digits)


class Report:
    """Lines go to ``out`` as they come. Errors in the files are collected by absolute path, and listed once all were read."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.mismatches: dict[str, dict[int, int]] = {}
        """Offsets in an offset index -> the last offset of the batch at their position."""
        self.wrong_timestamps: dict[str, list[tuple[int, int]]] = {}
        """(timestamp in a time index, timestamp of the batch that it names)."""
        self.disordered_timestamps: dict[str, list[tuple[int, int]]] = {}
        """(timestamp in a time index, the one before it, which is no smaller)."""
        self.missing_offsets: dict[str, list[tuple[int, int]]] = {}
        """(offset in a time index, last offset of the batch that is there instead; -1 without one)."""
        self.leaps: dict[str, dict[int, int]] = {}
        """Offsets of records -> that of the next record, where it is not the next offset."""

    def line(self, text: str) -> None:
        self.out.write(f"{text}\n")

    def complaints(self) -> Iterable[str]:
        """The lines for stderr."""
        for path, mismatches in self.mismatches.items():
            yield f"Mismatches in :{path}"
            for indexed, found in sorted(mismatches.items(), reverse=True):
                yield f"  Index offset: {indexed}, log offset: {found}"
        for path, pairs in self.wrong_timestamps.items():
            yield f"Found timestamp mismatch in :{path}"
            for indexed, found in pairs:
                yield f"  Index timestamp: {indexed}, log timestamp: {found}"
        for path, pairs in self.disordered_timestamps.items():
            yield f"Found out of order timestamp in :{path}"
            for indexed, previous in pairs:
                yield f"  Index timestamp: {indexed}, Previously indexed timestamp: {previous}"
        for path, pairs in self.missing_offsets.items():
            yield f"The following indexed offsets are not found in :{path}"
            for indexed, found in pairs:
                yield f"Indexed offset: {indexed}, found log offset: {found}"
        for path, leaps in self.leaps.items():
            yield f"Non-consecutive offsets in {path}"
            for before, after in sorted(leaps.items()):
                yield f"  {before} is followed by {after}"
