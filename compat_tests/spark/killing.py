"""Killing of a command and everything it has started (SIGKILL), until no process is left.

To kill the process group is not enough: pyspark's daemon makes one of its own, and its workers write on until it has noticed
that the JVM is gone. All of them stay in the session that the command began with.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.compat_tests.session import eventually

_PROCESSES = Path("/proc")


def kill_all(leader: subprocess.Popen[Any]) -> None:
    """End everything in the session of a command that was started with ``start_new_session``, unless it has ended itself."""
    if leader.poll() is not None:
        return
    os.killpg(leader.pid, signal.SIGKILL)

    def is_over() -> bool:
        left = list(_session(leader.pid))
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return not left

    # No other process can get its number before it is waited for.
    eventually(is_over)
    leader.wait()


def _session(number: int) -> Iterator[int]:
    """The processes of a session that still run; none where there is no /proc to ask."""
    for folder in _PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # Number, name in brackets, state, parent, group, session, ...
            state, _, _, session, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(session) == number and state not in "ZX":
                yield int(folder.name)
