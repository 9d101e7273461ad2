"""Linux namespaces for a run (network, mounts and processes), which end with the run in any case.

The run starts itself again inside (``enter``). Its first process there is the first of the process namespace, so the kernel
kills all others when it ends, and removes the network and the mounts with the last process. It is killed together with the
process outside. This needs Linux, root and two programs of util-linux; without them, a run uses 127.0.0.1 and the disk, with
fewer faults.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

_INSIDE = "OTTLA_JEPSEN_INSIDE"
_UNSHARE = (
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)
_PROBE = "ip link set lo up && ip netns list >/dev/null && mount -t tmpfs none /mnt"
_GRACE_S = 60.0


def is_inside() -> bool:
    """Whether this process runs inside."""
    return os.environ.get(_INSIDE) == "yes"


@functools.cache
def is_possible() -> bool:
    """Whether it is possible on this machine."""
    try:
        probe = subprocess.run([*_UNSHARE, "sh", "-c", _PROBE], capture_output=True, timeout=60)
    except OSError:
        return False
    return probe.returncode == 0


def enter(module: str, arguments: Sequence[str]) -> int:
    """Run a module inside; returns its exit status. It gets Ctrl-C, too, and has a minute to end then."""
    command = [*_UNSHARE, sys.executable, "-m", module, *arguments]
    signal.signal(signal.SIGTERM, _terminate)
    process = subprocess.Popen(command, env={**os.environ, _INSIDE: "yes"})
    try:
        return process.wait()
    except KeyboardInterrupt:
        return process.wait(_GRACE_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _terminate(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
