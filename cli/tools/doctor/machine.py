"""Limits of a broker's process, where it runs on this machine: open files, mapped files, memory (Linux's /proc).

A broker's process is the one that listens at its address. The open files of a process are shown to its user and to root only.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from ....base.wording import counted
from ....broker.limits import LOW_DESCRIPTOR_LIMIT
from ..output import size_text
from .diagnosis import Area, Diagnosis, named, note, ok, problem, unknown, warning

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_LISTENS, _ESTABLISHED = "0A", "01"
_NEARLY, _ALMOST_ALL = 0.75, 0.9
_LEAST_AVAILABLE = 0.05


def of_brokers(nodes: Mapping[int, tuple[str, int]]) -> list[Diagnosis]:
    """The lines of all brokers at these addresses: of those elsewhere only that they are elsewhere."""
    found: list[Diagnosis] = []
    elsewhere = []
    for broker, (host, port) in sorted(nodes.items()):
        if not _is_here(host) or not (_PROC / "net/tcp").exists():
            elsewhere.append(broker)
            continue
        pid = _listening(port)
        if pid is None:
            what = f"Open files and memory of broker {broker}: its process is another user's, or in a container"
            found.append(unknown(Area.LIMITS, what, "run it as the broker's user, or as root"))
        else:
            found += of_process(f"broker {broker}", pid, port)
    if elsewhere:
        what = (
            f"Open files and memory of {named(f'broker {each}' for each in elsewhere)} are seen on their machines only"
        )
        found.append(note(Area.LIMITS, what, "ottla doctor, there"))
    return found


def _is_here(host: str) -> bool:
    """Whether an address of the host is one of this machine's: such a one can be bound."""
    with contextlib.suppress(OSError):
        for family, kind, _, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM):
            with contextlib.suppress(OSError), socket.socket(family, kind) as trial:
                trial.bind(address)
                return True
    return False


def _sockets(port: int, state: str) -> Iterator[str]:
    """The inodes of sockets at a local port."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for row in (_PROC / "net" / name).read_text().splitlines()[1:]:
                words = row.split()
                if words[3] == state and int(words[1].rpartition(":")[2], 16) == port:
                    yield words[9]


def _listening(port: int) -> int | None:
    """The process that listens at the port; None where it is not seen."""
    wanted = {f"socket:[{inode}]" for inode in _sockets(port, _LISTENS)}
    if not wanted:
        return None
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for descriptor in (folder / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) in wanted:
                        return int(folder.name)
    return None


def of_process(whose: str, pid: int, port: int) -> list[Diagnosis]:
    """The lines of one process, as far as it is readable."""
    found: list[Diagnosis] = []
    for look in (_files, _maps, _memory):
        try:
            found += look(whose, _PROC / str(pid))
        except (OSError, ValueError, IndexError) as error:
            found.append(unknown(Area.LIMITS, f"/proc/{pid} of {whose}: {error}"))
    connections = sum(1 for _ in _sockets(port, _ESTABLISHED))
    if not found:
        found.append(ok(Area.LIMITS, f"Open files, mapped files and memory of {whose} are within their limits"))
    return [*found, note(Area.LIMITS, f"The port {port} of {whose} has {counted(connections, 'connection')}")]


def _files(whose: str, process: Path) -> Iterator[Diagnosis]:
    limit = next(
        line.split()[3] for line in (process / "limits").read_text().splitlines() if line.startswith("Max open files")
    )
    if limit == "unlimited":
        return
    count = sum(1 for _ in (process / "fd").iterdir())
    most, share = int(limit), count / int(limit)
    mend = "raise its limit: ulimit -n, or LimitNOFILE of systemd (docs/troubleshooting.md#too-many-open-files)"
    if share >= _NEARLY:
        what = f"{count} of the {most} files that {whose} may have open are open"
        yield (problem if share >= _ALMOST_ALL else warning)(Area.LIMITS, what, mend)
    elif most < LOW_DESCRIPTOR_LIMIT:
        yield warning(Area.LIMITS, f"{whose.capitalize()} may have only {most} files open; {count} are", mend)


def _maps(whose: str, process: Path) -> Iterator[Diagnosis]:
    """Apache Kafka maps the indexes of each segment into memory."""
    most = int((_PROC / "sys/vm/max_map_count").read_text())
    count = (process / "maps").read_text().count("\n")
    if count >= _NEARLY * most:
        yield warning(
            Area.LIMITS, f"{whose.capitalize()} has {count} of {most} mapped areas", "sysctl vm.max_map_count=262144"
        )


def _memory(whose: str, process: Path) -> Iterator[Diagnosis]:
    own = _sizes(process / "status")
    machine = _sizes(_PROC / "meminfo")
    available, total = machine["MemAvailable"], machine["MemTotal"]
    if available < _LEAST_AVAILABLE * total:
        what = f"The machine of {whose} has {size_text(available)} of {size_text(total)} memory left"
        yield warning(Area.LIMITS, f"{what}; the broker has {size_text(own['VmRSS'])}", "docs/limits.md")
    if swapped := own.get("VmSwap", 0):
        yield warning(
            Area.LIMITS, f"{size_text(swapped)} of {whose} are swapped out: it stalls", "sysctl vm.swappiness=1"
        )
    path = (process / "cgroup").read_text().strip().rpartition(":")[2].lstrip("/")
    with contextlib.suppress(OSError, ValueError):  # there may be no limit, or another hierarchy
        limit = int((_CGROUPS / path / "memory.max").read_text())
        if own["VmRSS"] >= _ALMOST_ALL * limit:
            what = f"{whose.capitalize()} has {size_text(own['VmRSS'])}, and its container ends at {size_text(limit)}"
            yield problem(Area.LIMITS, what, "raise the container's limit (docs/limits.md)")


def _sizes(file: Path) -> dict[str, int]:
    """The lines ``Name: 12 kB`` of a file, in bytes."""
    rows = (line.split() for line in file.read_text().splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == "kB"}
