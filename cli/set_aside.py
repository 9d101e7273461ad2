"""``ottla set-aside``: takes a damaged batch out of a stopped broker's log, or puts it back.

Exit codes: 0 done, 1 there is nothing to do, 2 the folder cannot be used.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ..log.disk import Disk, OsDisk
from ..log.set_aside import NothingToSetAsideError, QuarantinedBatch, put_back, set_aside
from .stopped_folder import why_unusable


def run(data_dir: Path, partition: str, offset: int, undo: bool) -> int:
    """Do it, and say what was done; the exit code."""
    disk: Disk = OsDisk()
    try:
        done = (put_back if undo else set_aside)(disk, str(data_dir), partition, offset)
    except NothingToSetAsideError as error:
        print(f"ottla: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"ottla: {why_unusable(data_dir, error, 'changed')}", file=sys.stderr)
        return 2
    print(_undone(done) if undo else _done(done, data_dir, partition))
    return 0


def _what(done: QuarantinedBatch) -> str:
    return f"{done.segment}: offsets {done.first} to {done.last}, {done.size} bytes at position {done.position}"


def _done(done: QuarantinedBatch, data_dir: Path, partition: str) -> str:
    lines = [
        f"{_what(done)}, are set aside in {done.kept}. An empty batch has their offsets.",
        f"To put them back: ottla set-aside {data_dir} {partition} {done.first} --undo",
    ]
    if done.is_transactional:
        lines.append(
            "They were part of a transaction, or its end: 'ottla transactions find-hanging' shows if it stays open."
        )
    return "\n".join(lines)


def _undone(done: QuarantinedBatch) -> str:
    return f"{_what(done)}, are back from {done.kept}, as damaged as they were."
