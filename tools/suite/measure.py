"""``measure.py REPORT COMMAND…``: runs one command and reports its processor and wall-clock time.

Processor time counts everything that the command starts, daemons included: orphans of a subreaper become its children, and a
parent gets the times of the children that it waits for. What still runs a while after the command has ended is ended, too.

REPORT is JSON: ``status`` (exit status, negative for a signal), ``wall_s``, ``cpu_s`` and ``ended`` (how many processes had to be
ended). The exit status is 0, whatever the command's was. On macOS, which has no subreapers, orphans are not seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
"""prctl(2), Linux."""
GRACE_S = 10.0
"""What the command leaves behind has so long to end by itself, and once more after SIGTERM."""
_LOOK_S = 0.05


class Children:
    """The processes below this one, and the processor time of those that have ended."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.statuses: dict[int, int] = {}

    def wait(self, *, block: bool) -> bool:
        """Reap one child that has ended, if there is one; with ``block`` wait for it. False where no child is left."""
        try:
            pid, status, usage = os.wait4(-1, 0 if block else os.WNOHANG)
        except ChildProcessError:
            return False
        if pid:
            self.cpu_s += usage.ru_utime + usage.ru_stime
            self.statuses[pid] = os.waitstatus_to_exitcode(status)
        return True

    def wait_for_all(self, limit_s: float) -> bool:
        """Whether every child has ended within the limit."""
        deadline = time.monotonic() + limit_s
        while self.wait(block=False):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return True


def running() -> list[int]:
    """The ids of this process's children, orphans that it has taken over among them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                found.append(int(stat.parent.name))
    return found


def send(number: signal.Signals, pids: list[int]) -> None:
    """Send a signal to each of them that still runs."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def main() -> None:
    """Run, clean up, report."""
    report, command = Path(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    children = Children()
    began = time.monotonic()
    process = subprocess.Popen(command)
    signal.signal(signal.SIGTERM, lambda *_: send(signal.SIGTERM, running()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the command as well, which decides
    while process.pid not in children.statuses:
        children.wait(block=True)
    wall_s, left = time.monotonic() - began, 0
    if not children.wait_for_all(GRACE_S):
        left = len(running())
        send(signal.SIGTERM, running())
        while not children.wait_for_all(GRACE_S):
            send(signal.SIGKILL, running())
    process.returncode = children.statuses[process.pid]
    measured = {"status": process.returncode, "wall_s": wall_s, "cpu_s": children.cpu_s, "ended": left}
    report.write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
