"""Resource usage of a process, its children and the machine, from /proc: CPU seconds, resident memory, and noise.

A ``Span`` is the use between two times. Its ``noise`` is the share of all cores that other processes than brokers and
clients used: if it is above about 0.1, it has influenced the figures.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1 << 20


def _stat_fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on, or None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def process_tree(root: int) -> list[int]:
    """``root`` and all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat_fields(int(entry))) is not None:
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, unseen = [], [root]
    while unseen:
        pid = unseen.pop()
        found.append(pid)
        unseen += children.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """User and system time of the tree under ``root``, with that of children it has waited for.

    A process's own time is read from its CPU clock, in nanoseconds: the ticks in /proc would measure a load that costs a
    broker 100 ms only with a precision of a tenth.
    """
    seconds = 0.0
    for pid in process_tree(root):
        if (fields := _stat_fields(pid)) is not None:
            with contextlib.suppress(OSError):  # it ended meanwhile
                seconds += time.clock_gettime(_cpu_clock(pid)) + sum(int(field) for field in fields[13:15]) / _TICKS
    return seconds


def _cpu_clock(pid: int) -> int:
    """The result of clock_getcpuclockid(3) on Linux: the CPU clock of all threads of a process, including ended ones."""
    return (~pid << 3) | 2


def resident_mib(root: int) -> float:
    """Resident memory of the tree under ``root``, in MiB."""
    pages = 0
    for pid in process_tree(root):
        try:
            with open(f"/proc/{pid}/statm") as file:
                pages += int(file.read().split()[1])
        except OSError:
            continue
    return pages * _PAGE / _MIB


def open_files(pid: int) -> int:
    """How many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def read_mib(pid: int) -> float:
    """What a process has read since its start, including reads from the page cache, in MiB."""
    with open(f"/proc/{pid}/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("rchar:")) / _MIB


def _machine_busy_seconds() -> float:
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICKS


def _client_cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@dataclass
class Span:
    """``with Span(pids) as span: ...``, then its fields; clients and brokers are children of this process.

    ``client_pids`` are clients that go on running when the block has ended.
    """

    broker_pids: Sequence[int]
    client_pids: Sequence[int] = ()
    wall_s: float = 0.0
    broker_cpu_s: float = 0.0
    cpu_s_of: dict[int, float] = field(default_factory=dict)
    """By pid of the broker; ``broker_cpu_s`` is that of all of them."""
    client_cpu_s: float = 0.0
    noise: float = 0.0

    def __enter__(self) -> Span:
        self._start = time.monotonic(), self._brokers_seconds(), self._clients_seconds(), _machine_busy_seconds()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        started, brokers, client, machine = self._start
        self.wall_s = time.monotonic() - started
        self.cpu_s_of = {pid: seconds - brokers[pid] for pid, seconds in self._brokers_seconds().items()}
        self.broker_cpu_s = sum(self.cpu_s_of.values())
        self.client_cpu_s = self._clients_seconds() - client
        others = _machine_busy_seconds() - machine - self.broker_cpu_s - self.client_cpu_s
        self.noise = max(0.0, others / (self.wall_s * (os.cpu_count() or 1)))

    def _brokers_seconds(self) -> dict[int, float]:
        return {pid: cpu_seconds(pid) for pid in self.broker_pids}

    def _clients_seconds(self) -> float:
        return _client_cpu_seconds() + sum(map(cpu_seconds, self.client_pids))
