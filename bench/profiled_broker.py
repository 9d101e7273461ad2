"""``ottla serve`` under a sampling profiler of CPU time; ``python -m bench.profiled_broker FILE serve ...``.

A profiling timer of the process runs in CPU time, so waiting is not counted and a sample is two milliseconds of work. Each
sample counts for the *part* of the broker to which the innermost known frame belongs; system calls count for the function
that makes them. SIGUSR1 clears the counts, SIGUSR2 writes them to FILE, as JSON: part -> samples.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import ottla
from ottla.cli import main as ottla_main

_TICK_S = 0.002
_ROOT = str(Path(ottla.__file__).resolve().parent) + "/"
# The first matching prefix counts. It is compared with the file below the root of the package, a colon and the function; with
# the path in site-packages for other files; with the name of compiled codecs and dataclass methods.
_PARTS = (
    ("log/disk.py:OsFile.write", "write()"),
    ("base/tcp.py:TcpConnection._send_file", "sendfile()"),
    ("base/tcp.py:TcpConnection._send_bytes", "send()"),
    ("base/tcp.py:TcpConnection.receive_into", "recv()"),
    ("wire/records.py", "log"),
    ("log/", "log"),
    ("wire/", "codec"),
    ("<decode", "codec"),
    ("<encode", "codec"),
    ("<string>", "codec"),
    ("share_partitions/", "share partitions"),
    ("share_coordinator/", "share coordinator"),
    ("handlers/", "handlers"),
    ("replication/", "handlers"),
    ("group_coordinator/", "handlers"),
    ("controller/", "handlers"),
    ("broker/", "connection"),
    ("base/", "connection"),
    ("trio/", "trio"),
)

samples: Counter[str] = Counter()


def _part(frame: FrameType | None) -> str:
    while frame is not None:
        code = frame.f_code
        place = code.co_filename.removeprefix(_ROOT).rpartition("site-packages/")[2] + ":" + code.co_qualname
        for prefix, part in _PARTS:
            if place.startswith(prefix):
                return part
        frame = frame.f_back
    return "other"


def main() -> None:
    target = Path(sys.argv.pop(1))

    def sample(_: int, frame: FrameType | None) -> None:
        samples[_part(frame)] += 1

    def forget(*_: object) -> None:
        samples.clear()

    def write(*_: object) -> None:
        unfinished = target.with_suffix(".new")
        unfinished.write_text(json.dumps(samples))
        unfinished.rename(target)

    signal.signal(signal.SIGPROF, sample)
    signal.signal(signal.SIGUSR1, forget)
    signal.signal(signal.SIGUSR2, write)
    signal.setitimer(signal.ITIMER_PROF, _TICK_S, _TICK_S)
    try:
        ottla_main()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
